"""Numbers to predict, brought to mean 0 and deviation 1 while training.

A head starts near 0 and takes small steps, so it would spend its training on finding the mean of
prices in the thousands. The scale is folded into the last layer in the end: the saved network gives
the numbers themselves. (The official code divides similarities by 5.)
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float

from amber.downstream.sequences import Sequences
from amber.model.task_heads import OfficialHead, TaskHead, TaskModel
from amber.tasks.example import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetScale:
    """A number is what the network gives, times the deviation, plus the mean."""

    mean: float = 0.0
    deviation: float = 1.0

    def apply(self, labels: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Return labels as the network learns them."""
        return ((labels - self.mean) / self.deviation).astype(np.float32)

    def restore(self, value: float) -> float:
        """Return a number from what the network gives."""
        return value * self.deviation + self.mean

    @torch.no_grad()
    def fold_into(self, model: TaskModel) -> None:
        """Change the last layer so that the network gives the numbers themselves."""
        if self == TargetScale():
            return
        head = model.head
        assert isinstance(head, TaskHead | OfficialHead)
        layer = head.output if isinstance(head, TaskHead) else head.logits
        layer.weight *= self.deviation
        layer.bias.mul_(self.deviation).add_(self.mean)


def fit_scale(kind: Kind, train: Sequences) -> tuple[TargetScale, Sequences]:
    """Find the scale of the training labels, and apply it; nothing to do but for regression."""
    if kind != "regression":
        return TargetScale(), train
    labels = train.labels.astype(np.float64)
    scale = TargetScale(mean=float(labels.mean()), deviation=float(labels.std()))
    return scale, replace(train, labels=scale.apply(train.labels))
