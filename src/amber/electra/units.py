"""Tokens that are chosen together: words and n-grams.

Everything here is whole tensors at once: no loop over rows or tokens, and sums of whole numbers
only, so that the same numbers give the same choice on every device.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

ROUNDS = 8
STEPS = 1 << 20
"""Logarithms are summed in whole steps of 1 / STEPS."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """The units of each row, numbered from 0; a token that cannot be chosen is one of size 0."""

    index: Int[Tensor, "B T"]
    """Of each token: the unit that it belongs to."""

    first: Int[Tensor, "B T"]
    """Of each unit: the place of its first token; 0 beyond the last unit."""

    size: Int[Tensor, "B T"]
    """Of each unit: its tokens; 0 beyond the last unit."""


def number_units(is_start: Bool[Tensor, "B T"], is_maskable: Bool[Tensor, "B T"]) -> Units:
    """Number the units of each row by where they start; the first token always starts one."""
    index = is_start.long().cumsum(dim=1) - 1
    zeros = torch.zeros_like(index)
    places = torch.arange(index.shape[1], device=index.device).expand_as(index)
    first = zeros.scatter_add(1, index, places * is_start)
    size = zeros.scatter_add(1, index, is_maskable.long())
    return Units(index=index, first=first, size=size)


def word_starts(
    is_word_start: Bool[Tensor, "B T"],
    is_maskable: Bool[Tensor, "B T"],
    budget: Int[Tensor, " B"],
) -> Bool[Tensor, "B T"]:
    """Return where units of one word start.

    A word ends at a token that cannot be chosen. One of more tokens than the budget could never be
    chosen, so its tokens stand alone.

    Args:
        is_word_start: by the data.
        is_maskable: the tokens that may be chosen.
        budget: the most tokens that are chosen in each row.
    """
    after_wall = F.pad(~is_maskable[:, :-1], (1, 0), value=True)
    is_start = is_word_start | ~is_maskable | after_wall
    return is_start | is_too_large(number_units(is_start, is_maskable), budget)


def ngram_starts(
    is_start: Bool[Tensor, "B T"],
    is_maskable: Bool[Tensor, "B T"],
    budget: Int[Tensor, " B"],
    uniforms: Float[Tensor, "B T"],
    *,
    max_ngram: int,
) -> Bool[Tensor, "B T"]:
    """Join units into n-grams, and return where these start.

    Each row is cut from left to right: an n-gram of n units, n drawn in proportion to 1 / n, and
    the next begins behind it. None reaches over a token that cannot be chosen. One of more
    tokens than the budget falls apart into its units.

    Args:
        is_start: where single units start.
        is_maskable: the tokens that may be chosen.
        budget: the most tokens that are chosen in each row.
        uniforms: one number in [0, 1) per token; that of an n-gram's first token decides its
            length.
        max_ngram: units of the longest.
    """
    units = number_units(is_start, is_maskable)
    width = is_start.shape[1]
    places = torch.arange(width, device=is_start.device).expand_as(units.index)
    draw = uniforms.gather(1, units.first)
    total = sum(1 / n for n in range(1, max_ngram + 1))
    length = torch.ones_like(places)
    for shorter in range(1, max_ngram):
        length += draw >= sum(1 / n for n in range(1, shorter + 1)) / total
    is_wall = units.size == 0
    wall_at = torch.where(is_wall, places, width)
    next_wall = wall_at.flip(1).cummin(dim=1).values.flip(1)
    jump = torch.where(is_wall, width, torch.minimum(places + length, next_wall))
    after_wall = F.pad(is_wall[:, :-1], (1, 0), value=True)

    # which units the walk from a wall to the next one steps on: 1, 2, 4, ... steps at once
    is_head = F.pad(is_wall | after_wall, (0, 1)).long()  # (B, T + 1)
    jump = F.pad(jump, (0, 1), value=width)
    for _ in range(width.bit_length()):
        reached = torch.zeros_like(is_head).scatter_add(1, jump, is_head)
        is_head = ((is_head + reached) > 0).long()
        jump = jump.gather(1, jump)
    joined = is_start & (is_head.gather(1, units.index) > 0)
    return joined | (is_start & is_too_large(number_units(joined, is_maskable), budget))


def is_too_large(units: Units, budget: Int[Tensor, " B"]) -> Bool[Tensor, "B T"]:
    """Return the tokens whose unit has more tokens than the budget of the row."""
    return units.size.gather(1, units.index) > budget.unsqueeze(1)


def mean_of_units(units: Units, values: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return the mean of each unit over its tokens, exact to 1e-6; `values` are finite."""
    steps = (values.double() * STEPS).round().long()
    sums = torch.zeros_like(steps).scatter_add(1, units.index, steps)
    return sums.double() / (STEPS * units.size.clamp(min=1))


def choose_units(
    units: Units, keys: Float[Tensor, "B T"], budget: Int[Tensor, " B"]
) -> Bool[Tensor, "B T"]:
    """Choose units in the order of their keys while they fit; return the chosen tokens.

    A unit of more tokens than are left of the budget is passed over. The walk along the order is
    done in 8 rounds, of which each goes on to the next unit that is to be passed over: enough for
    every row in which no unit has more than 8 tokens, and nearly always otherwise.

    Args:
        units: of each row.
        keys: of each unit; the smallest come first.
        budget: tokens of each row that are not to be exceeded.
    """
    order = keys.double().masked_fill(units.size == 0, torch.inf).argsort(dim=1, stable=True)
    sizes = units.size.gather(1, order)
    is_open, is_taken = sizes > 0, torch.zeros_like(sizes, dtype=torch.bool)
    left = budget.unsqueeze(1)
    for _ in range(ROUNDS):
        is_open = is_open & (sizes <= left)
        end = (sizes * is_open).cumsum(dim=1)
        now = is_open & (end <= left)
        is_taken, is_open = is_taken | now, is_open & ~now
        left = left - (sizes * now).sum(dim=1, keepdim=True)
    taken = torch.zeros_like(is_taken).scatter(1, order, is_taken)
    return taken.gather(1, units.index) & (units.size.gather(1, units.index) > 0)
