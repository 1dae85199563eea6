"""Multi-head self-attention over all tokens, and rotary positions."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from amber.model.dropout import dropout as drop

Direction = Literal["both", "left", "right"]
"""Which side of itself a token may look at; itself it always may."""

SDPA_LENGTH = 512
"""From this length on, torch's fused attention is the faster one on a CPU in bfloat16 too."""


def attend(
    query: Float[Tensor, "B H Q S"],
    key: Float[Tensor, "B H T S"],
    value: Float[Tensor, "B H T S"],
    attention_mask: Bool[Tensor, "B T"] | None,
    *,
    direction: Direction = "both",
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q S"]:
    """Average the values, weighted by the softmax of the scaled products of queries and keys.

    The one place that chooses how: the backward pass of torch's fused attention is slow on a CPU
    in bfloat16, so short sequences take three plain steps there.

    Args:
        query: queries per head; of all tokens when they look at one side only.
        key: keys per head.
        value: values per head.
        attention_mask: True for the tokens that may be looked at; None for all. A row without
            any such token looks at all of them: its output means nothing but is finite.
        direction: the side that a token may look at.
        dropout: share of the weights set to zero; the others are scaled up.

    Returns:
        One vector per query and head.
    """
    mask = None
    if attention_mask is not None:
        is_seen = attention_mask | ~attention_mask.any(dim=1, keepdim=True)
        mask = is_seen[:, None, None, :]  # (B, 1, 1, T)
    if direction != "both":
        mask = one_sided(query.shape[2], mask, direction=direction, device=query.device)
    is_short = key.shape[2] < SDPA_LENGTH
    if query.device.type == "cpu" and query.dtype == torch.bfloat16 and is_short:
        return attend_explicitly(query, key, value, mask, dropout=dropout)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


def one_sided(
    length: int,
    mask: Bool[Tensor, "B 1 1 T"] | None,
    *,
    direction: Direction,
    device: torch.device,
) -> Bool[Tensor, "B1 1 T T"]:
    """Say which tokens each token may look at when it may look at one side only, and at itself.

    Args:
        length: T.
        mask: True for the tokens that anyone may look at; None for all.
        direction: left or right.
        device: where the result shall be.
    """
    side = torch.ones(length, length, dtype=torch.bool, device=device)
    side = side.tril() if direction == "left" else side.triu()
    if mask is None:
        return side[None, None]
    return (side & mask) | torch.eye(length, dtype=torch.bool, device=device)


def attend_explicitly(
    query: Float[Tensor, "B H Q S"],
    key: Float[Tensor, "B H T S"],
    value: Float[Tensor, "B H T S"],
    mask: Bool[Tensor, "B1 1 Q1 T"] | None,
    *,
    dropout: float = 0.0,
) -> Float[Tensor, "B H Q S"]:
    """Attend in three steps: product, softmax, product.

    The softmax sums in float32 inside, whatever it is given.
    """
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(2, 3)  # (B, H, Q, T)
    if mask is not None:
        unseen = torch.zeros_like(mask, dtype=scores.dtype)
        unseen.masked_fill_(~mask, torch.finfo(scores.dtype).min)
        scores += unseen  # in place: no second pass over the largest tensor, here or backwards
    weights = drop(scores.softmax(dim=-1), dropout, is_training=True)
    return weights @ value


def rotary_table(
    length: int, head_size: int, *, theta: float, device: torch.device
) -> tuple[Float[Tensor, "T S"], Float[Tensor, "T S"]]:
    """Cosines and signed sines of the rotary angles (Su et al. 2021), in ModernBERT's layout.

    Element i of the first half of a head and element i of the second half form a pair, which
    turns by position * theta ** (-2 i / head_size). The sines of the first half are negative.

    Args:
        length: number of positions.
        head_size: width of one head, even.
        theta: base of the angles.
        device: where the tables shall be.

    Returns:
        The two factors that `rotate` takes, in float32.
    """
    exponents = torch.arange(0, head_size, 2, dtype=torch.float32, device=device) / head_size
    positions = torch.arange(length, dtype=torch.float32, device=device)
    angles = positions[:, None] * (1.0 / theta**exponents)  # (T, S / 2)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], dim=1), torch.cat([-sin, sin], dim=1)


def rotate(
    vectors: Float[Tensor, "... T S"], cos: Float[Tensor, "T S"], sin: Float[Tensor, "T S"]
) -> Float[Tensor, "... T S"]:
    """Turn each pair of elements by the angle of its position.

    The factors are rounded to the type of the vectors: in bfloat16 that adds about as much error
    as the vectors carry already, and takes two thirds of the time.
    """
    cos, sin = cos.to(vectors.dtype), sin.to(vectors.dtype)
    return vectors * cos + vectors.roll(vectors.shape[-1] // 2, dims=-1) * sin
