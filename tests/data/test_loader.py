"""Workers, ranks and micro-batches change nothing that is trained on."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
import torch

from amber.data.batch import Batch
from amber.data.config import BatchConfig
from amber.data.loader import Source, held_out_batches, open_source, step_batches, train_batches
from amber.errors import UserError

MIXED = [20, 1, 60, 120, 2, 200, 29, 30, 31, 58, 59]  # 24 examples of at most 30 tokens


def rows(batches: Iterable[Batch]) -> list[tuple]:
    """The real part of each row with its noise, sorted; rows of padding are left out."""
    found = []
    for batch in batches:
        for i, real in enumerate(batch.attention_mask):
            if real.any():
                ids, types = batch.input_ids[i, real], batch.token_type_ids[i, real]
                numbers = batch.noise[:, i, real].flatten()
                found.append(
                    (int(batch.examples[i]), *(tuple(x.tolist()) for x in (ids, types, numbers)))
                )
    return sorted(found)


def step(source: Source, number: int, size: int, micro: int = 0, ranks: int = 1) -> list[list]:
    """The micro-batches of one step of every rank."""
    return [
        step_batches(source, number, size=size, micro_size=micro, rank=rank, num_ranks=ranks)
        for rank in range(ranks)
    ]


def test_each_example_comes_once_per_epoch(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    count = source.layout.count
    assert count == 24
    seen = Counter()
    for number in range(3):  # 3 steps of 8: one epoch
        seen.update(int(row[0]) for row in rows(step(source, number, 8)[0]))
    assert seen == Counter(range(count))


def test_steps_straddle_epochs_without_loss(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    seen = Counter()
    for number in range(12):  # 12 steps of 10: five epochs of 24
        batches = step(source, number, 10)[0]
        assert sum(len(batch.examples) for batch in batches) == 10
        seen.update(int(row[0]) for row in rows(batches))
    assert seen == Counter(dict.fromkeys(range(24), 5))


def test_the_noise_of_an_example_differs_between_epochs(make_source: Callable[..., Source]):
    source = make_source([5])  # one example: step n is epoch n
    first, second = (step(source, number, 1)[0][0] for number in (0, 1))
    assert torch.equal(first.input_ids, second.input_ids)
    assert not (first.noise == second.noise).any()


def test_data_smaller_than_a_batch_is_repeated_evenly(make_source: Callable[..., Source]):
    source = make_source([5, 40])  # 3 examples
    found = rows(step(source, 0, 7)[0])
    assert Counter(row[0] for row in found).most_common()[0][1] == 3
    assert sorted(Counter(row[0] for row in found).values()) == [2, 2, 3]
    assert len(set(found)) == 7  # each time with other noise


@pytest.mark.parametrize("micro", [0, 1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("size", "ranks"), [(1, 1), (7, 1), (7, 2), (7, 3), (10, 3), (10, 4), (16, 4), (5, 5)]
)
def test_ranks_and_micro_batches_share_out_the_same_examples(
    make_source: Callable[..., Source], size: int, micro: int, ranks: int
):
    source = make_source(MIXED, pair_fraction=0.5)
    shares = step(source, 5, size, micro, ranks)
    together = list(itertools.chain(*shares))
    assert rows(together) == rows(step(source, 5, size)[0])
    assert len({len(share) for share in shares}) == 1
    if micro:
        assert max(len(batch.examples) for batch in together) <= micro


def test_a_rank_without_sequences_gets_a_row_of_padding(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    shares = step(source, 0, 10, micro=1, ranks=4)
    assert [len(share) for share in shares] == [3, 3, 3, 3]
    real = [[bool(batch.attention_mask.any()) for batch in share] for share in shares]
    assert real == [[True] * 3, [True] * 3, [True, True, False], [True, True, False]]
    empty = shares[3][2]
    assert (empty.input_ids == source.special.pad).all()
    assert empty.examples.tolist() == [-1]
    assert len(rows(itertools.chain(*shares))) == 10


def test_micro_batches_hold_sequences_of_like_length(make_source: Callable[..., Source]):
    source = make_source([5] * 8 + [30] * 8)
    widths = [batch.input_ids.shape[1] for batch in step(source, 0, 16, micro=4)[0]]
    assert widths == [32, 32, 8, 8]


def test_fewer_sequences_than_processes_are_refused(make_source: Callable[..., Source]):
    with pytest.raises(UserError, match=r"batch.size \(3\) is below .* processes \(4\)"):
        step_batches(make_source(MIXED), 0, size=3, micro_size=0, rank=0, num_ranks=4)


def test_the_number_of_workers_changes_nothing(make_source: Callable[..., Source]):
    source = make_source(MIXED, pair_fraction=0.5)
    runs = []
    for num_workers in (0, 1, 4):
        config = BatchConfig(size=10, micro_size=4, length=32, num_workers=num_workers)
        batches = train_batches(source, config, first_step=2, rank=0, num_ranks=1)
        runs.append(list(itertools.islice(batches, 6)))
        batches.close()
    for other in runs[1:]:
        for left, right in zip(runs[0], other, strict=True):
            for a, b in zip(left, right, strict=True):
                assert torch.equal(a.input_ids, b.input_ids)
                assert torch.equal(a.noise, b.noise)
                assert torch.equal(a.examples, b.examples)
    assert rows(runs[0][0]) == rows(step(source, 2, 10)[0])  # the first step is the one asked for


def test_an_error_in_a_worker_reaches_the_caller(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    config = BatchConfig(size=2, length=32, num_workers=2)
    batches = train_batches(source, config, first_step=0, rank=0, num_ranks=4)
    with pytest.raises(UserError, match="number of processes"):
        next(batches)


def test_held_out_batches_are_fixed_and_shared_out(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    alone = list(held_out_batches(source, num_examples=0, batch_size=5))
    assert rows(alone) == rows(held_out_batches(source, num_examples=0, batch_size=7))
    assert [row[0] for row in rows(alone)] == list(range(24))
    for ranks in (2, 3, 7):
        shares = [
            list(held_out_batches(source, num_examples=0, batch_size=5, rank=r, num_ranks=ranks))
            for r in range(ranks)
        ]
        assert rows(itertools.chain(*shares)) == rows(alone)


def test_as_many_held_out_examples_as_asked_for(make_source: Callable[..., Source]):
    source = make_source(MIXED)
    few = rows(held_out_batches(source, num_examples=9, batch_size=4))
    assert len(few) == 9
    assert set(few) < set(rows(held_out_batches(source, num_examples=10_000, batch_size=4)))


def test_a_split_without_tokens_is_refused(make_source: Callable[..., Source]):
    with pytest.raises(UserError, match="train holds no tokens: prepare the text"):
        make_source([])
    source = make_source([3])
    assert isinstance(
        open_source(source.shards, source.special, length=8, pair_fraction=0.0, seed=0), Source
    )


def test_batches_of_a_source_with_words_have_words(make_source: Callable[..., Source]):
    source = make_source(MIXED, with_words=True)
    shares = step(source, 0, 10, micro=1, ranks=4)  # one of them is a row of padding
    for batch in itertools.chain(
        *shares, held_out_batches(source, num_examples=9, batch_size=4), step(source, 1, 8)[0]
    ):
        assert batch.is_word_start is not None
        is_text = batch.input_ids >= 10
        assert torch.equal(batch.is_word_start, ~is_text | (batch.input_ids % 2 == 0))
    assert all(batch.is_word_start is None for batch in step(make_source(MIXED), 0, 10)[0])


def test_data_without_words_is_refused_where_they_are_needed(make_source: Callable[..., Source]):
    source = make_source([3])
    with pytest.raises(UserError, match="does not say where words begin: .* prepare --words"):
        open_source(
            source.shards,
            source.special,
            length=8,
            pair_fraction=0.0,
            seed=0,
            with_words=True,
        )


def test_impossible_batch_settings_are_refused():
    for name, value in (
        ("size", 0),
        ("micro_size", -1),
        ("length", 7),
        ("pair_fraction", 1.5),
        ("num_workers", -1),
    ):
        with pytest.raises(UserError, match=rf"batch.{name} must be .*, got {value}"):
            BatchConfig(**{name: value})
