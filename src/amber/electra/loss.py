"""The pre-training losses as float32 sums in nats; the training step divides once."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def mlm_loss_sum(
    logits: Float[Tensor, "*N V"], labels: Int[Tensor, "*N"], is_used: Bool[Tensor, "*N"]
) -> Float[Tensor, ""]:
    """Cross-entropy of the original tokens at the used slots (Clark et al. 2020, section 2)."""
    flat = logits.float().flatten(0, -2)
    nats = F.cross_entropy(flat, labels.flatten(), reduction="none")
    return (nats * is_used.flatten()).sum()


def rtd_loss_sum(
    logits: Float[Tensor, "*N"],
    is_replaced: Bool[Tensor, "*N"],
    is_scored: Bool[Tensor, "*N"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Binary cross-entropy of "this token was replaced", over the scored tokens.

    The paper's D is the probability of original; here, as in the official code, a positive logit
    means replaced: the loss is the same.

    Args:
        logits: one per token.
        is_replaced: the labels.
        is_scored: the tokens that count.
        label_smoothing: s: the targets 0 and 1 become s / 2 and 1 - s / 2.
    """
    targets = is_replaced.float() * (1.0 - label_smoothing) + label_smoothing / 2
    nats = F.binary_cross_entropy_with_logits(logits.float(), targets, reduction="none")
    return torch.where(is_scored, nats, 0.0).sum()


def copy_log_probabilities(
    logits: Float[Tensor, "N V"], gate: Float[Tensor, " N"], copied: Int[Tensor, " N"]
) -> tuple[Float[Tensor, "N V"], Float[Tensor, " N"]]:
    """Return log p of generating each token, and of the token that the input shows.

    With D = sigmoid(gate), p = D [token is the copied one] + (1 - D) softmax (section 3.5,
    All-Tokens MLM). In logarithms, with log D = logsigmoid(gate) and log (1 - D) =
    logsigmoid(-gate), nothing overflows and no D is rounded to 0 or 1.

    Args:
        logits: of the vocabulary head.
        gate: positive: copy.
        copied: the tokens of the input.

    Returns:
        log of (1 - D) softmax for every token, and log p of the copied one.
    """
    generated = logits.float().log_softmax(dim=-1) + F.logsigmoid(-gate.float()).unsqueeze(-1)
    same = generated.gather(-1, copied.unsqueeze(-1)).squeeze(-1)
    return generated, torch.logaddexp(F.logsigmoid(gate.float()), same)


def all_tokens_loss_sum(
    logits: Float[Tensor, "N V"],
    gate: Float[Tensor, " N"],
    copied: Int[Tensor, " N"],
    labels: Int[Tensor, " N"],
) -> tuple[Float[Tensor, ""], Int[Tensor, " N"]]:
    """Cross-entropy of the original tokens under copying or generating (section 3.5).

    Returns:
        The sum over all N tokens, and the most probable token at each, without gradient.
    """
    generated, same = copy_log_probabilities(logits, gate, copied)
    other = generated.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    nats = -torch.where(copied == labels, same, other)
    with torch.no_grad():
        best = generated.max(dim=-1)
        answer = torch.where(best.values > same, best.indices, copied)
    return nats.sum(), answer


def electric_logits(
    energy: Float[Tensor, "*N"],
    log_noise: Float[Tensor, "*N"],
    log_ratio: Float[Tensor, "*N"],
) -> Float[Tensor, "*N"]:
    """Return the logit of "this token is noise": E + log(k q / n) (Clark et al. 2020b, Electric).

    exp(-E) is the model's unnormalised probability of the token given the others; with k noise
    samples among n tokens, noise-contrastive estimation gives k q / (k q + n exp(-E)).

    Args:
        energy: E, one per token.
        log_noise: log q of the token; no gradient passes.
        log_ratio: log(k / n).
    """
    # A token that the noise never gives is data for certain: its loss is below 1e-12.
    return energy.float() + log_noise.detach().clamp(min=-30.0) + log_ratio


def reinforce_loss_sum(
    log_probability: Float[Tensor, "*N"],
    reward: Float[Tensor, "*N"],
    baseline: Float[Tensor, "*N"],
    is_used: Bool[Tensor, "*N"],
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return a sum whose gradient is REINFORCE's, and the loss of its baseline (appendix F).

    The generator maximises the discriminator's loss: reward R = -log D where the sample equals the
    original, else -log(1 - D), with D the probability of original: the discriminator's loss at
    the token. The gradient is (R - b) grad log p_G(sample), with b = -log sigmoid(baseline); the
    baseline learns exp(-R) by cross-entropy.

    Args:
        log_probability: of each sample, with gradient.
        reward: R, in nats.
        baseline: scores, with gradient.
        is_used: the slots that count.
    """
    reward = reward.detach().float()
    expected = -F.logsigmoid(baseline.float())
    gain = torch.where(is_used, log_probability, 0.0) * (reward - expected.detach())
    nats = F.binary_cross_entropy_with_logits(baseline.float(), (-reward).exp(), reduction="none")
    return -(gain * is_used).sum(), (nats * is_used).sum()
