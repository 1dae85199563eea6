"""Build the optimisers and set their rates: AdamW for all, or Muon for the matrices."""

import math

from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from amber.optim.config import OptimConfig
from amber.optim.schedule import rate_factor


def split_parameters(model: nn.Module) -> dict[str, list[Tensor]]:
    """Sort the parameters, each once, into `matrices`, `others` and `plain`.

    `plain` are norms and biases, which the paper's code does not decay. `others` are decayed like
    the matrices of the encoder, but never Muon's; so are the heads.
    """
    groups: dict[str, list[Tensor]] = {"matrices": [], "others": [], "plain": []}
    for name, parameter in model.named_parameters():  # a shared one is named once
        if parameter.ndim < 2:
            groups["plain"].append(parameter)
        elif ".layers." in name:
            groups["matrices"].append(parameter)
        else:
            groups["others"].append(parameter)
    return groups


def build_optimizers(model: nn.Module, config: OptimConfig) -> list[Optimizer]:
    """Return AdamW, and Muon after it when `config.matrices` asks for it."""
    groups = split_parameters(model)
    decayed = groups["others"] + (groups["matrices"] if config.matrices == "adamw" else [])
    adamw = AdamW(
        [
            {"params": decayed, "decay": config.weight_decay},
            {"params": groups["plain"], "decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=True,
    )
    if config.matrices == "adamw":
        return [adamw]
    muon = Muon(
        groups["matrices"],
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
    first, second = 1.0, 1.0
    if not config.bias_correction:
        first = 1.0 - config.beta1 ** (step + 1)
        second = math.sqrt(1.0 - config.beta2 ** (step + 1))
    for group in optimizers[0].param_groups:
        group["lr"] = rate * first / second
        group["eps"] = config.eps / second
        group["weight_decay"] = group["decay"] * second / first
    for optimizer in optimizers[1:]:
        for group in optimizer.param_groups:
            group["lr"] = config.muon_learning_rate * factor
    return rate
