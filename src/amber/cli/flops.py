"""`amber flops`: what a run costs, by part, under two counting rules."""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from amber.cli.flops_tables import SMALL_REMARK, show, show_published
from amber.cli.output import open_console, print_json
from amber.cost.flops import Cost, Rule, total, training_flops_per_sequence
from amber.cost.method import Stage
from amber.cost.parameters import parameter_counts
from amber.cost.published import published_models
from amber.data.config import BatchConfig
from amber.electra.config import (
    Algorithm,
    GeneratorConfig,
    LossConfig,
    MaskConfig,
    NoiseConfig,
    Objective,
    Sharing,
    generator_shape,
)
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.hugging_face import from_settings
from amber.run.combination import check_combination
from amber.run.config import BudgetConfig, Preset, PretrainConfig

RULES: tuple[Rule, ...] = ("standard", "paper")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlopsConfig:
    """Count the floating-point operations and the parameters of a pre-training run."""

    preset: Preset = "tiny"
    """Settings to start from, as for pretrain."""

    paper: bool = False
    """Show the published models instead: our count beside the printed figures."""

    vocab_size: int = 30_522
    """Rows of the token table; model.vocab_size, where given, goes before it."""

    objective: Objective = "rtd"
    """What the main encoder learns, which says what head it has and where; mlm: alone, without a
    generator."""

    algorithm: Algorithm = "joint"
    """joint: both networks in each step; two_stage: the generator alone, then the discriminator
    with the generator frozen, both of one size; adversarial: as joint, with a baseline head."""

    switch_fraction: float = 0.5
    """Share of the budget after which the discriminator is trained (algorithm two_stage)."""

    sharing: Sharing = "embeddings"
    """What the two networks share: changes the parameters, and the work only where `none` gives the
    generator tables of its own width."""

    model: EncoderConfig
    """Shape of the main encoder."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    mask: MaskConfig = field(default_factory=MaskConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    """Where replacements come from; noise.source changes the count, and so does the shape of the
    model in noise.checkpoint."""

    loss: LossConfig = field(default_factory=LossConfig)
    """What is learned; only loss.include_special changes the count (objective all_tokens_mlm)."""

    batch: BatchConfig = field(default_factory=BatchConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        if self.vocab_size < 1:
            raise UserError(f"vocab_size must be at least 1, got {self.vocab_size}")


def run(config: FlopsConfig, *, is_json: bool) -> int:
    """Print the count."""
    if config.paper:
        models = published_models()
        if is_json:
            print_json({"models": [asdict(model) for model in models], "remark": SMALL_REMARK})
        else:
            show_published(models, open_console(is_json=False))
        return 0
    breakdown = count(config)
    if is_json:
        print_json(breakdown)
    else:
        show(breakdown, config.model, open_console(is_json=False))
    return 0


def count(config: FlopsConfig) -> dict[str, Any]:
    """Count a run: FLOPs by rule and part, steps and totals of its budget, parameters by part.

    With two stages, `stages` has steps and rules of each, and `rules` the totals of both.

    Raises:
        UserError: settings that do not fit together, or one without effect.
    """
    main, generator = shapes(config)
    length, source = config.batch.length, config.noise.source
    num_masked = max(1, round(config.mask.fraction * (length - 2)))  # [CLS] and [SEP] never
    is_two_stage = config.algorithm == "two_stage"
    names: tuple[Stage, ...] = ("generator", "discriminator") if is_two_stage else ("both",)
    costs = {
        (stage, rule): training_flops_per_sequence(
            main,
            generator,
            length=length,
            num_masked=num_masked,
            objective=config.objective,
            source=source,
            algorithm=config.algorithm,
            stage=stage,
            includes_special=config.loss.include_special,
            rule=rule,
        )
        for stage in names
        for rule in RULES
    }
    step_flops = [total(costs[stage, "standard"]).train * config.batch.size for stage in names]
    steps = num_steps(config, step_flops)
    stages: dict[Stage, dict[str, Any]] = {
        stage: {
            "steps": None if number is None else round(number),
            "rules": {rule: in_all(costs[stage, rule], config, number) for rule in RULES},
        }
        for stage, number in zip(names, steps, strict=True)
    }
    breakdown = {
        "preset": config.preset,
        "objective": config.objective,
        "noise_source": None if config.objective == "mlm" else source,
        "algorithm": config.algorithm,
        "length": length,
        "masked_per_sequence": num_masked,
        "batch_size": config.batch.size,
    }
    breakdown |= together(stages) | {"stages": stages} if is_two_stage else stages["both"]
    return breakdown | {
        "parameters": parameter_counts(
            main,
            generator,
            objective=config.objective,
            source=source,
            sharing=config.sharing,
            algorithm=config.algorithm,
        )
    }


def as_run(config: FlopsConfig) -> PretrainConfig:
    """Return the settings of a run that would cost this.

    Raises:
        UserError: settings that exclude each other, or one without effect beside the others.
    """
    names = {part.name for part in fields(FlopsConfig)} - {"paper", "vocab_size"}
    values = {name: getattr(config, name) for name in names}
    run = PretrainConfig(data=Path(), out=Path(), **values)
    check_combination(run)
    return run


def shapes(config: FlopsConfig) -> tuple[EncoderConfig, EncoderConfig | None]:
    """Return the shapes of the main encoder and of the network that proposes, if there is one."""
    method = as_run(config).method
    vocab_size = config.model.vocab_size or config.vocab_size
    main = config.model.resolved(vocab_size)
    if config.noise.checkpoint is not None:
        return main, frozen_shape(config.noise.checkpoint, vocab_size=vocab_size)
    if not method.is_generator_trained:
        return main, None
    return main, generator_shape(main, config.generator, sharing=config.sharing)


def frozen_shape(folder: Path, *, vocab_size: int) -> EncoderConfig:
    """Read the shape of the model that proposes and does not learn.

    Args:
        folder: of a model, or of a run, whose generator or masked language model it is.
        vocab_size: of the main encoder.

    Raises:
        UserError: there is none in the folder, or its vocabulary has another size.
    """
    paths = [folder / name / "config.json" for name in ("generator", "encoder")]
    path = next((path for path in paths if path.is_file()), folder / "config.json")
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read ({error}): give a model folder") from error
    if not isinstance(settings, dict):
        raise UserError(f"{path}: not a JSON object: copy the folder again")
    shape = from_settings(settings, where=str(path))
    if shape.vocab_size != vocab_size:
        raise UserError(
            f"{path}: the model has {shape.vocab_size} tokens, not {vocab_size}: give vocab_size "
            f"{shape.vocab_size}"
        )
    return shape


def num_steps(config: FlopsConfig, step_flops: list[int]) -> list[int | float | None]:
    """Return the steps of the budget in each stage, of full sequences; None where unknown.

    Args:
        config: the budget, and the share of it that is for the first of two stages.
        step_flops: of a step of each stage, standard rule.
    """
    budget, share = config.budget, config.switch_fraction
    shares = [1.0] if len(step_flops) == 1 else [share, 1 - share]
    if budget.flops:
        return [budget.flops * part / cost for part, cost in zip(shares, step_flops, strict=True)]
    number = budget.steps or budget.tokens / (config.batch.size * config.batch.length)
    if not number:
        return [None for _ in step_flops]
    if len(step_flops) == 1:
        return [number]
    first = math.ceil(share * number - 1e-9)  # those that begin before the share is used up
    return [first, number - first]


def in_all(
    costs: dict[str, Cost], config: FlopsConfig, steps: int | float | None
) -> dict[str, Any]:
    """Return the parts of one stage under one rule, of a sequence, a step and the budget."""
    step = total(costs).train * config.batch.size
    return {
        "parts": {name: figures(cost) for name, cost in costs.items()},
        "total": figures(total(costs)),
        "train_per_step": step,
        "train_per_budget": None if steps is None else round(step * steps),
    }


def together(stages: dict[Stage, dict[str, Any]]) -> dict[str, Any]:
    """Add up the steps and the costs of the stages; None without a budget."""
    if any(stage["steps"] is None for stage in stages.values()):
        return {"steps": None, "rules": {rule: {"train_per_budget": None} for rule in RULES}}
    return {
        "steps": sum(stage["steps"] for stage in stages.values()),
        "rules": {
            rule: {
                "train_per_budget": sum(
                    stage["rules"][rule]["train_per_budget"] for stage in stages.values()
                )
            }
            for rule in RULES
        },
    }


def figures(cost: Cost) -> dict[str, int]:
    """Return the two counts of a part, for one sequence."""
    return {"forward": cost.forward, "train": cost.train}
