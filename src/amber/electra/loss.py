"""The pre-training losses as float32 sums in nats; the training step divides once."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def mlm_loss_sum(
    logits: Float[Tensor, "B K V"], labels: Int[Tensor, "B K"], is_used: Bool[Tensor, "B K"]
) -> Float[Tensor, ""]:
    """Cross-entropy of the original tokens at the used slots (Clark et al. 2020, section 2)."""
    nats = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none")
    return (nats * is_used.flatten()).sum()


def rtd_loss_sum(
    logits: Float[Tensor, "B T"],
    is_replaced: Bool[Tensor, "B T"],
    attention_mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """Binary cross-entropy of "this token was replaced", over the real tokens.

    The paper's D is the probability of original; here, as in the official code, a positive logit
    means replaced: the loss is the same.
    """
    targets = is_replaced.float()
    nats = F.binary_cross_entropy_with_logits(logits.float(), targets, reduction="none")
    return (nats * attention_mask).sum()
