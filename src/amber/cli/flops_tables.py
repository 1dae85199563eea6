"""The tables of `amber flops`."""

from typing import Any

from rich.console import Console

from amber.cli.output import plain_table
from amber.cost.parameters import FROZEN
from amber.cost.published import Published
from amber.model.config import EncoderConfig

SMALL_REMARK = (
    "ELECTRA-Small: the paper's table 6 gives its generator 1/4 of the width (1.29e18 FLOPs), but "
    "the published 1.4e18 FLOPs fit 1/2 only (1.42e18); the preset electra-small takes 1/2"
)
STAGE_NAMES = {"generator": "first stage", "discriminator": "second stage"}


def show(breakdown: dict[str, Any], model: EncoderConfig, console: Console) -> None:
    """Print the tables of a count.

    Args:
        breakdown: what `amber flops --json` prints.
        model: shape of the main encoder.
        console: where to.
    """
    console.print(
        f"{breakdown['preset']}: {model.body} body, {model.num_hidden_layers} layers x "
        f"{model.hidden_size}, {method_words(breakdown)}, sequences of {breakdown['length']} "
        f"tokens with {breakdown['masked_per_sequence']} masked, {breakdown['batch_size']} a step"
    )
    rows: list[list[str]] = []
    if "stages" in breakdown:
        for name, stage in breakdown["stages"].items():
            rows.append([STAGE_NAMES[name], "", "", "", ""])
            rows += cost_rows(stage["rules"], stage["steps"])
        if breakdown["steps"] is not None:
            number = f"{breakdown['steps']:,} steps in all"
            rows.append([number, *training(breakdown["rules"], "train_per_budget")])
    else:
        rows = cost_rows(breakdown["rules"], breakdown["steps"])
    console.print()
    headings = ("FLOPs", "forward", "training", "forward*", "training*")
    console.print(plain_table(headings, rows))
    console.print()
    console.print(plain_table(("parameters", ""), parameter_rows(breakdown["parameters"])))
    console.print()
    console.print(
        "By the standard rule, which budgets use: matrix products only, backward = 2 x forward. "
        "* By the paper's rule: each operation counts, look-ups are products, backward = forward. "
        "Sequences are taken to be full."
    )
    if breakdown["steps"] is None:
        console.print("no budget of steps, tokens or FLOPs was given, so there is no total")
    if breakdown["preset"] == "electra-small" and method_words(breakdown) == "rtd":
        console.print(SMALL_REMARK)


def method_words(breakdown: dict[str, Any]) -> str:
    """Name the objective, and the noise and the algorithm where they are not the usual ones."""
    words = [breakdown["objective"]]
    if breakdown["noise_source"] not in (None, "generator"):
        words.append(f"{breakdown['noise_source']} noise")
    if breakdown["algorithm"] != "joint":
        words.append(breakdown["algorithm"])
    return ", ".join(words)


def cost_rows(rules: dict[str, Any], steps: int | None) -> list[list[str]]:
    """Write the parts, and what a sequence, a step and the budget cost."""
    rows = part_rows(rules)
    rows.append(["a sequence", *pair(rules["standard"]["total"]), *pair(rules["paper"]["total"])])
    rows.append(["a step", *training(rules, "train_per_step")])
    if steps is not None:
        rows.append([f"{steps:,} steps", *training(rules, "train_per_budget")])
    return rows


def part_rows(rules: dict[str, Any]) -> list[list[str]]:
    """Write the parts under the name of their network, in the order of the computation."""
    rows: list[list[str]] = []
    network = ""
    for name in rules["paper"]["parts"]:  # it counts all that the standard rule does, and look-ups
        if name.partition(": ")[0] != network:
            network = name.partition(": ")[0]
            rows.append([network, "", "", "", ""])
        counts = [pair(rules[rule]["parts"].get(name)) for rule in ("standard", "paper")]
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


def parameter_rows(counts: dict[str, int]) -> list[list[str]]:
    """Write the parameters by part, all, and those that learn where some do not."""
    rows = [[part, f"{number:,}"] for part, number in counts.items()]
    trained = sum(number for part, number in counts.items() if not part.startswith(FROZEN))
    rows.append(["all", f"{sum(counts.values()):,}"])
    if trained != sum(counts.values()):
        rows.append(["trained", f"{trained:,}"])
    return rows


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
