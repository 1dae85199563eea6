"""Which settings have no effect beside others, and which exclude each other; no torch here."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, NamedTuple

from amber.errors import UserError
from amber.run.config import PretrainConfig


class Rule(NamedTuple):
    """Settings that have an effect only under some values of another one."""

    settings: tuple[str, ...]
    """Dotted names; `section.*` means all of a section."""

    other: str
    accepted: tuple[str, ...]


NETWORK: Final = ("generator", "frozen", "two_tower")
TRAINED: Final = ("generator", "two_tower")
TARGETS: Final = ("algorithm", "sharing", "label_rule", "noise.*", "loss.*", "generator.*")
RULES: Final = (
    Rule(TARGETS, "objective", ("rtd", "rtd_masked", "replace_mlm", "all_tokens_mlm", "electric")),
    Rule(("label_rule", "loss.label_smoothing"), "objective", ("rtd", "rtd_masked")),
    Rule(("loss.include_special",), "objective", ("rtd", "all_tokens_mlm")),
    Rule(("loss.nce_ratio",), "objective", ("electric",)),
    Rule(("noise.final_temperature", "noise.temperature"), "noise.source", (*NETWORK, "unigram")),
    Rule(("noise.top_k", "noise.top_p"), "noise.source", (*NETWORK, "unigram")),
    Rule(("mask.keep_fraction", "mask.random_fraction"), "noise.source", ("generator", "frozen")),
    Rule(("generator.*", "sharing"), "noise.source", TRAINED),
    Rule(("loss.generator_weight", "loss.final_generator_weight"), "noise.source", TRAINED),
    Rule(("optim.generator_rate_ratio",), "noise.source", TRAINED),
    Rule(("generator.*", "sharing"), "algorithm", ("joint", "adversarial")),
    Rule(("switch_fraction",), "algorithm", ("two_stage",)),
    Rule(
        ("generator.*", "optim.generator_rate_ratio"),
        "sharing",
        ("embeddings", "tokens", "none", "gdes"),
    ),
    Rule(
        ("optim.generator_rate_ratio",),
        "objective",
        ("rtd", "rtd_masked", "replace_mlm", "all_tokens_mlm", "electric"),
    ),
    Rule(("mask.max_ngram",), "mask.unit", ("ngram",)),
    Rule(("optim.muon_learning_rate", "optim.muon_momentum"), "optim.matrices", ("muon",)),
    Rule(("optim.decay_fraction",), "optim.schedule", ("trapezoid",)),
    Rule(("optim.floor_fraction",), "optim.schedule", ("trapezoid", "cosine")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """Two settings of which some values exclude each other."""

    name: str
    values: tuple[Any, ...]
    other: str
    needed: tuple[Any, ...]
    """The values that the other one must have."""

    why: str


CONFLICTS: Final = (
    Conflict(
        name="objective",
        values=("electric",),
        other="noise.source",
        needed=("two_tower", "unigram", "uniform"),
        why="its loss needs the probability of every token under the noise, in one pass",
    ),
    Conflict(
        name="objective",
        values=("electric",),
        other="noise.top_k",
        needed=(0,),
        why="its loss needs noise that can give every token",
    ),
    Conflict(
        name="objective",
        values=("electric",),
        other="noise.top_p",
        needed=(1.0,),
        why="its loss needs noise that can give every token",
    ),
    Conflict(
        name="objective",
        values=("electric",),
        other="noise.forbid_original",
        needed=(False,),
        why="its loss needs noise that can give every token",
    ),
    Conflict(
        name="objective",
        values=("electric",),
        other="noise.random_fraction",
        needed=(0.0,),
        why="its loss needs to know the probability of all noise",
    ),
    Conflict(
        name="algorithm",
        values=("two_stage", "adversarial"),
        other="noise.source",
        needed=("generator",),
        why="it trains a generator",
    ),
    Conflict(
        name="algorithm",
        values=("adversarial",),
        other="objective",
        needed=("rtd", "rtd_masked"),
        why="the generator's reward is the discriminator's loss",
    ),
    Conflict(
        name="algorithm",
        values=("adversarial",),
        other="label_rule",
        needed=("content",),
        why="the reward of a sample that equals the text is that of an original token",
    ),
    Conflict(
        name="label_rule",
        values=("source",),
        other="objective",
        needed=("rtd",),
        why="with the chosen tokens alone every label would be the same",
    ),
    Conflict(
        name="sharing",
        values=("all",),
        other="noise.source",
        needed=("generator",),
        why="two towers see one side of each token, the main encoder both",
    ),
)


def value_of(config: Any, name: str) -> Any:
    """Return a setting by its dotted name; None where a command does not have it."""
    for part in name.split("."):
        config = getattr(config, part, None)
    return config


def idle_settings(config: Any) -> dict[str, str]:
    """Return the settings that have no effect beside the others, each with the reason.

    Args:
        config: the settings of a command, whole or a draft.
    """
    idle: dict[str, str] = {}
    for rule in RULES:
        value = value_of(config, rule.other)
        if value is None or value in rule.accepted:
            continue
        for name in _expand(config, rule.settings):
            reason = (
                f"while {rule.other} is {value}: leave it out or set {rule.other} to "
                f"{' or '.join(rule.accepted)}"
            )
            idle.setdefault(name, reason)
    return idle


def _expand(config: Any, names: Iterable[str]) -> Iterable[str]:
    """Replace `section.*` by the settings of the section."""
    for name in names:
        section = value_of(config, name.removesuffix(".*"))
        if name.endswith(".*") and is_dataclass(section):
            yield from (f"{name[:-1]}{part.name}" for part in fields(section))
        elif not name.endswith(".*"):
            yield name


def check_combination(config: PretrainConfig) -> None:
    """Refuse settings that exclude each other, and ones that were set and have no effect.

    Raises:
        UserError: with the names of the settings.
    """
    idle = idle_settings(config)
    for conflict in CONFLICTS:
        value, other = value_of(config, conflict.name), value_of(config, conflict.other)
        if conflict.name in idle:
            continue
        if value in conflict.values and other not in conflict.needed:
            needed = " or ".join(str(x) for x in conflict.needed)
            raise UserError(
                f"{conflict.name} is {value}, but {conflict.other} is {other}: {conflict.why}; set "
                f"{conflict.other} to {needed}"
            )
    if not config.method.is_generator_trained and config.loss.discriminator_weight == 0:
        raise UserError(
            "loss.discriminator_weight is 0 and nothing else is trained, so nothing would be "
            "learned: raise it"
        )
    for name, reason in idle.items():
        if value_of(config, name) != default_of(type(config), name):
            raise UserError(f"{name} has no effect {reason}")


def default_of(settings_class: type, name: str) -> Any:
    """Return the default of a setting by its dotted name."""
    first, _, rest = name.partition(".")
    field = next(part for part in fields(settings_class) if part.name == first)
    if rest:
        return default_of(field.type, rest)  # type: ignore[arg-type]
    return field.default
