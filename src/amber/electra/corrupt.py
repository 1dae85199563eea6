"""Fill the chosen positions with samples from the generator network."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def corrupt(
    input_ids: Int[Tensor, "B T"],
    positions: Int[Tensor, "B K"],
    is_used: Bool[Tensor, "B K"],
    logits: Float[Tensor, "B K V"],
    uniforms: Float[Tensor, "B K"],
    *,
    forbidden_ids: Int[Tensor, " F"],
    temperature: float = 1.0,
) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Replace each chosen token by a sample from the generator.

    The sample is the first token whose cumulative probability exceeds the slot's uniform number,
    so it depends on nothing but the arguments. The softmax and its sum are float32 whatever the
    logits are. No gradient passes: the generator learns from its MLM loss only (Clark et al. 2020,
    section 2).

    Args:
        input_ids: the text, before masking.
        positions: where to replace; unused slots hold 0, which is [CLS] and never chosen.
        is_used: which of the K slots hold a chosen position.
        logits: the generator's scores at `positions`.
        uniforms: one number in [0, 1) per slot.
        forbidden_ids: tokens that are never sampled: [PAD], [CLS], [SEP], [MASK].
        temperature: of the softmax, above 0; the paper uses 1.

    Returns:
        The corrupted ids, and which of them differ from the text: a sample that equals the
        original token counts as original (section 2).

    Raises:
        ValueError: `temperature` is not positive.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be > 0, got {temperature}")
    with torch.no_grad():
        scores = logits.to(torch.float32, copy=True).div_(temperature)
        scores.index_fill_(-1, forbidden_ids, -torch.inf)
        cumulative = scores.softmax(dim=-1).cumsum_(dim=-1)  # (B, K, V)
        # Rounding: the last sum is near 1, not 1; scaled by it, no uniform number falls outside.
        threshold = uniforms.unsqueeze(-1) * cumulative[..., -1:]
        sampled = torch.searchsorted(cumulative, threshold, right=True)  # (B, K, 1)
        sampled = sampled.clamp_(max=logits.shape[-1] - 1)
        # A parallel sum may rise by rounding at an impossible token: then the original stays.
        is_possible = scores.gather(-1, sampled).isfinite().squeeze(-1)
        original = input_ids.gather(1, positions)
        replacement = torch.where(is_used & is_possible, sampled.squeeze(-1), original)
        corrupted = input_ids.scatter(1, positions, replacement)  # (B, T)
    return corrupted, corrupted != input_ids
