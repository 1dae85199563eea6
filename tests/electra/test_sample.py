"""Replacements follow the stated distribution; what must not be drawn is not."""

import numpy as np
import pytest
import torch
from pairs import CLS, COUNTS, MASK, PAD, SEP, SPECIAL
from torch import Tensor

from amber.data import noise
from amber.electra.sample import draw, draw_fixed, restrict

NONE = torch.zeros(0, dtype=torch.long)
OUT = -torch.inf


def evenly(n: int) -> Tensor:
    """Evenly spaced numbers: each frequency is then within 1/n of its probability."""
    return (torch.arange(n) + 0.5) / n


def drawn(n: int) -> Tensor:
    """Amber's own numbers."""
    examples = np.arange(n)
    values = noise.uniforms(0, noise.SAMPLE, np.zeros_like(examples), examples, 1)
    return torch.from_numpy(values[:, 0])


def log(*chances: float) -> Tensor:
    """Scores of some probabilities."""
    return torch.tensor(chances).log()


def kept(scores: Tensor, **settings: float) -> list[int]:
    """The tokens that may be drawn."""
    found = restrict(scores, forbidden_ids=settings.pop("forbidden_ids", NONE), **settings)
    return found.isfinite().nonzero()[:, 0].tolist()


def sample(scores: Tensor, uniforms: Tensor, **settings: float) -> Tensor:
    """Sample once per number from one distribution; return the tokens."""
    n = len(uniforms)
    forbidden = settings.pop("forbidden_ids", NONE)
    allowed = restrict(scores.expand(n, -1), forbidden_ids=forbidden, **settings)
    tokens, is_possible = draw(allowed, uniforms)
    assert is_possible.all()
    return tokens


def frequencies(tokens: Tensor, size: int) -> Tensor:
    return tokens.bincount(minlength=size) / len(tokens)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax_at_the_given_temperature(temperature: float):
    n = 20_000
    scores = torch.tensor([0.0, 1.0, 2.0])
    found = frequencies(sample(scores, evenly(n), temperature=temperature), 3)
    expected = (scores / temperature).softmax(0)
    torch.testing.assert_close(found, expected, atol=2 / n, rtol=0.0)


def test_drawn_samples_pass_a_chi_square_test_against_the_softmax():
    n = 20_000
    scores = torch.linspace(-2.0, 2.0, 30).flip(0)
    expected = n * scores.double().softmax(0).numpy()
    counts = sample(scores, drawn(n)).bincount(minlength=30).numpy()
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert abs(chi_square - 29) < 5 * np.sqrt(2 * 29)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_of_the_mass_gives_half_of_the_samples_in_every_precision(dtype: torch.dtype):
    # Noise made in the scores' own type gives 0.978 in bfloat16 and 0.622 in float16.
    scores = torch.full((1000,), 0.5 / 999).log()
    scores[0] = np.log(0.5)
    share = float((sample(scores.to(dtype), drawn(20_000)) == 0).float().mean())
    assert abs(share - 0.5) < 0.015


@pytest.mark.parametrize("is_autocast", [False, True])
def test_low_precision_scores_are_restricted_and_sampled_in_float32(is_autocast: bool):
    scores = torch.randn(1000, generator=torch.Generator().manual_seed(0)).bfloat16()
    settings = {"temperature": 0.7, "top_k": 300, "top_p": 0.8}
    exact = restrict(scores.float(), forbidden_ids=NONE, **settings)
    expected, _ = draw(exact.expand(2000, -1), drawn(2000))
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_autocast):
        allowed = restrict(scores, forbidden_ids=NONE, **settings)
        found, _ = draw(allowed.expand(2000, -1), drawn(2000))
        fixed, _ = draw_fixed(allowed, drawn(2000))
    assert allowed.dtype == torch.float32
    assert torch.equal(allowed, exact)
    assert torch.equal(found, expected)
    assert torch.equal(fixed, draw_fixed(exact, drawn(2000))[0])


def test_restricting_does_not_change_what_it_is_given():
    scores = torch.randn(3, 9, generator=torch.Generator().manual_seed(0))
    before = scores.clone()
    excluded = torch.tensor([1, 2, 3])
    restrict(scores, forbidden_ids=torch.tensor([0]), temperature=2.0, top_k=3, excluded=excluded)
    assert torch.equal(scores, before)


def test_a_large_vocabulary_is_covered_evenly_to_its_end():
    n = 400
    found = sample(torch.zeros(30_522), evenly(n))
    # The sum of 30,522 float32 numbers is off by less than a thousandth.
    assert (found - (evenly(n) * 30_522).long()).abs().max() < 30
    assert found.max() > 30_400


def test_forbidden_tokens_are_never_sampled_however_likely():
    scores = torch.zeros(12)
    scores[PAD] = 100.0
    scores[[CLS, SEP, MASK]] = 50.0
    found = sample(scores, evenly(3000), forbidden_ids=SPECIAL)
    # the other 8 share the mass
    assert found.bincount(minlength=12).tolist() == [0, 375, 0, 0, 0, *[375] * 7]


@pytest.mark.parametrize("number", [0.0, 1.0 - 2.0**-24])
def test_the_first_and_the_last_number_give_possible_tokens(number: float):
    scores = torch.randn(64, 30_522, generator=torch.Generator().manual_seed(0))
    scores[:, -1] = OUT
    allowed = restrict(scores, forbidden_ids=SPECIAL)
    found, is_possible = draw(allowed, torch.full((64,), number))
    assert is_possible.all()
    assert not torch.isin(found, SPECIAL).any()
    assert found.max() < 30_521
    fixed, is_possible = draw_fixed(allowed[0], torch.full((64,), number))
    assert is_possible.all()
    assert fixed[0] == (1 if number == 0.0 else 30_520)  # the ends of the vocabulary


def test_a_number_on_the_border_takes_the_next_token():
    # Four equal shares after the forbidden 0, 2, 3, 4: [0, 1/4) is 1, [1/4, 1/2) is 5, ...
    numbers = torch.tensor([0.0, 0.25, 0.5, 0.75])
    found = sample(torch.zeros(8), numbers, forbidden_ids=SPECIAL)
    assert found.tolist() == [1, 5, 6, 7]
    fixed, _ = draw_fixed(restrict(torch.zeros(8), forbidden_ids=SPECIAL), numbers)
    assert fixed.tolist() == [1, 5, 6, 7]


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float):
    with pytest.raises(ValueError, match="temperature must be > 0"):
        sample(torch.zeros(5), evenly(1), temperature=temperature)


@pytest.mark.parametrize(
    ("top_k", "expected"),
    [(0, [0, 1, 2, 3]), (1, [2]), (2, [1, 2]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3])],
)
def test_top_k_keeps_the_k_most_probable(top_k: int, expected: list[int]):
    assert kept(torch.tensor([-1.0, 2.0, 3.0, 0.0]), top_k=top_k) == expected


def test_top_k_keeps_k_even_where_more_have_the_same_score():
    scores = torch.tensor([1.0, 5.0, 1.0, 1.0, 0.0])
    found = kept(scores, top_k=3)
    assert len(found) == 3
    assert 1 in found
    assert 4 not in found
    assert kept(scores, top_k=3) == found  # and always the same ones


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (0.01, [1]),  # the first is never dropped
        (0.5, [1]),  # it reaches one half by itself
        (0.501, [1, 3]),
        (0.75, [1, 3]),
        (0.76, [0, 1, 3]),
        (0.9, [0, 1, 2, 3]),
        (1.0, [0, 1, 2, 3]),
    ],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, expected: list[int]):
    # In order: 1/2, 1/4, 1/8, 1/8; reached after each: 0.5, 0.75, 0.875, 1.
    assert kept(log(0.125, 0.5, 0.125, 0.25), top_p=top_p) == expected


def test_what_remains_is_drawn_in_proportion():
    # 0.5 and 0.25 of {0.125, 0.5, 0.125, 0.25} remain: two thirds and one third.
    n = 3000
    for settings in ({"top_p": 0.6}, {"top_k": 2}):
        found = frequencies(sample(log(0.125, 0.5, 0.125, 0.25), evenly(n), **settings), 4)
        expected = torch.tensor([0.0, 2 / 3, 0.0, 1 / 3])
        torch.testing.assert_close(found, expected, atol=1 / n, rtol=0.0)


def test_the_excluded_token_is_never_drawn_and_the_others_share_its_mass():
    n = 4000
    scores = log(0.5, 0.25, 0.125, 0.125).expand(3 * n, 4)
    excluded = torch.arange(3).repeat_interleave(n)
    allowed = restrict(scores, forbidden_ids=NONE, excluded=excluded)
    found, _ = draw(allowed, evenly(n).repeat(3))
    for token, expected in enumerate(
        ([0.0, 0.5, 0.25, 0.25], [4 / 6, 0.0, 1 / 6, 1 / 6], [4 / 7, 2 / 7, 0.0, 1 / 7])
    ):
        share = frequencies(found[excluded == token], 4)
        torch.testing.assert_close(share, torch.tensor(expected), atol=1.1 / n, rtol=0.0)


def test_excluded_and_forbidden_tokens_do_not_use_up_the_k_or_the_p():
    scores = log(0.5, 0.3, 0.1, 0.06, 0.04)
    zero = torch.tensor([0])
    for where in ({"forbidden_ids": zero}, {"excluded": zero[0]}):
        assert kept(scores, top_k=2, **where) == [1, 2]
        # Renormalised: 0.6, 0.2, 0.12, 0.08: three reach 0.85; with token 0 two would do.
        assert kept(scores, top_p=0.85, **where) == [1, 2, 3]


def test_the_probability_of_top_p_is_that_among_the_top_k_at_the_temperature():
    scores = log(0.4, 0.3, 0.2, 0.1)
    # Of the first three: 4/9, 3/9, 2/9. Two reach 0.75 (7/9), which of all four are only 0.7.
    assert kept(scores, top_k=3, top_p=0.75) == [0, 1]
    assert kept(scores, top_p=0.75) == [0, 1, 2]
    # At temperature 1/2 the squares: 16, 9, 4, 1 of 30: the first two have 25/30.
    assert kept(scores, temperature=0.5, top_p=0.83) == [0, 1]
    assert kept(scores, temperature=1.0, top_p=0.83) == [0, 1, 2]


def test_all_restrictions_together_by_hand():
    # Squares of 8, 6, 5, 4, 3, 1 at temperature 1/2: 64, 36, 25, 16, 9, 1. Token 0 is forbidden,
    # 1 excluded: 25, 16, 9, 1. Top 3: 25, 16, 9 of 50. Top 0.8: 25 + 16 = 0.82. So 25 and 16.
    n = 4100
    allowed = restrict(
        log(8.0, 6.0, 5.0, 4.0, 3.0, 1.0).expand(n, 6),
        forbidden_ids=torch.tensor([0]),
        temperature=0.5,
        top_k=3,
        top_p=0.8,
        excluded=torch.ones(n, dtype=torch.long),
    )
    found = frequencies(draw(allowed, evenly(n))[0], 6)
    expected = torch.tensor([0.0, 0.0, 25 / 41, 16 / 41, 0.0, 0.0])
    torch.testing.assert_close(found, expected, atol=1 / n, rtol=0.0)


@pytest.mark.parametrize("number", [0.0, 0.5, 1.0 - 2.0**-24])
@pytest.mark.parametrize("token", [0, 1, 2])
def test_where_no_token_is_possible_that_is_said(token: int, number: float):
    only = torch.full((2, 3), OUT)
    only[:, token] = 1.0
    other = (token + 1) % 3
    only[1, other] = 0.0  # in the second row one more is possible
    excluded, numbers = torch.tensor([token, token]), torch.full((2,), number)
    allowed = restrict(only, forbidden_ids=NONE, excluded=excluded)
    tokens, is_possible = draw(allowed, numbers)
    assert is_possible.tolist() == [False, True]
    assert tokens[1] == other
    _, is_possible = draw_fixed(only[0], numbers, excluded=excluded)
    assert not is_possible.any()
    fixed, is_possible = draw_fixed(only[1], numbers, excluded=excluded)
    assert fixed.tolist() == [other, other]
    assert is_possible.all()


def test_scores_that_are_no_numbers_give_no_token():
    tokens, is_possible = draw(torch.full((1, 4), torch.nan), torch.tensor([0.5]))
    assert not is_possible.any()
    assert 0 <= int(tokens) < 4


def test_one_distribution_for_all_places_is_drawn_as_the_same_one_at_each():
    scores = restrict(COUNTS.double().log().float(), forbidden_ids=SPECIAL, temperature=0.8)
    numbers = drawn(5000)
    fixed, is_possible = draw_fixed(scores, numbers)
    one_by_one, _ = draw(scores.expand(5000, -1), numbers)
    assert is_possible.all()
    assert (fixed != one_by_one).sum() <= 1  # float64 against float32: a number on a border
    assert (COUNTS[fixed] > 0).all()


def test_a_cut_out_token_leaves_the_others_their_shares():
    scores = restrict(COUNTS.double().log().float(), forbidden_ids=SPECIAL)
    n = 2000
    tokens = COUNTS.nonzero()[:, 0]
    excluded = torch.cat([tokens, torch.tensor([0, 39])])  # 0 is never drawn anyway
    found, is_possible = draw_fixed(
        scores, evenly(n).repeat(len(excluded), 1), excluded=excluded[:, None].expand(-1, n)
    )
    assert is_possible.all()
    for row, token in zip(found, excluded.tolist(), strict=True):
        chances = COUNTS.double().index_fill(0, torch.tensor([token]), 0.0)
        expected = (chances / chances.sum()).float()
        torch.testing.assert_close(frequencies(row, 40), expected, atol=1.1 / n, rtol=0.0)


def test_cutting_out_equals_excluding_from_each_row():
    rng = torch.Generator().manual_seed(0)
    scores = restrict(torch.randn(50, generator=rng), forbidden_ids=SPECIAL)
    excluded = torch.randint(50, (3000,), generator=rng)
    numbers = drawn(3000)
    fixed, _ = draw_fixed(scores, numbers, excluded=excluded)
    rows = restrict(scores.expand(3000, -1), forbidden_ids=NONE, excluded=excluded)
    assert (fixed != draw(rows, numbers)[0]).sum() <= 2  # a number on a border
    assert (fixed != excluded).all()


def test_no_gradient_passes_a_draw():
    scores = torch.zeros(2, 5, requires_grad=True)
    for tokens, is_possible in (
        draw(scores, torch.tensor([0.1, 0.9])),
        draw_fixed(scores[0], torch.tensor([0.1, 0.9])),
    ):
        assert not tokens.requires_grad
        assert not is_possible.requires_grad
