"""The settings of a pre-training run; nothing here imports torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from amber.data.config import BatchConfig
from amber.electra.config import (
    Algorithm,
    GeneratorConfig,
    LabelRule,
    LossConfig,
    MaskConfig,
    Method,
    NoiseConfig,
    Objective,
    Sharing,
)
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.optim.config import OptimConfig

Preset = Literal[
    "tiny", "small", "base", "electra-small", "electra-small-plus", "electra-base", "electra-large"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetConfig:
    """When the run ends: exactly one of the four is above 0."""

    steps: int = 0
    """Optimiser steps."""

    tokens: float = 0.0
    """Real tokens, padding not counted."""

    flops: float = 0.0
    """Floating-point operations by the standard rule, padding not counted."""

    hours: float = 0.0
    """Hours of training steps; evaluations and checkpoints are not counted."""

    def __post_init__(self) -> None:
        """Refuse negative values.

        Raises:
            UserError: with the name of the setting.
        """
        for name in ("steps", "tokens", "flops", "hours"):
            if getattr(self, name) < 0:
                raise UserError(f"budget.{name} must be at least 0, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationConfig:
    """Measuring on the held-out documents, with masks that never change."""

    every_steps: int = 500
    """Optimiser steps between evaluations; there is always one before the first and one after
    the last step."""

    examples: int = 512
    """Held-out sequences used; 0 = all."""

    batch_size: int = 32
    """Sequences per forward pass."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if self.every_steps < 1 or self.batch_size < 1 or self.examples < 0:
            raise UserError(
                "evaluation.every_steps and evaluation.batch_size must be at least 1 and "
                "evaluation.examples at least 0"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """Saving the state of the run."""

    every_steps: int = 1000
    """Optimiser steps between checkpoints; there is always one at the end."""

    keep: int = 2
    """Newest checkpoints kept, besides the one with the best held-out loss."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if self.every_steps < 1 or self.keep < 1:
            raise UserError("checkpoint.every_steps and checkpoint.keep must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class LogConfig:
    """What is written down while training."""

    every_steps: int = 20
    """Optimiser steps between lines of metrics.jsonl and of the screen."""

    tensorboard: bool = False
    """Also write TensorBoard files to RUN/tensorboard (needs: pip install tensorboard)."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if self.every_steps < 1:
            raise UserError(f"log.every_steps must be at least 1, got {self.every_steps}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PretrainConfig:
    """Train an encoder by one of six objectives; by default a discriminator and its generator."""

    data: Path
    """Folder written by `amber prepare`."""

    out: Path
    """Folder of the run: settings, metrics, checkpoints, the finished models."""

    preset: Preset = "tiny"
    """Settings to start from. tiny, small, base: the modern body, ours; electra-*: the paper's."""

    init: Path | None = None
    """Start from the weights of a model folder, or of a run folder, instead of random ones."""

    resume: bool = False
    """Go on from the newest sound checkpoint of the run folder."""

    objective: Objective = "rtd"
    """What the main encoder learns. rtd: which tokens were replaced; rtd_masked: the same, at the
    chosen tokens only; replace_mlm: the original tokens at the chosen places, from the text with
    replacements; all_tokens_mlm: the original tokens everywhere; mlm: the tokens hidden by [MASK],
    without a second network; electric: an energy of every token, from which a sentence's score
    comes."""

    algorithm: Algorithm = "joint"
    """joint: both losses in every step; two_stage: the generator first, then the discriminator,
    which starts from its weights; adversarial: the generator maximises the discriminator's loss."""

    switch_fraction: float = 0.5
    """Share of the budget after which the discriminator is trained (two_stage)."""

    sharing: Sharing = "embeddings"
    """What both networks share. embeddings: all tables and their LayerNorm; tokens: the token
    table; none; all: every weight (equal sizes); gdes: the discriminator's token table is the
    generator's plus a difference of its own, and sends no gradient to it."""

    label_rule: LabelRule = "content"
    """Which tokens count as replaced. content: those that differ from the text; source: all that
    were chosen, whatever was drawn there."""

    seed: int = 0
    """Of the initial weights, the order, the masks, the samples and the dropout."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Of the matrix products; losses, sampling and weights are always float32. auto: bf16 where
    the chip has it."""

    compile: bool = False
    """Compile the encoders with torch.compile: a slow first step, faster ones after."""

    model: EncoderConfig
    """Shape of the main encoder; model.vocab_size comes from the data."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    mask: MaskConfig = field(default_factory=MaskConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log: LogConfig = field(default_factory=LogConfig)

    def __post_init__(self) -> None:
        """Refuse what does not fit together.

        Raises:
            UserError: with the names of the settings.
        """
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed must be in [0, 2^63), got {self.seed}")
        if not 0 < self.switch_fraction < 1:
            raise UserError(f"switch_fraction must be in (0, 1), got {self.switch_fraction}")
        if self.batch.length > self.model.max_position_embeddings:
            raise UserError(
                f"batch.length ({self.batch.length}) exceeds model.max_position_embeddings "
                f"({self.model.max_position_embeddings}): lower the first or raise the second"
            )

    @property
    def method(self) -> Method:
        """The choices that decide networks and losses."""
        return Method(
            objective=self.objective,
            algorithm=self.algorithm,
            sharing=self.sharing,
            label_rule=self.label_rule,
            noise=self.noise,
            loss=self.loss,
        )


RESUMABLE = frozenset(
    {
        "data",
        "out",
        "resume",
        "device",
        "batch.micro_size",
        "batch.num_workers",
        "checkpoint.every_steps",
        "checkpoint.keep",
        "log.every_steps",
        "log.tensorboard",
        "evaluation.every_steps",
        "evaluation.batch_size",
    }
)
"""Settings that may change when a run is resumed: they do not change what is learned (but for the
numbers that dropout draws, where batch.micro_size changes).
The data is known by its fingerprint, not by its path."""
