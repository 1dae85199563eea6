"""The optimiser and its rate."""

import math
from dataclasses import dataclass
from typing import Literal

from amber.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimConfig:
    """AdamW, or Muon for the matrices, with a rate that follows the run's progress."""

    learning_rate: float = 5e-4
    """Peak rate of AdamW."""

    generator_rate_ratio: float = 1.0
    """Rate of what is the generator's alone, as a multiple of the main encoder's."""

    warmup_fraction: float = 0.0
    """Share of the budget over which the rate rises linearly from 0."""

    warmup_steps: int = 0
    """Optimiser steps of warm-up, instead of a share of the budget."""

    schedule: Literal["linear", "trapezoid", "cosine", "constant"] = "linear"
    """linear: the paper's product, (1 - progress) * min(1, warm-up); trapezoid: warm-up, constant,
    then linear over the last decay_fraction to the floor; cosine: to the floor; constant."""

    decay_fraction: float = 0.1
    """Share of the budget over which the trapezoid falls."""

    floor_fraction: float = 0.0
    """Rate at the end as a share of the peak (trapezoid and cosine)."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    """Added to the root of the second moment."""

    weight_decay: float = 0.01
    """Decoupled; not applied to norms and biases."""

    bias_correction: bool = True
    """Adam's correction of the early moments; the official code has none."""

    max_grad_norm: float = 1.0
    """Global norm to which the gradient is clipped; 0 = not clipped."""

    matrices: Literal["adamw", "muon"] = "adamw"
    """Optimiser of the encoders' weight matrices; all else is AdamW's."""

    muon_learning_rate: float = 0.02
    """Peak rate of Muon, with the same schedule."""

    muon_momentum: float = 0.95

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        for name in ("learning_rate", "eps", "muon_learning_rate", "generator_rate_ratio"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"optim.{name} must be above 0, got {getattr(self, name)}")
        for name in ("weight_decay", "max_grad_norm", "warmup_steps"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"optim.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("warmup_fraction", "decay_fraction", "floor_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"optim.{name} must be in [0, 1], got {getattr(self, name)}")
        if self.warmup_steps and self.warmup_fraction:
            raise UserError(
                f"optim.warmup_steps ({self.warmup_steps}) and optim.warmup_fraction "
                f"({self.warmup_fraction}) exclude each other: set one to 0"
            )
        for name in ("beta1", "beta2", "muon_momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"optim.{name} must be in [0, 1), got {getattr(self, name)}")
