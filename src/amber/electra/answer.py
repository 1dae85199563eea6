"""The main encoder's task, by objective: its head, its loss, and what it said."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.electra.config import NceRatio
from amber.electra.loss import all_tokens_loss_sum, electric_logits, mlm_loss_sum, rtd_loss_sum
from amber.electra.mask import Masked
from amber.electra.outcome import Answer, Corrupted
from amber.model.heads import MLMHead, RTDHead, UnitHead


def gather(hidden: Float[Tensor, "B T D"], positions: Int[Tensor, "B K"]) -> Float[Tensor, "B K D"]:
    """Take the vectors at the given positions."""
    return hidden.gather(1, positions.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))


def detect(
    head: RTDHead,
    hidden: Float[Tensor, "B T D"],
    corrupted: Corrupted,
    is_scored: Bool[Tensor, "B T"],
    *,
    label_smoothing: float,
) -> Answer:
    """Tell replaced tokens from original ones, everywhere (`rtd`)."""
    logits = head(hidden)
    loss = rtd_loss_sum(logits, corrupted.is_replaced, is_scored, label_smoothing=label_smoothing)
    return Answer(corrupted, loss, is_scored, logits.detach())


def detect_chosen(
    head: RTDHead,
    hidden: Float[Tensor, "B T D"],
    corrupted: Corrupted,
    masked: Masked,
    *,
    label_smoothing: float,
) -> Answer:
    """Tell replaced tokens from original ones at the chosen positions only (`rtd_masked`)."""
    logits = head(gather(hidden, masked.positions))  # (B, K)
    labels = corrupted.is_replaced.gather(1, masked.positions)
    loss = rtd_loss_sum(logits, labels, masked.is_used, label_smoothing=label_smoothing)
    spread = torch.zeros(corrupted.text.shape, dtype=logits.dtype, device=logits.device)
    spread = spread.scatter(1, masked.positions, logits.detach())
    return Answer(corrupted, loss, corrupted.is_chosen, spread)


def name_chosen(
    head: MLMHead,
    hidden: Float[Tensor, "B T D"],
    table: Float[Tensor, "V E"],
    corrupted: Corrupted,
    masked: Masked,
) -> Answer:
    """Name the original tokens at the chosen positions (`replace_mlm`)."""
    labels = corrupted.text.gather(1, masked.positions)
    chosen = gather(hidden, masked.positions)
    logits = head(chosen.flatten(0, 1), table).unflatten(0, labels.shape)
    loss = mlm_loss_sum(logits, labels, masked.is_used)
    named = torch.where(masked.is_used, logits.argmax(dim=-1), labels)
    named = corrupted.text.scatter(1, masked.positions, named)
    return Answer(corrupted, loss, corrupted.is_chosen, named=named)


def name_all(
    head: MLMHead,
    gate_head: UnitHead,
    hidden: Float[Tensor, "B T D"],
    table: Float[Tensor, "V E"],
    corrupted: Corrupted,
    is_scored: Bool[Tensor, "B T"],
) -> Answer:
    """Copy each token or name the original one (`all_tokens_mlm`)."""
    some = hidden[is_scored]  # (N, D)
    gate = gate_head(some)
    loss, best = all_tokens_loss_sum(
        head(some, table), gate, corrupted.input_ids[is_scored], corrupted.text[is_scored]
    )
    logits = torch.zeros(is_scored.shape, dtype=gate.dtype, device=gate.device)
    logits = logits.masked_scatter(is_scored, -gate.detach())
    named = corrupted.text.masked_scatter(is_scored, best)
    return Answer(corrupted, loss, is_scored, logits, named=named)


def weigh(
    head: RTDHead,
    hidden: Float[Tensor, "B T D"],
    corrupted: Corrupted,
    log_noise: Float[Tensor, "B T"],
    masked: Masked,
    *,
    nce_ratio: NceRatio,
) -> Answer:
    """Give every token an energy, and tell noise from data by it (`electric`).

    Args:
        head: of energies.
        hidden: of the main encoder.
        corrupted: the text with noise; its labels are by source.
        log_noise: log q of each token that is seen.
        masked: the chosen positions.
        nce_ratio: k / n, or k / (n - k), for k chosen of n ordinary tokens.
    """
    energy = head(hidden)
    num_chosen, num_ordinary = masked.is_used.sum(dim=1), masked.is_maskable.sum(dim=1)
    if nce_ratio == "official":
        num_ordinary = num_ordinary - num_chosen
    share = num_chosen.clamp(min=1) / num_ordinary.clamp(min=1)  # (B,)
    logits = electric_logits(energy, log_noise, share.log().unsqueeze(1).expand_as(energy))
    loss = rtd_loss_sum(logits, corrupted.is_replaced, masked.is_maskable)
    offset = logits.detach() - energy.detach().float()
    return Answer(corrupted, loss, masked.is_maskable, logits.detach(), offset)
