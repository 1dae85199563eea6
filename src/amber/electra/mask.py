"""Choose positions and hide them: the input of the network that predicts masked tokens."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.electra.config import MaskConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Masked:
    """A batch with positions chosen; K slots per sequence, unused ones at the end."""

    input_ids: Int[Tensor, "B T"]
    """With [MASK], the token itself or a random token at the chosen positions."""

    positions: Int[Tensor, "B K"]
    """In rising order; 0, which is [CLS], in the unused slots."""

    is_used: Bool[Tensor, "B K"]


def num_slots(length: int, fraction: float) -> int:
    """Return K: the most positions that can be chosen in a sequence of `length` tokens."""
    return max(1, round(fraction * length))


def mask(
    input_ids: Int[Tensor, "B T"],
    is_maskable: Bool[Tensor, "B T"],
    noise: Float[Tensor, "4 B T"],
    config: MaskConfig,
    *,
    mask_id: int,
    ordinary_ids: Int[Tensor, " N"],
) -> Masked:
    """Choose distinct positions and treat each (Clark et al. 2020, section 2).

    A sequence of n maskable tokens has max(1, round(fraction * n)) chosen ones, halves to even.
    The official code counts [CLS] and [SEP] in n too, caps the result at a fixed number of
    predictions, and draws with replacement, so that some of its positions coincide. Each sequence
    counts for itself.

    Args:
        input_ids: the text.
        is_maskable: real tokens that are not [CLS], [SEP], [PAD] or [MASK].
        noise: of the batch; the positions with the smallest numbers of part 0 are chosen.
        config: shares.
        mask_id: of [MASK].
        ordinary_ids: the tokens that a random replacement may be.
    """
    choose, treat, which = noise[0], noise[1], noise[2]
    available = is_maskable.sum(dim=1)  # (B,)
    wanted = (available.double() * config.fraction).round().long().clamp(min=1)
    count = torch.minimum(wanted, available)
    slots = min(num_slots(input_ids.shape[1], config.fraction), input_ids.shape[1])

    order = choose.masked_fill(~is_maskable, 2.0)
    chosen = order.topk(slots, dim=1, largest=False).indices  # (B, K)
    is_used = torch.arange(slots, device=chosen.device) < count.unsqueeze(1)
    beyond = input_ids.shape[1]
    positions = chosen.masked_fill(~is_used, beyond).sort(dim=1).values
    positions = positions.masked_fill(~is_used, 0)

    original = input_ids.gather(1, positions)
    draw = treat.gather(1, positions)
    pick = (which.gather(1, positions) * len(ordinary_ids)).long()
    random_token = ordinary_ids[pick.clamp(max=len(ordinary_ids) - 1)]
    shown = torch.full_like(original, mask_id)
    shown = torch.where(draw < config.keep_fraction + config.random_fraction, random_token, shown)
    shown = torch.where((draw < config.keep_fraction) | ~is_used, original, shown)
    return Masked(
        input_ids=input_ids.scatter(1, positions, shown), positions=positions, is_used=is_used
    )
