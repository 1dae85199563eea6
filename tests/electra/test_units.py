"""Words and n-grams are chosen whole, within the budget, by their frequency."""

import itertools

import numpy as np
import pytest
import torch
from pairs import CLS, MASK, ORDINARY, PAD, SEP, SPECIAL
from torch import Tensor

from amber.data import noise
from amber.electra.config import MaskConfig
from amber.electra.mask import Masked, mask
from amber.electra.units import ngram_starts, number_units, word_starts

WORD = MaskConfig(unit="word")
NGRAM = MaskConfig(unit="ngram")
A, B = 7, 8  # two ordinary tokens


def make_rows(words: list[list[int]], width: int) -> tuple[Tensor, Tensor]:
    """Rows of `[CLS] words [SEP]` from the sizes of their words, 0 for a [SEP] between them."""
    ids = torch.full((len(words), width), PAD)
    is_start = torch.ones(len(words), width, dtype=torch.bool)
    for row, sizes in enumerate(words):
        at = 1
        ids[row, 0] = CLS
        for size in sizes:
            ids[row, at : at + size] = A
            is_start[row, at + 1 : at + size] = False
            ids[row, at : at + 1] = A if size else SEP
            at += max(size, 1)
        ids[row, at] = SEP
    return ids, is_start


def numbers(num_rows: int, width: int) -> Tensor:
    """The noise of the first examples of a run."""
    rows = np.arange(num_rows)
    drawn = [noise.uniforms(0, s, 0 * rows, rows, width) for s in noise.BATCH_STREAMS]
    return torch.from_numpy(np.stack(drawn))


def hide(
    ids: Tensor,
    is_start: Tensor | None,
    drawn: Tensor,
    config: MaskConfig,
    frequencies: Tensor | None = None,
) -> Masked:
    """Mask rows of ids."""
    return mask(
        ids,
        ~torch.isin(ids, SPECIAL),
        drawn,
        config,
        mask_id=MASK,
        ordinary_ids=ORDINARY,
        is_word_start=is_start,
        log_frequencies=None if frequencies is None else frequencies.log(),
    )


def chosen(masked: Masked, row: int = 0) -> list[int]:
    """The used positions of one row, in rising order without repetition."""
    found = masked.positions[row, masked.is_used[row]].tolist()
    assert found == sorted(set(found))
    assert not masked.positions[row, ~masked.is_used[row]].any()
    return found


def random_words(num_rows: int, *, longest: int, seed: int = 0) -> list[list[int]]:
    """Sizes of words, up to 62 tokens a row, some with a separator inside."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(num_rows):
        sizes = rng.integers(0, longest + 1, 62).tolist()
        while sum(max(size, 1) for size in sizes) > 62:
            sizes.pop()
        rows.append(sizes[: rng.integers(1, len(sizes) + 1)])
    return rows


def spans_of(sizes: list[int], start: int = 1) -> list[list[int]]:
    """The positions of each word of a row; none for a separator."""
    ends = list(itertools.accumulate((max(size, 1) for size in sizes), initial=start))
    return [list(range(end, end + size)) for end, size in zip(ends[:-1], sizes, strict=True)]


def budget_of(spans: list[list[int]], fraction: float) -> int:
    """As the rule says."""
    total = sum(map(len, spans))
    return min(total, max(1, round(fraction * total)))


def fall_apart(spans: list[list[int]], budget: int) -> list[list[int]]:
    """Words above the budget become tokens."""
    return [
        part for span in spans for part in ([[t] for t in span] if len(span) > budget else [span])
    ]


def take(spans: list[list[int]], keys: Tensor, budget: int) -> list[int]:
    """Take units one after the other while they fit: the rule, written as a loop."""
    taken: list[int] = []
    for span in sorted((s for s in spans if s), key=lambda s: float(keys[s[0]])):
        if len(taken) + len(span) <= budget:
            taken += span
    return sorted(taken)


def by_hand(starts: dict[int, float], width: int) -> Tensor:
    """Noise with these numbers in part 0, and [MASK] everywhere."""
    drawn = torch.full((5, 1, width), 0.99)
    for position, number in starts.items():
        drawn[0, 0, position] = number
    return drawn


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ({1: 0.5, 3: 0.2, 4: 0.1, 7: 0.9}, [4, 5, 6]),  # three tokens, and the budget is used
        ({1: 0.5, 3: 0.1, 4: 0.2, 7: 0.9}, [1, 2, 3]),  # 1, then 3 do not fit, then 2
        ({1: 0.1, 3: 0.9, 4: 0.2, 7: 0.3}, [1, 2, 7]),
    ],
)
def test_whole_words_by_hand(starts: dict[int, float], expected: list[int]):
    ids, is_start = make_rows([[2, 1, 3, 1]], 10)
    drawn = by_hand(starts | {2: 0.0, 5: 0.0, 6: 0.0}, 10)  # only first tokens decide
    masked = hide(ids, is_start, drawn, MaskConfig(unit="word", fraction=0.43))  # of 7 tokens: 3
    assert chosen(masked) == expected
    assert (masked.input_ids[0, expected] == MASK).all()


def test_a_place_for_which_all_words_are_too_long_is_left_over():
    ids, is_start = make_rows([[2, 2, 2]], 8)
    drawn = by_hand({1: 0.5, 3: 0.1, 5: 0.2}, 8)
    config = MaskConfig(unit="word", fraction=0.5)  # of 6 tokens: 3
    assert chosen(hide(ids, is_start, drawn, config)) == [3, 4]


def test_a_word_above_the_budget_falls_apart():
    ids, is_start = make_rows([[6, 1]], 9)
    drawn = by_hand({1: 0.9, 2: 0.1, 3: 0.8, 4: 0.2, 5: 0.8, 6: 0.8, 7: 0.3}, 9)
    config = MaskConfig(unit="word", fraction=0.43)  # of 7 tokens: 3
    assert chosen(hide(ids, is_start, drawn, config)) == [2, 4, 7]


@pytest.mark.parametrize("fraction", [0.15, 0.4])
def test_words_are_taken_as_a_loop_takes_them(fraction: float):
    words = random_words(150, longest=7)
    ids, is_start = make_rows(words, 64)
    drawn = numbers(150, 64)
    masked = hide(ids, is_start, drawn, MaskConfig(unit="word", fraction=fraction))
    for row, sizes in enumerate(words):
        spans = spans_of(sizes)
        budget = budget_of(spans, fraction)
        expected = take(fall_apart(spans, budget), drawn[0, row], budget)
        assert chosen(masked, row) == expected
        assert len(expected) <= budget


def test_a_tail_of_long_words_is_never_cut_nor_the_budget_exceeded():
    words = random_words(200, longest=30, seed=1)  # beyond what 8 rounds are enough for
    ids, is_start = make_rows(words, 64)
    masked = hide(ids, is_start, numbers(200, 64), MaskConfig(unit="word", fraction=0.5))
    for row, sizes in enumerate(words):
        spans = spans_of(sizes)
        budget = budget_of(spans, 0.5)
        found = set(chosen(masked, row))
        assert len(found) <= budget
        assert bool(found) == bool(budget)
        for span in fall_apart(spans, budget):
            assert set(span) <= found or not set(span) & found


def test_the_share_is_kept_with_words_as_long_as_in_english():
    rng = np.random.default_rng(0)  # a fifth of the words has two pieces, a tenth three
    words = [rng.choice([1, 2, 3], 80, p=[0.7, 0.2, 0.1]).tolist() for _ in range(100)]
    ids, is_start = make_rows(words, 256)
    for config in (WORD, NGRAM):
        masked = hide(ids, is_start, numbers(100, 256), config)
        share = float(masked.is_used.sum()) / float(masked.is_maskable.sum())
        assert 0.148 < share < 0.151


def test_a_line_of_chinese_is_never_masked_as_one():
    ids, is_start = make_rows([[2, 2, 2, 1, 2, 1, 2, 1, 1, 2, 1, 6, 1] * 4], 128)  # 96 tokens
    masked = hide(ids.repeat(200, 1), is_start.repeat(200, 1), numbers(200, 128), WORD)
    counts = masked.is_used.sum(dim=1)
    assert int(counts.max()) == 14
    assert int(counts.min()) >= 13


def test_tokens_of_a_word_are_treated_each_for_itself():
    ids, is_start = make_rows([[3]], 5)
    drawn = by_hand({1: 0.1}, 5)
    drawn[1, 0, 1:4] = torch.tensor([0.1, 0.5, 0.9])  # kept, random, [MASK]
    drawn[2] = 0.9999999
    config = MaskConfig(unit="word", fraction=0.99, keep_fraction=0.3, random_fraction=0.3)
    masked = hide(ids, is_start, drawn, config)
    assert masked.input_ids.tolist() == [[CLS, A, 39, MASK, SEP]]


def ngrams_by_hand() -> tuple[Tensor, Tensor]:
    """Eight words of one token; lengths 3, 2, 1, 3, the last cut to 2 by the end."""
    ids, _ = make_rows([[1] * 8], 10)
    drawn = by_hand({1: 0.9, 4: 0.1, 6: 0.2, 7: 0.05}, 10)
    # n in proportion to 1, 1/2, 1/3: up to 6/11 one, up to 9/11 two
    for position, number in {1: 0.82, 4: 0.81, 6: 0.54, 7: 0.9}.items():
        drawn[4, 0, position] = number
    return ids, drawn


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (0.5, [4, 5, 7, 8]),
        (0.38, [6, 7, 8]),  # three: 7 and 8, then 4 and 5 do not fit, then 6
        (0.9, [4, 5, 6, 7, 8]),  # seven: then 1 to 3 do not fit
        (0.25, [7, 8]),  # two: 1 to 3 is above the budget, so its words stand alone
    ],
)
def test_ngrams_by_hand(fraction: float, expected: list[int]):
    ids, drawn = ngrams_by_hand()
    config = MaskConfig(unit="ngram", fraction=fraction)
    assert chosen(hide(ids, torch.ones_like(ids).bool(), drawn, config)) == expected
    assert chosen(hide(ids, None, drawn, config)) == expected  # without words: of tokens


def test_ngrams_of_words_are_the_walk_from_left_to_right():
    words = random_words(200, longest=4)
    ids, is_start = make_rows(words, 64)
    drawn = numbers(200, 64)
    config = MaskConfig(unit="ngram", max_ngram=4, fraction=0.3)
    masked = hide(ids, is_start, drawn, config)
    shares = np.cumsum(1 / np.arange(1, 5)) / (1 / np.arange(1, 5)).sum()
    for row, sizes in enumerate(words):
        spans = spans_of(sizes)
        budget = budget_of(spans, 0.3)
        left = fall_apart(spans, budget)
        joined: list[list[int]] = []
        while left:
            number = float(drawn[4, row, left[0][0]]) if left[0] else 0.0
            length = 1 + int((number >= shares[:-1]).sum())
            run = list(itertools.takewhile(bool, left[:length])) or left[:1]
            left = left[len(run) :]
            whole = sum(run, [])
            joined += run if len(whole) > budget else [whole]
        assert chosen(masked, row) == take(joined, drawn[0, row], budget)


def test_the_lengths_of_ngrams_follow_1_over_n():
    width = 512
    is_maskable = torch.ones(200, width, dtype=torch.bool)
    drawn = numbers(200, width)[4]
    budget = torch.full((200,), width)
    starts = ngram_starts(is_maskable, is_maskable, budget, drawn, max_ngram=3)
    places = starts.flatten().nonzero().flatten()
    counts = torch.diff(places).bincount(minlength=4)[1:].double()
    expected = torch.tensor([6, 3, 2]) / 11 * counts.sum()
    # 200 of 55,000 n-grams may be cut by the end of their row
    assert float(((counts - expected) ** 2 / expected).sum()) < 2 + 5 * 2
    assert counts.shape == (3,)


def test_all_words_are_equally_likely_in_ngrams():
    ids, is_start = make_rows([[1] * 20], 22)
    masked = hide(ids.repeat(4000, 1), is_start.repeat(4000, 1), numbers(4000, 22), NGRAM)
    counts = np.bincount(masked.positions[masked.is_used].numpy(), minlength=22)[1:21]
    share = 20 * counts / counts.sum()
    # up to three fall together, so up to three times the variance of single draws
    deviation = np.sqrt(3 * 20 / counts.sum())
    assert np.abs(share - 1)[1:-1].max() < 4 * deviation
    # n-grams are shorter at the two ends, and fit into a budget of 3 more often
    assert 1 < share[[0, -1]].min() < share[[0, -1]].max() < 1.3


def test_no_word_or_ngram_reaches_over_a_token_that_cannot_be_chosen():
    is_maskable = torch.tensor([[False, True, True, False, True, True, True, False, False]])
    no_start = torch.zeros_like(is_maskable)
    budget = torch.tensor([9])
    starts = word_starts(no_start, is_maskable, budget)
    assert starts.tolist() == [[True, True, False, True, True, False, False, True, True]]
    units = number_units(starts, is_maskable)
    assert units.size.tolist() == [[0, 2, 0, 3, 0, 0, 0, 0, 0]]
    assert units.first.tolist() == [[0, 1, 3, 4, 7, 8, 0, 0, 0]]
    every = torch.ones_like(is_maskable)
    long = torch.full((1, 9), 0.99)
    found = ngram_starts(every, is_maskable, budget, long, max_ngram=9)
    assert found.tolist() == starts.tolist()


@pytest.mark.parametrize("unit", ["token", "word", "ngram"])
@pytest.mark.parametrize("power", [0.0, 0.7])
def test_the_width_of_the_batch_changes_nothing(unit: str, power: float):
    config = MaskConfig(unit=unit, frequency_power=power)
    frequencies = torch.rand(40, generator=torch.Generator().manual_seed(0))
    found = []
    for width in (64, 200):
        ids, is_start = make_rows(random_words(100, longest=5), width)
        drawn = numbers(100, width)
        ids = torch.where(ids == A, 5 + (drawn[3] * 35).long(), ids)
        masked = hide(ids, is_start, drawn, config, frequencies)
        found.append(([chosen(masked, row) for row in range(100)], masked.input_ids[:, :64]))
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("unit", ["token", "word", "ngram"])
def test_a_row_without_ordinary_tokens_has_nothing_chosen(unit: str):
    ids, is_start = make_rows([[], [1, 2]], 8)
    config = MaskConfig(unit=unit, frequency_power=1.0)
    masked = hide(ids, is_start, numbers(2, 8), config, torch.full((40,), 1 / 40))
    assert masked.is_used.sum(dim=1).tolist() == [0, 1]
    assert torch.equal(masked.input_ids[0], ids[0])


@pytest.mark.parametrize("unit", ["token", "word", "ngram"])
def test_equal_frequencies_change_nothing(unit: str):
    ids, is_start = make_rows(random_words(200, longest=3), 64)
    plain = hide(ids, is_start, numbers(200, 64), MaskConfig(unit=unit))
    config = MaskConfig(unit=unit, frequency_power=2.0)
    same = hide(ids, is_start, numbers(200, 64), config, torch.full((40,), 1 / 40))
    assert torch.equal(plain.positions, same.positions)
    assert torch.equal(plain.input_ids, same.input_ids)


@pytest.mark.parametrize(
    ("power", "share"),
    # one of two tokens, with frequencies 0.4 and 0.1: 4 : 1, 2 : 1 and 1 : 4
    [(1.0, 0.8), (0.5, 2 / 3), (-1.0, 0.2)],
)
@pytest.mark.parametrize("unit", ["token", "word"])
def test_units_are_chosen_in_proportion_to_their_frequency(unit: str, power: float, share: float):
    num_rows = 4000
    frequencies = torch.zeros(40)
    frequencies[[A, B]] = torch.tensor([0.4, 0.1])
    if unit == "token":
        ids = torch.tensor([[CLS, A, B, SEP]]).repeat(num_rows, 1)
        is_start = None
    else:  # words of two tokens, and of geometric means 0.4 and 0.1
        frequencies[[10, 11]] = torch.tensor([0.8, 0.2])
        frequencies[[12, 13]] = torch.tensor([0.05, 0.2])
        ids = torch.tensor([[CLS, 10, 11, 12, 13, SEP]]).repeat(num_rows, 1)
        is_start = torch.tensor([[True, True, False, True, False, True]]).repeat(num_rows, 1)
    config = MaskConfig(unit=unit, fraction=0.5, frequency_power=power)
    masked = hide(ids, is_start, numbers(num_rows, ids.shape[1]), config, frequencies)
    assert int(masked.is_used.sum()) == num_rows * (1 if unit == "token" else 2)
    found = float((masked.positions[:, 0] == 1).float().mean())
    assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / num_rows)


def test_the_weights_hold_for_the_second_draw_too():
    # weights 3, 2, 1, two drawn: the third stays over with 3/6 * 2/3 + 2/6 * 3/4 = 7/12
    num_rows = 4000
    frequencies = torch.zeros(40)
    frequencies[[5, 6, 7]] = torch.tensor([0.3, 0.2, 0.1])
    ids = torch.tensor([[CLS, 5, 6, 7, SEP]]).repeat(num_rows, 1)
    config = MaskConfig(fraction=0.6, frequency_power=1.0)
    masked = hide(ids, None, numbers(num_rows, 5), config, frequencies)
    found = float((masked.positions[:, :2] == torch.tensor([1, 2])).all(dim=1).float().mean())
    assert abs(found - 7 / 12) < 4 * np.sqrt(7 / 12 * 5 / 12 / num_rows)


def test_a_token_that_was_never_seen_counts_as_the_rarest():
    frequencies = torch.zeros(40)
    frequencies[[A, B]] = torch.tensor([0.9, 0.1])
    drawn = numbers(500, 6)
    config = MaskConfig(fraction=0.5, frequency_power=1.0)
    found = [
        hide(torch.tensor([[CLS, A, third, 30, A, SEP]]).repeat(500, 1), None, drawn, config, f)
        for third, f in ((B, frequencies), (31, frequencies))
    ]
    assert torch.equal(found[0].positions, found[1].positions)
    assert found[0].is_used.sum() == 1000


def test_a_number_of_0_comes_first_however_rare_the_token():
    frequencies = torch.tensor([1e-9] * 40).index_fill(0, torch.tensor([A]), 0.9)
    drawn = by_hand({1: 1e-7, 2: 0.0}, 4)
    ids = torch.tensor([[CLS, A, B, SEP]])
    config = MaskConfig(fraction=0.5, frequency_power=2.0)
    assert chosen(hide(ids, None, drawn, config, frequencies)) == [2]


def test_what_the_settings_need_must_be_given():
    ids, _ = make_rows([[1, 2]], 8)
    with pytest.raises(ValueError, match="unit word needs is_word_start"):
        hide(ids, None, numbers(1, 8), WORD)
    with pytest.raises(ValueError, match="frequency_power 1.0 needs log_frequencies"):
        hide(ids, None, numbers(1, 8), MaskConfig(frequency_power=1.0))
