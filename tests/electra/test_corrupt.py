"""A sample lands on its own mask, follows the softmax, and is labelled by its content."""

import numpy as np
import pytest
import torch
from pairs import CLS, MASK, PAD, SEP, SPECIAL
from torch import Tensor

from amber.data import noise
from amber.electra.corrupt import corrupt

NONE = torch.zeros(0, dtype=torch.long)
IDS = torch.tensor([[101, 7, 8, 9, 102]])  # [CLS] a b c [SEP]
USED = torch.tensor([[True]])
HALF = torch.tensor([[0.5]])


def certain(token: int, size: int = 200) -> Tensor:
    """Logits under which sampling always returns `token`."""
    return torch.full((1, 1, size), -1e4).index_fill(2, torch.tensor([token]), 1e4)


def sample(logits: Tensor, uniforms: Tensor, **settings: float) -> Tensor:
    """Sample once per number from one distribution; return the tokens."""
    n = len(uniforms)
    first = torch.zeros(n, 1, dtype=torch.long)
    ids, _ = corrupt(
        torch.full((n, 1), 6),
        first,
        torch.ones(n, 1, dtype=torch.bool),
        logits.expand(n, 1, -1),
        uniforms.unsqueeze(1),
        forbidden_ids=settings.pop("forbidden_ids", NONE),
        **settings,
    )
    return ids[:, 0]


def evenly(n: int) -> Tensor:
    """Evenly spaced numbers: each frequency is then within 1/n of its probability."""
    return (torch.arange(n) + 0.5) / n


def drawn(n: int) -> Tensor:
    """Amber's own numbers."""
    examples = np.arange(n)
    values = noise.uniforms(0, noise.SAMPLE, np.zeros_like(examples), examples, 1)
    return torch.from_numpy(values[:, 0])


def test_a_wrong_guess_counts_as_replaced():
    ids, is_replaced = corrupt(
        IDS, torch.tensor([[2]]), USED, certain(50), HALF, forbidden_ids=NONE
    )
    assert ids.tolist() == [[101, 7, 50, 9, 102]]
    assert is_replaced.tolist() == [[False, False, True, False, False]]


def test_a_right_guess_counts_as_original():
    ids, is_replaced = corrupt(IDS, torch.tensor([[2]]), USED, certain(8), HALF, forbidden_ids=NONE)
    assert ids.equal(IDS)
    assert not is_replaced.any()


def test_an_unused_slot_changes_nothing():
    ids, is_replaced = corrupt(
        IDS, torch.tensor([[0]]), ~USED, certain(50), HALF, forbidden_ids=NONE
    )
    assert ids.equal(IDS)
    assert not is_replaced.any()


def test_one_right_and_one_wrong_guess_in_one_row():
    logits = torch.cat([certain(7), certain(60)], dim=1)
    ids, is_replaced = corrupt(
        IDS,
        torch.tensor([[1, 3]]),
        torch.tensor([[True, True]]),
        logits,
        torch.tensor([[0.1, 0.9]]),
        forbidden_ids=NONE,
    )
    assert ids.tolist() == [[101, 7, 8, 60, 102]]
    assert is_replaced.tolist() == [[False, False, False, True, False]]


def test_samples_land_on_their_own_masks():
    # All mass on 10 + p at position p, masks at 2 and 5: 12 and 15, never 10 and 11.
    logits = torch.cat([certain(12), certain(15)], dim=1)
    text = torch.tensor([[30, 31, 32, 33, 34, 35]])
    used = torch.tensor([[True, True]])
    numbers = torch.full((1, 2), 0.5)
    ids, _ = corrupt(text, torch.tensor([[2, 5]]), used, logits, numbers, forbidden_ids=NONE)
    assert ids.tolist() == [[30, 31, 12, 33, 34, 15]]


def test_masks_only_in_the_last_of_three_sequences():
    text = torch.tensor([[30, 31, 32, 33, 34, 35]] * 3)
    positions = torch.tensor([[0, 0], [0, 0], [2, 5]])
    used = torch.tensor([[False, False], [False, False], [True, True]])
    logits = torch.full((3, 2, 200), -1e4)
    for row in range(3):
        for slot in range(2):  # in the unused slots, too, mass on 10 + position
            logits[row, slot, 10 + int(positions[row, slot])] = 1e4
    ids, is_replaced = corrupt(
        text, positions, used, logits, torch.full((3, 2), 0.5), forbidden_ids=NONE
    )
    assert torch.equal(ids[:2], text[:2])
    assert ids[2].tolist() == [30, 31, 12, 33, 34, 15]
    assert is_replaced.nonzero().tolist() == [[2, 2], [2, 5]]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax_at_the_given_temperature(temperature: float):
    n = 20_000
    logits = torch.tensor([0.0, 1.0, 2.0])
    found = sample(logits, evenly(n), temperature=temperature)
    frequency = found.bincount(minlength=3) / n
    expected = (logits / temperature).softmax(0)
    torch.testing.assert_close(frequency, expected, atol=2 / n, rtol=0.0)


def test_drawn_samples_pass_a_chi_square_test_against_the_softmax():
    n = 20_000
    logits = torch.linspace(-2.0, 2.0, 30).flip(0)
    expected = n * logits.double().softmax(0).numpy()
    counts = sample(logits, drawn(n)).bincount(minlength=30).numpy()
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - 29) < 5 * np.sqrt(2 * 29)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_of_the_mass_gives_half_of_the_samples_in_every_precision(dtype: torch.dtype):
    # Noise made in the logits' own type gives 0.978 in bfloat16 and 0.622 in float16.
    logits = torch.full((1000,), 0.5 / 999).log()
    logits[0] = np.log(0.5)
    share = float((sample(logits.to(dtype), drawn(20_000)) == 0).float().mean())
    assert abs(share - 0.5) < 0.015


def test_low_precision_logits_are_sampled_in_float32_under_autocast():
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = sample(logits, drawn(2000))
    assert torch.equal(found, sample(logits.float(), drawn(2000)))


def test_a_large_vocabulary_is_covered_evenly_to_its_end():
    n = 400
    found = sample(torch.zeros(30_522), evenly(n))
    # The sum of 30,522 float32 numbers is off by less than a thousandth.
    assert (found - (evenly(n) * 30_522).long()).abs().max() < 30
    assert found.max() > 30_400


def test_forbidden_tokens_are_never_sampled_however_likely():
    logits = torch.zeros(12)
    logits[PAD] = 100.0
    logits[[CLS, SEP, MASK]] = 50.0
    found = sample(logits, evenly(3000), forbidden_ids=SPECIAL)
    # the other 8 share the mass
    assert found.bincount(minlength=12).tolist() == [0, 375, 0, 0, 0, *[375] * 7]


@pytest.mark.parametrize("number", [0.0, 1.0 - 2.0**-24])
def test_the_first_and_the_last_number_give_possible_tokens(number: float):
    logits = torch.randn(64, 30_522, generator=torch.Generator().manual_seed(0))
    logits[:, -1] = -torch.inf
    ids, _ = corrupt(
        torch.full((64, 1), PAD),
        torch.zeros(64, 1, dtype=torch.long),
        torch.ones(64, 1, dtype=torch.bool),
        logits.unsqueeze(1),
        torch.full((64, 1), number),
        forbidden_ids=SPECIAL,
    )
    assert not torch.isin(ids, SPECIAL).any()  # [PAD] would say that no token was found
    assert ids.max() < 30_521


def test_a_number_on_the_border_takes_the_next_token():
    # Four equal shares after the forbidden 0, 2, 3, 4: [0, 1/4) is 1, [1/4, 1/2) is 5, ...
    found = sample(torch.zeros(8), torch.tensor([0.0, 0.25, 0.5, 0.75]), forbidden_ids=SPECIAL)
    assert found.tolist() == [1, 5, 6, 7]


def test_no_gradient_passes_and_the_logits_stay_as_they_are():
    logits = certain(50).requires_grad_()
    before = logits.detach().clone()
    ids, is_replaced = corrupt(
        IDS, torch.tensor([[2]]), USED, logits, HALF, forbidden_ids=torch.tensor([50])
    )
    assert not ids.requires_grad
    assert not is_replaced.requires_grad
    assert torch.equal(logits, before)


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float):
    with pytest.raises(ValueError, match="temperature must be > 0"):
        sample(torch.zeros(5), HALF[0], temperature=temperature)
