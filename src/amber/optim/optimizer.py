"""Build the optimisers and set their rates: AdamW for all, or Muon for the matrices."""

import math
from typing import Any, Final, NamedTuple

from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from amber.optim.config import OptimConfig
from amber.optim.schedule import rate_factor

GENERATOR: Final = ("generator.", "mlm_head.", "baseline.")
"""How the names of weights begin that are the generator's alone."""


class Split(NamedTuple):
    """Parameters, each once, by how they are trained."""

    matrices: list[Tensor]
    """Of the encoders' layers: decayed; Muon's where it is chosen."""

    others: list[Tensor]
    """Tables and heads: decayed, never Muon's."""

    plain: list[Tensor]
    """Norms and biases, which the paper's code does not decay."""


def split_parameters(model: nn.Module, *, is_generator: bool | None = None) -> Split:
    """Sort the parameters that are trained.

    Args:
        model: a shared parameter is taken once, as the main encoder's.
        is_generator: take what is the generator's alone (True), all else (False), or all (None).
    """
    split = Split([], [], [])
    for name, parameter in model.named_parameters():  # a shared one is named once
        if not parameter.requires_grad or is_generator not in (None, name.startswith(GENERATOR)):
            continue
        if parameter.ndim < 2:
            split.plain.append(parameter)
        elif ".layers." in name:
            split.matrices.append(parameter)
        else:
            split.others.append(parameter)
    return split


def build_optimizers(model: nn.Module, config: OptimConfig) -> list[Optimizer]:
    """Return AdamW, and Muon after it when `config.matrices` asks for it.

    What is the generator's alone is in groups of its own: its rate may differ, and with two stages
    it begins to learn at another step.
    """
    parts = [
        (1.0, split_parameters(model, is_generator=False)),
        (config.generator_rate_ratio, split_parameters(model, is_generator=True)),
    ]
    has_muon = config.matrices == "muon"
    adamw_groups: list[dict[str, Any]] = []
    for ratio, part in parts:
        decayed = part.others + ([] if has_muon else part.matrices)
        adamw_groups += [
            {"params": decayed, "decay": config.weight_decay, "ratio": ratio},
            {"params": part.plain, "decay": 0.0, "ratio": ratio},
        ]
    adamw = AdamW(
        [group for group in adamw_groups if group["params"]],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
    if not has_muon:
        return [adamw]
    muon = Muon(
        [{"params": part.matrices, "ratio": ratio} for ratio, part in parts if part.matrices],
        lr=config.muon_learning_rate,
        weight_decay=config.weight_decay,
        momentum=config.muon_momentum,
    )
    return [adamw, muon]


def set_rates(
    optimizers: list[Optimizer], step: int, progress: float, config: OptimConfig
) -> float:
    """Set the rates of the coming step; return AdamW's.

    Without bias correction, as in the official code, the update is lr * m / (sqrt(v) + eps).
    AdamW divides m by a = 1 - beta1^t and sqrt(v) by b = sqrt(1 - beta2^t); a rate of lr * a / b,
    an eps of eps / b and a decay of decay * b / a give exactly that.

    Args:
        optimizers: as built above.
        step: optimiser steps done, counted from 0.
        progress: share of the budget that is used up.
        config: peak rates, schedule, correction.
    """
    factor = rate_factor(progress, step, config)
    rate = config.learning_rate * factor
    for group in optimizers[0].param_groups:
        first, second = 1.0, 1.0
        if not config.bias_correction:
            done = updates(optimizers[0], group)
            first = 1.0 - config.beta1 ** (done + 1)
            second = math.sqrt(1.0 - config.beta2 ** (done + 1))
        group["lr"] = group["ratio"] * rate * first / second
        group["eps"] = config.eps / second
        group["weight_decay"] = group["decay"] * second / first
    for optimizer in optimizers[1:]:
        for group in optimizer.param_groups:
            group["lr"] = group["ratio"] * config.muon_learning_rate * factor
    return rate


def updates(optimizer: Optimizer, group: dict[str, Any]) -> int:
    """Return how often the parameters of a group were updated; they begin together."""
    state = optimizer.state.get(group["params"][0], {})
    return int(state["step"]) if "step" in state else 0
