"""Every token once, never across documents, padding counted."""

from collections.abc import Callable

import numpy as np
import pytest

from amber.data.batch import Batch, build_batch
from amber.data.examples import Examples, index_examples
from amber.data.loader import Source

MIXED = [20, 1, 60, 0, 120, 300, 2, 1000, 29, 30, 31, 58, 59, 1, 3]


def layout(lengths: list[int], *, length: int = 32, pair_fraction: float = 0.0) -> Examples:
    """Lay out documents of these lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return index_examples(offsets, length=length, pair_fraction=pair_fraction, seed=0)


def all_spans(examples: Examples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The spans of one epoch."""
    return examples.spans(np.arange(examples.count, dtype=np.int64))


def whole_epoch(source: Source) -> Batch:
    """All examples of a source as one batch of full width."""
    examples = np.arange(source.layout.count, dtype=np.int64)
    return build_batch(
        source.shards,
        source.layout,
        source.special,
        examples=examples,
        epochs=np.zeros_like(examples),
        seed=0,
        multiple=source.layout.length,
    )


def test_a_document_is_cut_into_full_runs_and_a_rest():
    # length 32: 30 tokens fit. 61 tokens: 30, 30, 1.
    starts, stops, in_a = all_spans(layout([7, 61, 30]))
    assert starts.tolist() == [0, 7, 37, 67, 68]
    assert stops.tolist() == [7, 37, 67, 68, 98]
    assert in_a.tolist() == [7, 30, 30, 1, 30]


@pytest.mark.parametrize("pair_fraction", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("length", [8, 32, 128])
def test_every_token_is_in_exactly_one_example(length: int, pair_fraction: float):
    starts, stops, _ = all_spans(layout(MIXED, length=length, pair_fraction=pair_fraction))
    covered = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
    assert covered.tolist() == list(range(sum(MIXED)))


@pytest.mark.parametrize("pair_fraction", [0.0, 1.0])
def test_no_example_crosses_a_document(pair_fraction: float):
    examples = layout(MIXED, pair_fraction=pair_fraction)
    starts, stops, _ = all_spans(examples)
    document = np.searchsorted(examples.offsets, starts, side="right") - 1
    assert (stops <= examples.offsets[document + 1]).all()
    assert (stops > starts).all()


@pytest.mark.parametrize("line", [20, 60, 120, 300, 1000])
def test_lines_of_any_length_are_used_whole(line: int):
    # The builder of the official code keeps 90, 70, 53, 42 and 13 % of them.
    starts, stops, _ = all_spans(layout([line] * 50, length=128, pair_fraction=0.9))
    assert (stops - starts).sum() == 50 * line


@pytest.mark.parametrize(("pair_fraction", "capacity"), [(0.0, 30), (1.0, 29)])
def test_only_the_last_example_of_a_document_is_short(pair_fraction: float, capacity: int):
    examples = layout(MIXED, pair_fraction=pair_fraction)
    starts, stops, _ = all_spans(examples)
    is_last = np.isin(stops, examples.offsets)
    assert ((stops - starts)[~is_last] == capacity).all()
    assert (~is_last).any()


def test_a_pair_is_cut_evenly_in_its_middle_half():
    starts, stops, in_a = all_spans(layout([29] * 4000, pair_fraction=1.0))
    assert (stops - starts == 29).all()
    # 29 tokens: the middle half is 7 to 22; segment a ends somewhere in it.
    assert (in_a.min(), in_a.max()) == (7, 21)
    counts = np.bincount(in_a)[7:22]
    expected = 4000 / 15
    assert ((counts - expected) ** 2 / expected).sum() < 14 + 5 * np.sqrt(28)


@pytest.mark.parametrize("tokens", range(2, 30))
def test_both_segments_of_a_pair_hold_something(tokens: int):
    _, _, in_a = all_spans(layout([tokens] * 50, pair_fraction=1.0))
    assert in_a.min() >= max(1, tokens // 4)
    assert in_a.max() <= min(tokens - 1, tokens - tokens // 4)


def test_a_document_of_one_token_is_single_in_both_layouts():
    for pair_fraction in (0.0, 1.0):
        starts, stops, in_a = all_spans(layout([1, 1], pair_fraction=pair_fraction))
        assert (starts.tolist(), stops.tolist(), in_a.tolist()) == ([0, 1], [1, 2], [1, 1])


def test_the_pair_fraction_is_met_over_documents():
    examples = layout([20] * 4000, pair_fraction=0.3)
    share = (examples.capacity == 29).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)
    _, _, in_a = all_spans(examples)
    assert ((in_a < 20) == (examples.capacity == 29)).all()


def test_the_layout_of_a_document_depends_on_the_seed():
    offsets = np.arange(0, 2001, 20, dtype=np.int64)
    made = [index_examples(offsets, length=32, pair_fraction=0.5, seed=s) for s in (0, 0, 1)]
    assert np.array_equal(made[0].capacity, made[1].capacity)
    assert not np.array_equal(made[0].capacity, made[2].capacity)


def test_documents_without_tokens_have_no_example():
    assert layout([0, 5, 0, 0, 3, 0]).count == 2
    starts, stops, _ = all_spans(layout([0, 5, 0, 0, 3, 0]))
    assert (starts.tolist(), stops.tolist()) == ([0, 5], [5, 8])


def test_padding_by_hand():
    # length 32, single: 61 = 30 + 30 + 1 tokens, the rest has 29 places over.
    assert layout([61]).padding() == 29
    # pair: 61 = 29 + 29 + 3, [CLS] 1 [SEP] 2 [SEP]: 26 places over.
    assert layout([61], pair_fraction=1.0).padding() == 26
    # pair: 59 = 29 + 29 + 1, and the last is [CLS] 1 [SEP]: 29 places over, not 28.
    assert layout([59], pair_fraction=1.0).padding() == 29


@pytest.mark.parametrize("pair_fraction", [0.0, 0.5, 1.0])
def test_padding_equals_what_the_batches_show(
    make_source: Callable[..., Source], pair_fraction: float
):
    source = make_source(MIXED, pair_fraction=pair_fraction)
    batch = whole_epoch(source)
    assert source.layout.padding() == int((~batch.attention_mask).sum())
    assert batch.input_ids.shape == (source.layout.count, 32)
