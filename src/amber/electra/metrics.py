"""What is measured: sums and counts over batches and processes, ratios at the end.

Names are the official code's, plus `replaced_fraction`, `majority_accuracy` (what always saying
"original" would score) and `generator_entropy` (nats, at temperature 1).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.mask import Masked
from amber.electra.pretraining import Outcome


class Tally:
    """Running sums over batches."""

    def __init__(self) -> None:
        """Start from nothing."""
        self.sums: dict[str, float] = {}
        self.scores: list[Float[Tensor, " N"]] = []
        self.labels: list[Bool[Tensor, " N"]] = []

    @torch.no_grad()
    def add(self, outcome: Outcome, batch: Batch, masked: Masked) -> None:
        """Count one batch.

        Args:
            outcome: of the forward pass.
            batch: the text.
            masked: the chosen positions.
        """
        labels, used = batch.input_ids.gather(1, masked.positions), masked.is_used
        log_p = outcome.mlm_logits.float().log_softmax(dim=-1)
        sums = {
            "num_masked": used.sum(),
            "num_tokens": batch.attention_mask.sum(),
            "mlm_loss": outcome.mlm_loss,
            "mlm_right": ((log_p.argmax(dim=-1) == labels) & used).sum(),
            "entropy": (-(log_p.exp() * log_p).nansum(dim=-1) * used).sum(),
        }
        if outcome.rtd is not None:
            real, replaced = batch.attention_mask, outcome.rtd.is_replaced
            said = (outcome.rtd.logits > 0) & real
            sampled = outcome.rtd.corrupted.gather(1, masked.positions)
            sums |= {
                "rtd_loss": outcome.rtd.loss,
                "sampled_right": ((sampled == labels) & used).sum(),
                "num_replaced": replaced.sum(),
                "num_said": said.sum(),
                "num_found": (said & replaced).sum(),
                "rtd_right": ((said == replaced) & real).sum(),
            }
            self.scores.append(outcome.rtd.logits[real].float().cpu())
            self.labels.append(replaced[real].cpu())
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)

    def merge(self, other: "Tally") -> None:
        """Count what another one, of another process, has counted."""
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.scores += other.scores
        self.labels += other.labels

    def metrics(self) -> dict[str, float]:
        """Return the ratios; precision without any positive answer is 0, as recall is."""
        sums = self.sums
        masked, tokens = max(1.0, sums["num_masked"]), max(1.0, sums["num_tokens"])
        result = {
            "masked_lm_loss": sums["mlm_loss"] / masked,
            "masked_lm_accuracy": sums["mlm_right"] / masked,
            "generator_entropy": sums["entropy"] / masked,
        }
        if "rtd_loss" in sums:
            result |= {
                "sampled_masked_lm_accuracy": sums["sampled_right"] / masked,
                "disc_loss": sums["rtd_loss"] / tokens,
                "disc_accuracy": sums["rtd_right"] / tokens,
                "disc_auc": auc(torch.cat(self.scores), torch.cat(self.labels)),
                "disc_precision": sums["num_found"] / max(1.0, sums["num_said"]),
                "disc_recall": sums["num_found"] / max(1.0, sums["num_replaced"]),
                "replaced_fraction": sums["num_replaced"] / tokens,
                "majority_accuracy": 1.0 - sums["num_replaced"] / tokens,
            }
        return result


def auc(scores: Float[Tensor, " N"], labels: Bool[Tensor, " N"]) -> float:
    """Area under the ROC curve: how often a replaced token scores above an original one.

    Ties count one half (Mann and Whitney 1947). Without both classes it is 0.5: nothing is told
    apart.
    """
    positive = int(labels.sum())
    negative = len(labels) - positive
    if positive == 0 or negative == 0:
        return 0.5
    _, inverse, counts = scores.double().unique(return_inverse=True, return_counts=True)
    rank = counts.cumsum(0).double() - (counts - 1).double() / 2  # mean rank of each tied group
    above = rank[inverse][labels].sum() - positive * (positive + 1) / 2
    return float(above / (positive * negative))
