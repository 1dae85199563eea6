"""`amber flops`: what a run costs, by part, under two counting rules."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from amber.cli.output import open_console, plain_table, print_json
from amber.cost.flops import Cost, Rule, total, training_flops_per_sequence
from amber.cost.parameters import parameter_counts
from amber.cost.published import Published, published_models
from amber.data.config import BatchConfig
from amber.electra.config import GeneratorConfig, MaskConfig, Objective, generator_shape
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.run.config import BudgetConfig, Preset

RULES: tuple[Rule, ...] = ("standard", "paper")
SMALL_REMARK = (
    "ELECTRA-Small: the paper's table 6 gives its generator 1/4 of the width (1.29e18 FLOPs), but "
    "the published 1.4e18 FLOPs fit 1/2 only (1.42e18); the preset electra-small takes 1/2"
)


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
    """rtd: discriminator and generator; mlm: a masked language model alone."""

    model: EncoderConfig
    """Shape of the main encoder."""

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    mask: MaskConfig = field(default_factory=MaskConfig)
    batch: BatchConfig = field(default_factory=BatchConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)

    def __post_init__(self) -> None:
        """Refuse a vocabulary that is none.

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
        show(breakdown, config, open_console(is_json=False))
    return 0


def count(config: FlopsConfig) -> dict[str, Any]:
    """Count a run: FLOPs by rule and part, steps and totals of its budget, parameters by part."""
    main, generator = shapes(config)
    length = config.batch.length
    num_masked = max(1, round(config.mask.fraction * (length - 2)))  # [CLS] and [SEP] never
    rules: dict[str, Any] = {}
    standard_step = 0
    for rule in RULES:
        costs = training_flops_per_sequence(
            main,
            generator,
            length=length,
            num_masked=num_masked,
            objective=config.objective,
            rule=rule,
        )
        step = total(costs).train * config.batch.size
        standard_step = standard_step or step
        steps = num_steps(config, standard_step)
        rules[rule] = {
            "parts": {name: figures(cost) for name, cost in costs.items()},
            "total": figures(total(costs)),
            "train_per_step": step,
            "train_per_budget": None if steps is None else round(step * steps),
        }
    steps = num_steps(config, standard_step)
    return {
        "preset": config.preset,
        "objective": config.objective,
        "length": length,
        "masked_per_sequence": num_masked,
        "batch_size": config.batch.size,
        "steps": None if steps is None else round(steps),
        "rules": rules,
        "parameters": parameter_counts(main, generator, objective=config.objective),
    }


def shapes(config: FlopsConfig) -> tuple[EncoderConfig, EncoderConfig | None]:
    """Return the shapes of the main encoder and of the generator, if there is one."""
    vocab_size = config.model.vocab_size or config.vocab_size
    main = config.model.resolved(vocab_size)
    if config.objective == "mlm":
        return main, None
    return main, generator_shape(main, config.generator)


def num_steps(config: FlopsConfig, step_flops: int) -> int | float | None:
    """Return the steps of the budget, of full sequences; None without one, or with hours."""
    budget = config.budget
    if budget.steps:
        return budget.steps
    if budget.tokens:
        return budget.tokens / (config.batch.size * config.batch.length)
    return budget.flops / step_flops if budget.flops else None


def figures(cost: Cost) -> dict[str, int]:
    """Return the two counts of a part, for one sequence."""
    return {"forward": cost.forward, "train": cost.train}


def show(breakdown: dict[str, Any], config: FlopsConfig, console: Console) -> None:
    """Print the tables."""
    model = config.model
    console.print(
        f"{config.preset}: {model.body} body, {model.num_hidden_layers} layers x "
        f"{model.hidden_size}, {breakdown['objective']}, sequences of {breakdown['length']} tokens "
        f"with {breakdown['masked_per_sequence']} masked, {breakdown['batch_size']} a step"
    )
    rules = breakdown["rules"]
    rows = part_rows(rules)
    rows.append(["a sequence", *pair(rules["standard"]["total"]), *pair(rules["paper"]["total"])])
    rows.append(["a step", *training(rules, "train_per_step")])
    if breakdown["steps"] is not None:
        rows.append([f"{breakdown['steps']:,} steps", *training(rules, "train_per_budget")])
    console.print()
    headings = ("FLOPs", "forward", "training", "forward*", "training*")
    console.print(plain_table(headings, rows))
    counts = breakdown["parameters"]
    rows = [[part, f"{number:,}"] for part, number in counts.items()]
    rows.append(["all", f"{sum(counts.values()):,}"])
    console.print()
    console.print(plain_table(("parameters", ""), rows))
    console.print()
    console.print(
        "By the standard rule, which budgets use: matrix products only, backward = 2 x forward. "
        "* By the paper's rule: each operation counts, look-ups are products, backward = forward. "
        "Sequences are taken to be full."
    )
    if breakdown["steps"] is None:
        console.print("no budget of steps, tokens or FLOPs was given, so there is no total")
    if config.preset == "electra-small" and config.objective == "rtd":
        console.print(SMALL_REMARK)


def part_rows(rules: dict[str, Any]) -> list[list[str]]:
    """Write the parts under the name of their network, in the order of the computation."""
    rows: list[list[str]] = []
    network = ""
    for name in rules["paper"]["parts"]:  # it counts all that the standard rule does, and look-ups
        if name.partition(": ")[0] != network:
            network = name.partition(": ")[0]
            rows.append([network, "", "", "", ""])
        counts = [pair(rules[rule]["parts"].get(name)) for rule in RULES]
        rows.append(["  " + name.partition(": ")[2], *counts[0], *counts[1]])
    return rows


def pair(counts: dict[str, int] | None) -> list[str]:
    """Write the two counts of a part; a rule that does not know the part has none."""
    if counts is None:
        return ["-", "-"]
    return [f"{counts['forward']:.3e}", f"{counts['train']:.3e}"]


def training(rules: dict[str, Any], name: str) -> list[str]:
    """Write a count that is of training only, under both rules."""
    return ["", f"{rules['standard'][name]:.3e}", "", f"{rules['paper'][name]:.3e}"]


def show_published(models: tuple[Published, ...], console: Console) -> None:
    """Print the published figures beside ours."""
    rows = [
        [
            model.model if model.quantity == "training" else f"{model.model}, inference",
            "-" if model.flops is None else f"{model.flops:.4e}",
            "-" if model.script is None else f"{model.script:.4e}",
            "-" if model.paper is None else f"{model.paper:.1e}",
            model.note,
        ]
        for model in models
    ]
    headings = ("model", "ours", "script", "paper", "note")
    console.print(plain_table(headings, rows, is_last_text=True))
    console.print()
    console.print(
        "FLOPs by the paper's rule: of the whole pre-training, or of one forward pass over 128 "
        "tokens. script: what the authors' script prints; paper: what the paper prints."
    )
    console.print(SMALL_REMARK)
