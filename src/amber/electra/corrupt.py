"""Put replacements into the text, and say which tokens count as replaced."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.electra.config import LabelRule


def corrupt(
    input_ids: Int[Tensor, "B T"],
    positions: Int[Tensor, "B K"],
    is_used: Bool[Tensor, "B K"],
    sampled: Int[Tensor, "B K"],
) -> Int[Tensor, "B T"]:
    """Replace each chosen token by its sample.

    No gradient passes: the generator does not learn from the discriminator's loss (Clark et al.
    2020, section 2).

    Args:
        input_ids: the text, before masking.
        positions: where to replace; unused slots hold 0, which is [CLS] and never chosen.
        is_used: which of the K slots hold a chosen position.
        sampled: a token per slot.
    """
    replacement = torch.where(is_used, sampled, input_ids.gather(1, positions))
    return input_ids.scatter(1, positions, replacement)


def replace_at_random(
    input_ids: Int[Tensor, "B T"],
    is_open: Bool[Tensor, "B T"],
    noise: Float[Tensor, "P B T"],
    *,
    fraction: float,
    ordinary_ids: Int[Tensor, " N"],
) -> Int[Tensor, "B T"]:
    """Replace a share of the tokens outside the chosen ones by random ordinary tokens.

    Args:
        input_ids: the text, its chosen tokens already replaced.
        is_open: ordinary tokens that were not chosen.
        noise: of the batch; parts 1 and 2, which decide on the treatment of chosen tokens, decide
            here whether and by what a token is replaced.
        fraction: share that is replaced, in [0, 1).
        ordinary_ids: what a token may be replaced by.
    """
    pick = (noise[2] * len(ordinary_ids)).long().clamp(max=len(ordinary_ids) - 1)
    return torch.where(is_open & (noise[1] < fraction), ordinary_ids[pick], input_ids)


def replaced_labels(
    input_ids: Int[Tensor, "B T"],
    corrupted: Int[Tensor, "B T"],
    is_chosen: Bool[Tensor, "B T"],
    *,
    rule: LabelRule,
) -> Bool[Tensor, "B T"]:
    """Say which tokens count as replaced.

    `content`: those that differ from the text: a sample that equals the original token counts as
    original (section 2). `source`: those too, and all chosen ones, whatever was drawn there.
    """
    differs = corrupted != input_ids
    return differs if rule == "content" else differs | is_chosen
