"""The method's choices: what is masked, how replacements are drawn, how the losses weigh."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from amber.errors import UserError
from amber.model.config import EncoderConfig

Objective = Literal["rtd", "rtd_masked", "replace_mlm", "all_tokens_mlm", "mlm", "electric"]
NoiseSource = Literal["generator", "unigram", "uniform", "frozen", "two_tower"]
Algorithm = Literal["joint", "two_stage", "adversarial"]
Sharing = Literal["embeddings", "tokens", "none", "all", "gdes"]
LabelRule = Literal["content", "source"]
NceRatio = Literal["paper", "official"]

BINARY: Final = ("rtd", "rtd_masked", "electric")
"""Objectives with one score per token; the others have one per vocabulary entry."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskConfig:
    """Which tokens are chosen, and what the network that fills them in sees there."""

    fraction: float = 0.15
    """Share of the ordinary tokens of a sequence that are chosen; at least one is."""

    keep_fraction: float = 0.15
    """Share of the chosen tokens that stay as they are; the loss still counts them."""

    random_fraction: float = 0.0
    """Share of the chosen tokens shown as a random ordinary token; the rest become [MASK]."""

    unit: Literal["token", "word", "ngram"] = "token"
    """What is chosen at once: a token, a word with all its tokens, or up to max_ngram words in a
    row (tokens, where the data has no words). word needs data from amber prepare --words ...."""

    max_ngram: int = 3
    """Words of the longest n-gram (unit ngram); a length of n words is drawn in proportion to
    1 / n."""

    frequency_power: float = 0.0
    """Units are chosen in proportion to their frequency in the training text to this power, that
    of several tokens being their geometric mean: above 0 for frequent ones, below for rare ones."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

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
        if self.max_ngram < 2:
            raise UserError(
                f"mask.max_ngram must be at least 2, got {self.max_ngram}: for single words set "
                "mask.unit to word"
            )
        if not -math.inf < self.frequency_power < math.inf:
            raise UserError(f"mask.frequency_power must be finite, got {self.frequency_power}")


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseConfig:
    """Where replacements come from and how they are drawn (all objectives but mlm)."""

    source: NoiseSource = "generator"
    """generator: a masked language model trained jointly; unigram: the corpus frequencies; uniform:
    every ordinary token alike; frozen: the model in noise.checkpoint, as it is (Fast-ELECTRA);
    two_tower: two causal networks, one from each side (Electric)."""

    checkpoint: Path | None = None
    """Model folder with a vocabulary head, of the same tokenizer (source frozen)."""

    temperature: float = 1.0
    """Of the distribution that is sampled, above 0; the paper uses 1. Above 1, replacements are
    easier to find."""

    final_temperature: float = 0.0
    """At the end of the budget, where the temperature shall change; evaluations always use it.
    0 = as noise.temperature."""

    top_k: int = 0
    """Only the k most probable tokens are sampled; 0 = all."""

    top_p: float = 1.0
    """Only the most probable tokens that reach this probability together are sampled."""

    forbid_original: bool = False
    """Never sample the token that stands in the text."""

    random_fraction: float = 0.0
    """Share of the ordinary tokens outside the chosen ones that a random token replaces, too."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if not 0 < self.temperature < math.inf:
            raise UserError(f"noise.temperature must be above 0, got {self.temperature}")
        if not 0 <= self.final_temperature < math.inf:
            raise UserError(
                f"noise.final_temperature must be at least 0, got {self.final_temperature}"
            )
        if self.top_k < 0:
            raise UserError(f"noise.top_k must be at least 0, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"noise.top_p must be in (0, 1], got {self.top_p}")
        if not 0 <= self.random_fraction < 1:
            raise UserError(f"noise.random_fraction must be in [0, 1), got {self.random_fraction}")
        if (self.source == "frozen") != (self.checkpoint is not None):
            raise UserError(
                "noise.checkpoint must be given with noise.source frozen, and only then: set both "
                "or leave out both"
            )

    def temperature_at(self, progress: float) -> float:
        """Return the temperature at a share of the budget: it changes by a constant factor."""
        final = self.final_temperature or self.temperature
        return self.temperature * (final / self.temperature) ** progress


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """Weights of the two mean losses, and the targets (all objectives but mlm)."""

    generator_weight: float = 1.0
    """Of the generator's mean loss per prediction."""

    final_generator_weight: float | None = None
    """At the end of the budget; it changes linearly (default: as loss.generator_weight)."""

    discriminator_weight: float | None = None
    """Of the main encoder's mean loss per prediction (default: 50 with one score per token, 1 with
    one per vocabulary entry)."""

    final_discriminator_weight: float | None = None
    """At the end of the budget, for example 30; it changes linearly (default: as
    loss.discriminator_weight)."""

    label_smoothing: float = 0.0
    """Share of each binary target that is spread over both answers (rtd, rtd_masked)."""

    include_special: bool = True
    """Whether [CLS] and [SEP] are in the loss over every token (rtd, all_tokens_mlm)."""

    nce_ratio: NceRatio = "paper"
    """Of noise to data in the loss of electric, for k chosen of n tokens: k / n in the paper,
    k / (n - k) in the official code."""

    def __post_init__(self) -> None:
        """Refuse impossible weights.

        Raises:
            UserError: with the name of the setting.
        """
        for name in (
            "generator_weight",
            "final_generator_weight",
            "discriminator_weight",
            "final_discriminator_weight",
        ):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise UserError(f"loss.{name} must be at least 0, got {value}")
        if not 0 <= self.label_smoothing < 1:
            raise UserError(f"loss.label_smoothing must be in [0, 1), got {self.label_smoothing}")
        if not self.generator_weight and self.discriminator_weight == 0:
            raise UserError(
                "loss.generator_weight and loss.discriminator_weight are both 0, so nothing would "
                "be learned: raise one of them"
            )

    def weights_at(self, progress: float, objective: Objective) -> tuple[float, float]:
        """Return the weights of the generator's and of the main encoder's mean loss.

        Args:
            progress: share of the budget that is used up, in [0, 1].
            objective: decides the main weight where none is set.
        """
        main = self.discriminator_weight
        if main is None:
            main = 50.0 if objective in BINARY else 1.0
        ends = [
            (self.generator_weight, self.final_generator_weight),
            (main, self.final_discriminator_weight),
        ]
        first, second = (
            start if end is None else start + (end - start) * progress for start, end in ends
        )
        return first, second


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratorConfig:
    """The generator's size as fractions of the discriminator's (sources generator, two_tower)."""

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


def generator_shape(
    main: EncoderConfig, config: GeneratorConfig, *, sharing: Sharing = "embeddings"
) -> EncoderConfig:
    """Derive the generator's shape.

    Widths and depths are rounded to the nearest whole number (halves to even); heads are as many
    as fit at the discriminator's head size, at least one. Shared tables keep their width; tables
    of its own are as wide as the generator, as in the official code.

    Args:
        main: shape of the discriminator.
        config: fractions of it.
        sharing: what the two networks share.

    Raises:
        UserError: the width is not a multiple of the heads, or the body needs full width.
    """
    from_width = round(main.hidden_size * config.width_fraction)
    num_heads = max(1, from_width // main.head_size)
    if sharing == "all" and (config.width_fraction, config.depth_fraction) != (1, 1):
        raise UserError(
            "sharing is all, so both networks are one: leave out generator.width_fraction and "
            "generator.depth_fraction"
        )
    if main.body == "modern" and from_width != main.hidden_size and sharing != "none":
        raise UserError(
            f"generator.width_fraction is {config.width_fraction}, but the modern body shares its "
            "tables without a projection: keep it at 1 and lower generator.depth_fraction, or set "
            "sharing to none"
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
        embedding_size=from_width if sharing == "none" else main.embedding_size,
        num_hidden_layers=max(1, round(main.num_hidden_layers * config.depth_fraction)),
        num_attention_heads=num_heads,
        intermediate_size=round(main.intermediate_size / main.hidden_size * from_width),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """What a run does: the choices that decide its networks and its losses."""

    objective: Objective = "rtd"
    algorithm: Algorithm = "joint"
    sharing: Sharing = "embeddings"
    label_rule: LabelRule = "content"
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    loss: LossConfig = field(default_factory=LossConfig)

    @property
    def has_network(self) -> bool:
        """Whether a network proposes the replacements."""
        return self.objective != "mlm" and self.noise.source not in ("unigram", "uniform")

    @property
    def is_generator_trained(self) -> bool:
        """Whether a second network learns."""
        return self.has_network and self.noise.source != "frozen"

    @property
    def is_shared(self) -> bool:
        """Whether the two networks may have weights in common."""
        return self.is_generator_trained and self.algorithm != "two_stage"

    def weights_at(self, progress: float) -> tuple[float, float]:
        """Return the weights of the generator's and of the main encoder's mean loss.

        Args:
            progress: share of the budget that is used up, in [0, 1].
        """
        if self.objective == "mlm":
            return 1.0, 0.0
        return self.loss.weights_at(progress, self.objective)
