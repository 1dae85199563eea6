"""What is measured: sums and counts over batches and processes, ratios at the end.

Names are the official code's, plus

- `replaced_fraction`: real tokens that differ from the text;
- `majority_accuracy`: what always saying "original" would score; where originals are the smaller
  part, always saying "replaced" would score one minus it;
- `generator_entropy`: nats, at temperature 1;
- `encoder_lm_loss`, `encoder_lm_accuracy`: of a main encoder that names tokens; the accuracy is
  over the chosen positions;
- `label_conflict_fraction`: of the tokens labelled replaced, those that equal the text;
- `frequency_disc_loss`: what energies of -log frequency reach, where it is asked for (electric);
- `generator_reward`: nats that the discriminator loses at a chosen position (adversarial).
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import BINARY, Objective
from amber.electra.loss import rtd_loss_sum
from amber.electra.mask import Masked
from amber.electra.outcome import Answer, Outcome, Predictions


class Tally:
    """Running sums over batches."""

    def __init__(self, log_frequencies: Float[Tensor, " V"] | None = None) -> None:
        """Start from nothing.

        Args:
            log_frequencies: natural logarithm of each token's share of the training text: then what
                energies of -log frequency reach is measured, too (electric).
        """
        self.log_frequencies = log_frequencies
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
        sums = {"num_masked": used.sum(), "num_tokens": batch.attention_mask.sum()}
        sums["num_ordinary"] = masked.is_maskable.sum()
        if outcome.proposal is not None:
            log_p = outcome.proposal.logits.float().log_softmax(dim=-1)
            sums |= {
                "mlm_nats": outcome.proposal.nats,
                "mlm_right": ((log_p.argmax(dim=-1) == labels) & used).sum(),
                "entropy": (-(log_p.exp() * log_p).nansum(dim=-1) * used).sum(),
            }
            if outcome.proposal.reward is not None:
                sums["reward"] = outcome.proposal.reward
        if outcome.answer is not None:
            sums |= self.count_answer(outcome.answer, batch, masked)
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)

    def count_answer(self, answer: Answer, batch: Batch, masked: Masked) -> dict[str, Tensor]:
        """Count what the main encoder was shown and said; keep its scores for the AUC."""
        corrupted, text = answer.corrupted, batch.input_ids
        is_same = corrupted.input_ids == text
        sampled_right = is_same.gather(1, masked.positions) & masked.is_used
        labelled = corrupted.is_replaced.gather(1, masked.positions) & masked.is_used
        sums = {
            "main_nats": answer.loss,
            "sampled_right": sampled_right.sum(),
            "num_conflicts": (sampled_right & labelled).sum(),
            "num_differing": (~is_same).sum(),
        }
        if answer.named is not None:
            sums["main_right"] = ((answer.named == text) & corrupted.is_chosen).sum()
        if answer.offset is not None and self.log_frequencies is not None:
            known = answer.offset - self.log_frequencies[corrupted.input_ids]
            sums["frequency_nats"] = rtd_loss_sum(known, corrupted.is_replaced, answer.is_scored)
        if answer.logits is not None:
            scored, replaced = answer.is_scored, corrupted.is_replaced & answer.is_scored
            said = (answer.logits > 0) & scored
            sums |= {
                "num_scored": scored.sum(),
                "num_replaced": replaced.sum(),
                "num_said": said.sum(),
                "num_found": (said & replaced).sum(),
                "binary_right": ((said == replaced) & scored).sum(),
            }
            self.scores.append(answer.logits[scored].float().cpu())
            self.labels.append(replaced[scored].cpu())
        return sums

    def merge(self, other: "Tally") -> None:
        """Count what another one, of another process, has counted."""
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.scores += other.scores
        self.labels += other.labels

    def metrics(self, predictions: tuple[Predictions, Predictions]) -> dict[str, float]:
        """Return the ratios; precision without any positive answer is 0, as recall is.

        Args:
            predictions: what the generator's and the main encoder's loss are means over.
        """
        sums = self.sums
        counts = {
            "masked": max(1.0, sums["num_masked"]),
            "ordinary": max(1.0, sums["num_ordinary"]),
            "real": max(1.0, sums["num_tokens"]),
        }
        masked, result = counts["masked"], dict[str, float]()
        if "mlm_nats" in sums:
            result["masked_lm_loss"] = sums["mlm_nats"] / counts[predictions[0]]
            result["masked_lm_accuracy"] = sums["mlm_right"] / masked
            result["generator_entropy"] = sums["entropy"] / masked
        if "reward" in sums:
            result["generator_reward"] = sums["reward"] / masked
        if "main_nats" not in sums:
            return result
        result["sampled_masked_lm_accuracy"] = sums["sampled_right"] / masked
        name = "encoder_lm_loss" if "main_right" in sums else "disc_loss"
        result[name] = sums["main_nats"] / counts[predictions[1]]
        if "frequency_nats" in sums:
            result["frequency_disc_loss"] = sums["frequency_nats"] / counts[predictions[1]]
        if "main_right" in sums:
            result["encoder_lm_accuracy"] = sums["main_right"] / masked
        if "num_scored" in sums:
            scored = max(1.0, sums["num_scored"])
            result |= {
                "disc_accuracy": sums["binary_right"] / scored,
                "disc_auc": auc(torch.cat(self.scores), torch.cat(self.labels)),
                "disc_precision": sums["num_found"] / max(1.0, sums["num_said"]),
                "disc_recall": sums["num_found"] / max(1.0, sums["num_replaced"]),
                "majority_accuracy": 1.0 - sums["num_replaced"] / scored,
            }
            if sums["num_conflicts"]:
                conflicts = sums["num_conflicts"] / max(1.0, sums["num_replaced"])
                result["label_conflict_fraction"] = conflicts
        result["replaced_fraction"] = sums["num_differing"] / counts["real"]
        return result


def main_loss_name(objective: Objective) -> str:
    """Return the name of the main encoder's loss."""
    return "disc_loss" if objective in BINARY else "encoder_lm_loss"


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
