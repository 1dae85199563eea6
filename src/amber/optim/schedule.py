"""The learning rate as a function of progress."""

import math

from amber.optim.config import OptimConfig


def rate_factor(progress: float, step: int, config: OptimConfig) -> float:
    """Return the rate as a share of its peak.

    Args:
        progress: share of the budget that is used up, in [0, 1].
        step: optimiser steps done; only `warmup_steps` looks at it.
        config: shape of the schedule.
    """
    if config.warmup_steps > 0:
        warmup = min(1.0, step / config.warmup_steps)
    elif config.warmup_fraction > 0:
        warmup = min(1.0, progress / config.warmup_fraction)
    else:
        warmup = 1.0
    if config.schedule == "linear":  # decay and warm-up multiply, as in the official code
        return warmup * (1.0 - progress)
    if config.schedule == "constant":
        return warmup
    floor = config.floor_fraction
    if config.schedule == "cosine":
        return warmup * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * progress)))
    fall = 1.0 if config.decay_fraction == 0 else min(1.0, (1.0 - progress) / config.decay_fraction)
    return warmup * (floor + (1.0 - floor) * fall)
