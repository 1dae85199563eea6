"""Draw replacement tokens: a pure function from a distribution and a uniform number to a token."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def restrict(
    scores: Float[Tensor, "*N V"],
    *,
    forbidden_ids: Int[Tensor, " F"],
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    excluded: Int[Tensor, "*N"] | None = None,
) -> Float[Tensor, "*N V"]:
    """Divide scores by the temperature and give -inf to every token that must not be drawn.

    In this order: temperature, forbidden and excluded tokens, top-k, top-p. What remains is
    sampled in proportion to its exponential.

    Args:
        scores: of any precision; the result is float32.
        forbidden_ids: tokens that are never drawn.
        temperature: above 0.
        top_k: how many of the most probable tokens remain; 0 = all.
        top_p: the fewest most probable tokens that reach this probability remain; 1 = all.
        excluded: one more token per row that is never drawn.

    Raises:
        ValueError: `temperature` is not positive.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be > 0, got {temperature}")
    scores = scores.to(torch.float32, copy=True).div_(temperature)
    scores = scores.index_fill_(-1, forbidden_ids, -torch.inf)
    if excluded is not None:
        scores = scores.scatter_(-1, excluded.unsqueeze(-1), -torch.inf)
    if 0 < top_k < scores.shape[-1]:
        best = scores.topk(top_k, dim=-1).indices
        is_out = torch.ones_like(scores, dtype=torch.bool).scatter(-1, best, value=False)
        scores = scores.masked_fill(is_out, -torch.inf)
    if top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        chances = ordered.softmax(dim=-1)
        is_beyond = chances.cumsum(dim=-1) - chances >= top_p  # the first one never is
        is_out = torch.zeros_like(is_beyond).scatter(-1, order, is_beyond)
        scores = scores.masked_fill(is_out, -torch.inf)
    return scores


@torch.no_grad()
def draw(
    scores: Float[Tensor, "*N V"], uniforms: Float[Tensor, "*N"]
) -> tuple[Int[Tensor, "*N"], Bool[Tensor, "*N"]]:
    """Draw from the softmax of each row by its inverse cumulative sum.

    The sample is the first token whose cumulative probability exceeds the row's uniform number,
    so it depends on nothing but the arguments. Softmax and sum are float32.

    Args:
        scores: from `restrict`.
        uniforms: one number in [0, 1) per row.

    Returns:
        The tokens, and whether each is one that may be drawn: a parallel sum may rise by rounding
        at an impossible token.
    """
    cumulative = scores.softmax(dim=-1).cumsum_(dim=-1)
    # Rounding: the last sum is near 1, not 1; scaled by it, no uniform number falls outside.
    threshold = uniforms.unsqueeze(-1) * cumulative[..., -1:]
    sampled = torch.searchsorted(cumulative, threshold, right=True)
    sampled = sampled.clamp_(max=scores.shape[-1] - 1)
    return sampled.squeeze(-1), scores.gather(-1, sampled).isfinite().squeeze(-1)


@torch.no_grad()
def draw_fixed(
    scores: Float[Tensor, " V"],
    uniforms: Float[Tensor, "*N"],
    *,
    excluded: Int[Tensor, "*N"] | None = None,
) -> tuple[Int[Tensor, "*N"], Bool[Tensor, "*N"]]:
    """Draw from one distribution for all places, as `draw` does.

    Args:
        scores: from `restrict`.
        uniforms: one number in [0, 1) per place.
        excluded: a token per place that is not drawn there: its interval is cut out of the
            cumulative sum, and the others share what is left in proportion.

    Returns:
        As `draw`; a place at which no other token is possible has none.
    """
    cumulative = scores.double().softmax(dim=-1).cumsum(dim=-1)
    total = cumulative[-1]
    threshold = uniforms.double() * total
    if excluded is not None:
        stop = cumulative[excluded]
        start = torch.where(excluded > 0, cumulative[(excluded - 1).clamp(min=0)], 0.0)
        threshold = uniforms.double() * (total - (stop - start))
        threshold = torch.where(threshold >= start, threshold + (stop - start), threshold)
    sampled = torch.searchsorted(cumulative, threshold, right=True)
    sampled = sampled.clamp_(max=len(scores) - 1)
    is_possible = scores[sampled].isfinite()
    return sampled, is_possible if excluded is None else is_possible & (sampled != excluded)
