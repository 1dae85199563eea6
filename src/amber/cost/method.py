"""The choices of the method that change what a step costs, and what each makes of the networks.

The words are those of the settings (`amber.electra` is no layer below this one, so they are written
down here too).
"""

from dataclasses import dataclass
from typing import Final, Literal

Objective = Literal["rtd", "rtd_masked", "replace_mlm", "all_tokens_mlm", "mlm", "electric"]
Source = Literal["generator", "unigram", "uniform", "frozen", "two_tower"]
Algorithm = Literal["joint", "two_stage", "adversarial"]
Sharing = Literal["embeddings", "tokens", "none", "all", "gdes"]
Stage = Literal["both", "generator", "discriminator"]
"""What learns: both networks at once, or one of them (two_stage only)."""

Network = Literal["encoder", "discriminator", "generator", "towers", "all"]
Head = Literal[
    "RTD head", "MLM head", "copy gate", "energy head", "baseline head", "vocabulary head"
]
Where = Literal["everywhere", "scored", "chosen", "ordinary"]
"""At which positions a head is computed: all; those in the loss; the masked ones; all but [CLS] and
[SEP]."""

RTD_HEAD: Final = "RTD head"
MLM_HEAD: Final = "MLM head"
COPY_GATE: Final = "copy gate"
ENERGY_HEAD: Final = "energy head"
BASELINE_HEAD: Final = "baseline head"
VOCABULARY_HEAD: Final = "vocabulary head"

MAIN_HEADS: dict[Objective, dict[Head, Where]] = {
    "rtd": {RTD_HEAD: "everywhere"},
    "rtd_masked": {RTD_HEAD: "chosen"},
    "replace_mlm": {MLM_HEAD: "chosen"},
    "all_tokens_mlm": {MLM_HEAD: "scored", COPY_GATE: "scored"},
    "mlm": {MLM_HEAD: "chosen"},
    "electric": {ENERGY_HEAD: "everywhere"},
}
"""The heads of the main encoder, and where each is computed."""

NETWORK_SOURCES: tuple[Source, ...] = ("generator", "frozen", "two_tower")
"""Where a network proposes the replacements; the others look them up in a list."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """One network's work on a sequence."""

    network: Network
    heads: dict[Head, Where]
    is_frozen: bool = False
    """Forward only."""


def main_passage(objective: Objective) -> Passage:
    """Return the work of the encoder that is kept."""
    network = "encoder" if objective == "mlm" else "discriminator"
    return Passage(network=network, heads=MAIN_HEADS[objective])


def noise_passage(source: Source, algorithm: Algorithm, stage: Stage) -> Passage | None:
    """Return the work of the network that proposes replacements; None where none does."""
    if source not in NETWORK_SOURCES:
        return None
    if source == "two_tower":
        return Passage(network="towers", heads={VOCABULARY_HEAD: "ordinary"})
    heads: dict[Head, Where] = {MLM_HEAD: "chosen"}
    if algorithm == "adversarial":
        heads[BASELINE_HEAD] = "chosen"
    is_frozen = source == "frozen" or stage == "discriminator"
    return Passage(network="generator", heads=heads, is_frozen=is_frozen)


def passages(
    objective: Objective, source: Source, algorithm: Algorithm, stage: Stage
) -> list[Passage]:
    """List what a training step does, in the order of the computation."""
    if objective == "mlm":
        return [main_passage(objective)]
    noise = noise_passage(source, algorithm, stage)
    main = [] if stage == "generator" else [main_passage(objective)]
    return [*([noise] if noise else []), *main]


def check_method(
    objective: Objective,
    source: Source,
    algorithm: Algorithm,
    *,
    has_generator: bool,
    stage: Stage | None = None,
) -> None:
    """Refuse choices that name no training.

    Args:
        objective: what the main encoder learns.
        source: where replacements come from.
        algorithm: when and how the networks learn.
        has_generator: a shape is given for the network that proposes.
        stage: None: not asked.

    Raises:
        ValueError: with the two choices that do not fit.
    """
    if objective == "mlm":
        if has_generator:
            raise ValueError("the mlm objective has no generator, got one")
        if source != "generator" or algorithm != "joint":
            raise ValueError(f"the mlm objective has no noise, got {source} and {algorithm}")
    elif has_generator and source not in NETWORK_SOURCES:
        raise ValueError(f"the noise source {source} has no network, got one")
    elif not has_generator and source in NETWORK_SOURCES:
        raise ValueError(f"the noise source {source} is a network, got none")
    if algorithm != "joint" and source != "generator":
        raise ValueError(f"{algorithm} training needs the source generator, got {source}")
    if stage is not None and (stage == "both") == (algorithm == "two_stage"):
        raise ValueError(f"{algorithm} training has no step of the stage {stage}")
