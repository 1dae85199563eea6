"""The method's choices: what is masked, how replacements are drawn, how the losses weigh."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from amber.errors import UserError
from amber.model.config import EncoderConfig

Objective = Literal["rtd", "mlm"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskConfig:
    """Which tokens are chosen, and what the network that fills them in sees there."""

    fraction: float = 0.15
    """Share of the ordinary tokens of a sequence that are chosen; at least one is."""

    keep_fraction: float = 0.15
    """Share of the chosen tokens that stay as they are; the loss still counts them."""

    random_fraction: float = 0.0
    """Share of the chosen tokens shown as a random ordinary token; the rest become [MASK]."""

    def __post_init__(self) -> None:
        """Refuse impossible shares.

        Raises:
            UserError: with the name of the setting.
        """
        if not 0 < self.fraction < 1:
            raise UserError(f"mask.fraction must be in (0, 1), got {self.fraction}")
        for name in ("keep_fraction", "random_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"mask.{name} must be in [0, 1], got {getattr(self, name)}")
        if self.keep_fraction + self.random_fraction > 1:
            raise UserError(
                f"mask.keep_fraction ({self.keep_fraction}) and mask.random_fraction "
                f"({self.random_fraction}) must not exceed 1 together"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseConfig:
    """How replacements are drawn from the generator (objective rtd)."""

    temperature: float = 1.0
    """Of the softmax that is sampled, above 0; the paper uses 1. Above 1, replacements are easier
    to find."""

    final_temperature: float = 0.0
    """At the end of the budget, where the temperature shall change; evaluations always use it.
    0 = as noise.temperature."""

    def __post_init__(self) -> None:
        """Refuse impossible temperatures.

        Raises:
            UserError: with the name of the setting.
        """
        if not 0 < self.temperature < math.inf:
            raise UserError(f"noise.temperature must be above 0, got {self.temperature}")
        if not 0 <= self.final_temperature < math.inf:
            raise UserError(
                f"noise.final_temperature must be at least 0, got {self.final_temperature}"
            )

    def temperature_at(self, progress: float) -> float:
        """Return the temperature at a share of the budget: it changes by a constant factor."""
        final = self.final_temperature or self.temperature
        return self.temperature * (final / self.temperature) ** progress


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """Weights of the two mean losses (objective rtd)."""

    generator_weight: float = 1.0
    """Of the mean MLM loss over the chosen tokens."""

    discriminator_weight: float = 50.0
    """Of the mean RTD loss over the real tokens."""

    def __post_init__(self) -> None:
        """Refuse impossible weights.

        Raises:
            UserError: with the name of the setting.
        """
        for name in ("generator_weight", "discriminator_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"loss.{name} must be at least 0, got {getattr(self, name)}")
        if not self.generator_weight and not self.discriminator_weight:
            raise UserError(
                "loss.generator_weight and loss.discriminator_weight are both 0, so nothing would "
                "be learned: raise one of them"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratorConfig:
    """The generator's size as fractions of the discriminator's (objective rtd)."""

    width_fraction: float = 1.0
    """Of the hidden size; the feed-forward width keeps its ratio, heads keep their size."""

    depth_fraction: float = 1.0
    """Of the number of layers, at least one."""

    def __post_init__(self) -> None:
        """Refuse impossible sizes.

        Raises:
            UserError: with the name of the setting.
        """
        for name in ("width_fraction", "depth_fraction"):
            if not 0 < getattr(self, name) <= 2:
                raise UserError(f"generator.{name} must be in (0, 2], got {getattr(self, name)}")


def generator_shape(main: EncoderConfig, config: GeneratorConfig) -> EncoderConfig:
    """Derive the generator's shape.

    Widths and depths are rounded to the nearest whole number (halves to even); heads are as many
    as fit at the discriminator's head size, at least one. The tables keep their width, since they
    are shared.

    Raises:
        UserError: the width is not a multiple of the heads, or the body needs full width.
    """
    from_width = round(main.hidden_size * config.width_fraction)
    num_heads = max(1, from_width // main.head_size)
    if main.body == "modern" and from_width != main.hidden_size:
        raise UserError(
            f"generator.width_fraction is {config.width_fraction}, but the modern body shares its "
            "tables without a projection: keep it at 1 and lower generator.depth_fraction"
        )
    if from_width < 1 or from_width % num_heads:
        raise UserError(
            f"generator.width_fraction {config.width_fraction} of hidden_size {main.hidden_size} "
            f"gives a width of {from_width}, which {num_heads} heads do not divide: try "
            f"{max(1, num_heads) * main.head_size / main.hidden_size:.4g}"
        )
    return replace(
        main,
        hidden_size=from_width,
        num_hidden_layers=max(1, round(main.num_hidden_layers * config.depth_fraction)),
        num_attention_heads=num_heads,
        intermediate_size=round(main.intermediate_size / main.hidden_size * from_width),
    )
