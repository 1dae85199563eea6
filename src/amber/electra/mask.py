"""Choose positions and hide them: the input of the network that predicts masked tokens."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.electra.config import MaskConfig
from amber.electra.units import choose_units, mean_of_units, ngram_starts, number_units, word_starts


@dataclass(frozen=True, kw_only=True, slots=True)
class Masked:
    """A batch with positions chosen; K slots per sequence, unused ones at the end."""

    input_ids: Int[Tensor, "B T"]
    """With [MASK], the token itself or a random token at the chosen positions."""

    positions: Int[Tensor, "B K"]
    """In rising order; 0, which is [CLS], in the unused slots."""

    is_used: Bool[Tensor, "B K"]

    is_maskable: Bool[Tensor, "B T"]
    """The tokens that could have been chosen."""


def num_slots(length: int, fraction: float) -> int:
    """Return K: the most positions that can be chosen in a sequence of `length` tokens."""
    return max(1, round(fraction * length))


def mask(
    input_ids: Int[Tensor, "B T"],
    is_maskable: Bool[Tensor, "B T"],
    noise: Float[Tensor, "5 B T"],
    config: MaskConfig,
    *,
    mask_id: int,
    ordinary_ids: Int[Tensor, " N"],
    is_word_start: Bool[Tensor, "B T"] | None = None,
    log_frequencies: Float[Tensor, " V"] | None = None,
) -> Masked:
    """Choose distinct positions and treat each (Clark et al. 2020, section 2).

    A sequence of n maskable tokens has k = max(1, round(fraction * n)) chosen ones, halves to even.
    The official code counts [CLS] and [SEP] in n too, caps the result at a fixed number of
    predictions, and draws with replacement, so that some of its positions coincide. Each sequence
    counts for itself.

    With words or n-grams, k is the most tokens that are chosen: whole units are taken in random
    order, and one that has more tokens than are left of k is passed over. A word of more than k
    tokens falls apart into tokens, an n-gram into its words; so at least one token is chosen. Each
    token of a unit is treated for itself, as in BERT's code for whole words.

    Args:
        input_ids: the text.
        is_maskable: real tokens that are not [CLS], [SEP], [PAD] or [MASK].
        noise: of the batch; the units with the smallest numbers of part 0, at their first tokens,
            are chosen.
        config: shares and units.
        mask_id: of [MASK].
        ordinary_ids: the tokens that a random replacement may be.
        is_word_start: the first token of each word; without it an n-gram is one of tokens.
        log_frequencies: natural logarithm of each token's share of the training text; a token
            that does not occur there counts as one of the rarest that do.

    Raises:
        ValueError: what the settings need was not given.
    """
    if config.unit == "word" and is_word_start is None:
        raise ValueError("unit word needs is_word_start")
    if config.frequency_power and log_frequencies is None:
        raise ValueError(f"frequency_power {config.frequency_power} needs log_frequencies")
    available = is_maskable.sum(dim=1)  # (B,)
    wanted = (available.double() * config.fraction).round().long().clamp(min=1)
    count = torch.minimum(wanted, available)
    if config.unit == "token" and not config.frequency_power:
        positions = choose_tokens(is_maskable, noise[0], count, fraction=config.fraction)
    else:
        is_start = torch.ones_like(is_maskable)
        if config.unit != "token" and is_word_start is not None:
            is_start = word_starts(is_word_start, is_maskable, count)
        if config.unit == "ngram":
            longest = config.max_ngram
            is_start = ngram_starts(is_start, is_maskable, count, noise[4], max_ngram=longest)
        units = number_units(is_start, is_maskable)
        keys = noise[0].gather(1, units.first)
        if config.frequency_power and log_frequencies is not None:
            known = at_least_rare(log_frequencies)[input_ids].masked_fill(~is_maskable, 0.0)
            keys = race(keys, config.frequency_power * mean_of_units(units, known))
        positions = positions_of(choose_units(units, keys, count), fraction=config.fraction)
    is_used = positions < input_ids.shape[1]
    positions = positions.masked_fill(~is_used, 0)

    original = input_ids.gather(1, positions)
    draw = noise[1].gather(1, positions)
    pick = (noise[2].gather(1, positions) * len(ordinary_ids)).long()
    random_token = ordinary_ids[pick.clamp(max=len(ordinary_ids) - 1)]
    shown = torch.full_like(original, mask_id)
    shown = torch.where(draw < config.keep_fraction + config.random_fraction, random_token, shown)
    shown = torch.where((draw < config.keep_fraction) | ~is_used, original, shown)
    return Masked(
        input_ids=input_ids.scatter(1, positions, shown),
        positions=positions,
        is_used=is_used,
        is_maskable=is_maskable,
    )


def choose_tokens(
    is_maskable: Bool[Tensor, "B T"],
    uniforms: Float[Tensor, "B T"],
    count: Int[Tensor, " B"],
    *,
    fraction: float,
) -> Int[Tensor, "B K"]:
    """Choose the tokens with the smallest numbers; return their places in rising order, then T."""
    width = is_maskable.shape[1]
    slots = min(num_slots(width, fraction), width)
    order = uniforms.masked_fill(~is_maskable, 2.0)
    chosen = order.topk(slots, dim=1, largest=False).indices  # (B, K)
    is_used = torch.arange(slots, device=chosen.device) < count.unsqueeze(1)
    return chosen.masked_fill(~is_used, width).sort(dim=1).values


def positions_of(is_chosen: Bool[Tensor, "B T"], *, fraction: float) -> Int[Tensor, "B K"]:
    """Return the places of the chosen tokens in rising order, then T."""
    width = is_chosen.shape[1]
    places = torch.arange(width, device=is_chosen.device)
    slots = min(num_slots(width, fraction), width)
    return torch.where(is_chosen, places, width).sort(dim=1).values[:, :slots]


def at_least_rare(log_frequencies: Float[Tensor, " V"]) -> Float[Tensor, " V"]:
    """Give tokens that do not occur (-inf) the frequency of the rarest that do."""
    is_absent = log_frequencies.isneginf()
    return torch.where(
        is_absent, log_frequencies.masked_fill(is_absent, torch.inf).min(), log_frequencies
    )


def race(uniforms: Float[Tensor, "B T"], log_weights: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return numbers whose rising order draws by weight without replacement.

    Whoever waits an exponential time at the rate of its weight; -log(1 - u) / w, here in
    logarithms. A number of 0 comes first, and with equal weights the order is that of the uniforms.
    """
    return (-torch.log1p(-uniforms.double())).log() - log_weights.double()
