"""A sample lands on its own mask, and the labels say by content or by source what is replaced."""

import pytest
import torch
from pairs import ORDINARY, hide, make_batch

from amber.electra.corrupt import corrupt, replace_at_random, replaced_labels

IDS = torch.tensor([[101, 7, 8, 9, 102]])  # [CLS] a b c [SEP]
USED = torch.tensor([[True]])


def one(*values: int) -> torch.Tensor:
    return torch.tensor([values])


def labels(ids: torch.Tensor, *chosen: int, rule: str = "content") -> list[int]:
    """Places labelled replaced."""
    is_chosen = torch.zeros_like(ids, dtype=torch.bool)
    is_chosen[0, list(chosen)] = True
    return replaced_labels(IDS, ids, is_chosen, rule=rule)[0].nonzero()[:, 0].tolist()


def test_a_wrong_guess_counts_as_replaced():
    ids = corrupt(IDS, one(2), USED, one(50))
    assert ids.tolist() == [[101, 7, 50, 9, 102]]
    assert labels(ids, 2) == labels(ids, 2, rule="source") == [2]


def test_a_right_guess_counts_as_original_by_content_and_as_replaced_by_source():
    ids = corrupt(IDS, one(2), USED, one(8))
    assert ids.equal(IDS)
    assert labels(ids, 2) == []
    assert labels(ids, 2, rule="source") == [2]


def test_an_unused_slot_changes_nothing():
    ids = corrupt(IDS, one(0), ~USED, one(50))
    assert ids.equal(IDS)


def test_one_right_and_one_wrong_guess_in_one_row():
    ids = corrupt(IDS, one(1, 3), torch.tensor([[True, True]]), one(7, 60))
    assert ids.tolist() == [[101, 7, 8, 60, 102]]
    assert labels(ids, 1, 3) == [3]
    assert labels(ids, 1, 3, rule="source") == [1, 3]


def test_samples_land_on_their_own_masks():
    text = one(30, 31, 32, 33, 34, 35)
    ids = corrupt(text, one(2, 5), torch.tensor([[True, True]]), one(12, 15))
    assert ids.tolist() == [[30, 31, 12, 33, 34, 15]]


def test_masks_only_in_the_last_of_three_sequences():
    text = torch.tensor([[30, 31, 32, 33, 34, 35]] * 3)
    positions = torch.tensor([[0, 0], [0, 0], [2, 5]])
    used = torch.tensor([[False, False], [False, False], [True, True]])
    ids = corrupt(text, positions, used, 10 + positions)
    assert torch.equal(ids[:2], text[:2])
    assert ids[2].tolist() == [30, 31, 12, 33, 34, 15]
    is_chosen = torch.zeros_like(text, dtype=torch.bool).scatter(1, positions, used)
    for rule in ("content", "source"):
        found = replaced_labels(text, ids, is_chosen, rule=rule)
        assert found.nonzero().tolist() == [[2, 2], [2, 5]]


def test_used_and_unused_slots_in_one_row():
    used = torch.tensor([[True, False, False]])
    ids = corrupt(IDS, one(3, 0, 0), used, one(60, 50, 51))
    assert ids.tolist() == [[101, 7, 8, 60, 102]]


def test_random_tokens_by_hand():
    # Of the open places 1, 3, 4 those with a number below 1/4 are replaced: 1 and 4. The pick of
    # 35 tokens from 5 on: 0.0 takes 5, 0.5 takes 5 + 17, just below 1 the last.
    is_open = torch.tensor([[False, True, False, True, True, True]])
    noise = torch.zeros(5, 1, 6)
    noise[1, 0] = torch.tensor([0.0, 0.1, 0.0, 0.25, 0.2, 0.2499])
    noise[2, 0] = torch.tensor([0.3, 0.0, 0.3, 0.3, 0.5, 1.0 - 2.0**-24])
    text = one(2, 10, 11, 12, 13, 14)
    ids = replace_at_random(text, is_open, noise, fraction=0.25, ordinary_ids=ORDINARY)
    assert ids.tolist() == [[2, 5, 11, 12, 22, 39]]
    assert text.tolist() == [[2, 10, 11, 12, 13, 14]]


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_the_share_of_random_tokens_is_right_and_all_kinds_occur(fraction: float):
    batch = make_batch([64] * 100, width=64)
    masked = hide(batch)
    chosen = torch.zeros_like(masked.is_maskable).scatter(1, masked.positions, masked.is_used)
    is_open = masked.is_maskable & ~chosen
    ids = replace_at_random(
        batch.input_ids, is_open, batch.noise, fraction=fraction, ordinary_ids=ORDINARY
    )
    changed = ids != batch.input_ids
    assert not (changed & ~is_open).any()
    n, share = int(is_open.sum()), fraction * 34 / 35  # 1 of 35 is the token itself
    assert abs(int(changed.sum()) / n - share) < 4 * (share * (1 - share) / n) ** 0.5
    assert ids[changed].unique().tolist() == ORDINARY.tolist()


def test_a_random_token_outside_the_chosen_ones_is_replaced_by_both_rules():
    ids = one(101, 7, 8, 60, 102)
    assert labels(ids, 1) == [3]
    assert labels(ids, 1, rule="source") == [1, 3]
