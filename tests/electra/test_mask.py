"""Distinct positions, the exact share, never a special token."""

import numpy as np
import pytest
import torch
from pairs import CLS, MASK, ORDINARY, PAD, SEP, SPECIAL, hide, make_batch

from amber.data import noise
from amber.data.batch import Batch
from amber.electra.config import MaskConfig
from amber.electra.mask import Masked, mask, num_slots
from amber.errors import UserError


def chosen(masked: Masked, row: int) -> list[int]:
    """The used positions of one row."""
    return masked.positions[row, masked.is_used[row]].tolist()


def many_rows(lengths: list[int], width: int = 128) -> Batch:
    """Rows whose noise comes from amber's own numbers."""
    batch = make_batch([min(length, 64) for length in lengths], width=64)
    examples = np.arange(len(lengths))
    epochs = np.zeros_like(examples)
    numbers = [noise.uniforms(0, s, epochs, examples, width) for s in noise.BATCH_STREAMS]
    real = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    ids = torch.where(real, 7, PAD)
    ids[:, 0] = CLS
    ids[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = SEP
    return Batch(
        input_ids=ids,
        attention_mask=real,
        token_type_ids=torch.zeros_like(ids),
        noise=torch.from_numpy(np.stack(numbers)),
        examples=batch.examples,
    )


@pytest.mark.parametrize(
    ("maskable", "fraction", "count"),
    # round(0.15 n), halves to even (0.15 * 10 = 1.5 -> 2, 0.25 * 10 = 2.5 -> 2), at least 1
    [(1, 0.15, 1), (3, 0.15, 1), (10, 0.15, 2), (20, 0.15, 3), (126, 0.15, 19), (10, 0.25, 2)],
)
def test_the_number_of_chosen_positions(maskable: int, fraction: float, count: int):
    batch = many_rows([maskable + 2])
    masked = hide(batch, MaskConfig(fraction=fraction))
    assert int(masked.is_used.sum()) == count
    assert len(set(chosen(masked, 0))) == count


def test_each_row_counts_for_itself_padded_or_not():
    lengths = [3, 12, 22, 64, 128]
    masked = hide(many_rows(lengths))
    assert masked.is_used.sum(dim=1).tolist() == [1, 2, 3, 9, 19]
    for row, length in enumerate(lengths):
        alone = hide(many_rows(lengths, width=128))
        assert chosen(masked, row) == chosen(alone, row)
        assert all(0 < position < length - 1 for position in chosen(masked, row))


def test_the_width_of_the_batch_changes_nothing():
    narrow, wide = (hide(many_rows([5, 20, 24], width=width)) for width in (24, 128))
    for row in range(3):
        assert chosen(narrow, row) == chosen(wide, row)
    assert torch.equal(narrow.input_ids, wide.input_ids[:, :24])


def test_fifteen_percent_of_a_thousand_mixed_rows_are_chosen():
    lengths = np.random.default_rng(0).integers(10, 129, 1000).tolist()
    batch = many_rows(lengths)
    masked = hide(batch)
    share = float(masked.is_used.sum()) / (sum(lengths) - 2 * len(lengths))
    assert abs(share - 0.15) < 0.003
    for row in range(len(lengths)):
        assert len(set(chosen(masked, row))) == len(chosen(masked, row))


def test_all_positions_are_equally_likely():
    masked = hide(many_rows([22] * 4000, width=24))  # 3 of 20
    counts = np.bincount(masked.positions[masked.is_used].numpy(), minlength=24)
    assert counts[[0, 21, 22, 23]].sum() == 0
    expected = 4000 * 3 / 20
    chi_square = ((counts[1:21] - expected) ** 2 / expected).sum()
    assert abs(chi_square - 19) < 5 * np.sqrt(2 * 19)


def test_special_tokens_inside_a_row_are_never_chosen():
    batch = make_batch([40, 64], width=64)
    batch.input_ids[:, 10:30:2] = torch.tensor([PAD, CLS, SEP, MASK, SEP] * 2)
    for fraction in (0.15, 0.9):
        masked = hide(batch, MaskConfig(fraction=fraction))
        ids = batch.input_ids.gather(1, masked.positions)[masked.is_used]
        assert not torch.isin(ids, SPECIAL).any()
        # 38 and 62 places between the ends, less 10 special ones
        assert masked.is_used.sum(dim=1).tolist() == [round(fraction * 28), round(fraction * 52)]


def test_the_official_treatment_is_85_mask_15_keep():
    batch = many_rows([128] * 500)
    masked = hide(batch)
    shown = masked.input_ids.gather(1, masked.positions)[masked.is_used]
    share = float((shown == MASK).float().mean())
    assert abs(share - 0.85) < 4 * np.sqrt(0.85 * 0.15 / len(shown))
    assert set(shown.tolist()) == {7, MASK}


def test_keep_and_random_shares_as_in_bert():
    batch = many_rows([128] * 500)
    masked = hide(batch, MaskConfig(keep_fraction=0.1, random_fraction=0.1))
    shown = masked.input_ids.gather(1, masked.positions)[masked.is_used]
    is_mask, is_kept = shown == MASK, shown == 7
    is_random = ~is_mask & ~is_kept
    deviation = np.sqrt(0.1 * 0.9 / len(shown))
    # one random token in 35 is the 7 of the text
    assert abs(float(is_random.float().mean()) - 0.1 * 34 / 35) < 4 * deviation
    assert abs(float(is_kept.float().mean()) - 0.1 * 36 / 35) < 4 * deviation
    assert abs(float(is_mask.float().mean()) - 0.8) < 4 * np.sqrt(0.8 * 0.2 / len(shown))


def test_random_tokens_are_ordinary_and_all_equally_likely():
    batch = many_rows([128] * 500)
    masked = hide(batch, MaskConfig(keep_fraction=0.0, random_fraction=1.0))
    shown = masked.input_ids.gather(1, masked.positions)[masked.is_used]
    counts = np.bincount(shown.numpy(), minlength=40)
    assert counts[:5].sum() == 0
    expected = len(shown) / 35
    assert abs(((counts[5:] - expected) ** 2 / expected).sum() - 34) < 5 * np.sqrt(2 * 34)


def test_positions_rise_and_unused_slots_hold_0_and_change_nothing():
    masked = hide(many_rows([12, 128]))
    assert masked.positions.shape == (2, 19)
    assert masked.is_used[0].tolist() == [True] * 2 + [False] * 17
    assert masked.positions[0, 2:].tolist() == [0] * 17
    for row in (0, 1):
        assert chosen(masked, row) == sorted(chosen(masked, row))
    assert (masked.input_ids[:, 0] == CLS).all()


def test_unchosen_tokens_stay_as_they_are():
    batch = make_batch([40, 64, 9], width=64)
    masked = hide(batch)
    is_chosen = torch.zeros_like(batch.attention_mask).scatter_(1, masked.positions, masked.is_used)
    assert torch.equal(masked.input_ids[~is_chosen], batch.input_ids[~is_chosen])


def test_special_tokens_lose_against_the_largest_numbers():
    batch = make_batch([8], width=16)
    batch.noise[0] = 0.0
    batch.noise[0, 0, 1:7] = 1.0 - 2.0**-24
    assert chosen(hide(batch, MaskConfig(fraction=0.99)), 0) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("length", [0, 2])
def test_a_row_without_ordinary_tokens_has_nothing_chosen(length: int):
    batch = make_batch([length, 20], width=24)
    masked = hide(batch)
    assert masked.is_used[0].sum() == 0
    assert masked.is_used[1].sum() == 3
    assert torch.equal(masked.input_ids[0], batch.input_ids[0])


def test_the_positions_with_the_smallest_numbers_are_chosen():
    batch = make_batch([8], width=8)
    batch.noise[0, 0] = torch.tensor([0.0, 0.9, 0.5, 0.2, 0.6, 0.1, 0.8, 0.05])
    batch.noise[1] = 0.5
    masked = hide(batch, MaskConfig(fraction=0.34))
    assert chosen(masked, 0) == [3, 5]
    assert masked.input_ids[0, [3, 5]].tolist() == [MASK, MASK]


def test_the_treatment_of_each_position_by_hand():
    ids = torch.tensor([[CLS, 11, 12, 13, SEP]])
    numbers = torch.zeros(5, 1, 5)
    numbers[1, 0] = torch.tensor([0.0, 0.19, 0.2, 0.5, 0.0])  # keep, random, [MASK]
    numbers[2, 0] = 0.9999999
    masked = mask(
        ids,
        torch.tensor([[False, True, True, True, False]]),
        numbers,
        MaskConfig(fraction=0.99, keep_fraction=0.2, random_fraction=0.3),
        mask_id=MASK,
        ordinary_ids=ORDINARY,
    )
    assert masked.input_ids.tolist() == [[CLS, 11, 39, MASK, SEP]]


def test_the_tokens_that_could_be_chosen_are_handed_on():
    batch = make_batch([40, 9], width=64)
    masked = hide(batch)
    assert masked.is_maskable.sum(dim=1).tolist() == [38, 7]
    assert not masked.is_maskable[:, 0].any()


def test_there_are_slots_for_a_whole_row():
    assert [num_slots(n, 0.15) for n in (1, 8, 128, 512)] == [1, 1, 19, 77]
    assert num_slots(128, 0.25) == 32


def test_impossible_shares_are_refused():
    for settings, name in (
        ({"fraction": 0.0}, "mask.fraction"),
        ({"fraction": 1.0}, "mask.fraction"),
        ({"keep_fraction": -0.1}, "mask.keep_fraction"),
        ({"random_fraction": 1.1}, "mask.random_fraction"),
        ({"keep_fraction": 0.6, "random_fraction": 0.6}, "must not exceed 1 together"),
        ({"max_ngram": 1}, "mask.max_ngram must be at least 2"),
        ({"frequency_power": float("nan")}, "mask.frequency_power must be finite"),
    ):
        with pytest.raises(UserError, match=name):
            MaskConfig(**settings)
