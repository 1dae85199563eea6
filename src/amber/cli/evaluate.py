"""`amber evaluate`: the held-out metrics of a model, beside what needs no learning."""

from dataclasses import asdict

from rich.console import Console

from amber.cli.output import open_console, plain_table, print_json
from amber.run.commands import EvaluateConfig
from amber.run.held_out import HeldOut, evaluate_folder

ROWS = (
    ("masked_lm_loss", ".3f", "nats per hidden token (lower is better)"),
    ("masked_lm_accuracy", ".1%", "hidden tokens whose first guess is right"),
    ("sampled_masked_lm_accuracy", ".1%", "hidden tokens whose drawn replacement is right"),
    ("generator_entropy", ".3f", "nats: how undecided the guesses are"),
    ("disc_loss", ".4f", "nats per token (lower is better)"),
    ("disc_auc", ".3f", "how often a replaced token scores above an original one"),
    ("disc_accuracy", ".1%", "tokens told right at 50 %"),
    ("disc_precision", ".1%", "of those called replaced, really replaced"),
    ("disc_recall", ".1%", "of the replaced, called replaced"),
    ("replaced_fraction", ".1%", "share of the tokens that are replaced"),
)
"""Metric, how it is written, what it is."""


def run(config: EvaluateConfig, *, is_json: bool) -> int:
    """Print the metrics."""
    held_out = evaluate_folder(config)
    if is_json:
        print_json(asdict(held_out))
    else:
        show(held_out, open_console(is_json=False))
    return 0


def show(held_out: HeldOut, console: Console, *, before: dict[str, float] | None = None) -> None:
    """Print the metrics as a table.

    Args:
        held_out: what was measured.
        console: where to print.
        before: the same metrics before training, for a column of their own.
    """
    rows = []
    for name, form, meaning in ROWS:
        if name not in held_out.metrics:
            continue
        values = [held_out.metrics, held_out.baselines]
        values = values if before is None else [before, *values]
        cells = [f"{part[name]:{form}}" if name in part else "" for part in values]
        rows.append([name, *cells, meaning])
    first = ("value",) if before is None else ("before", "after")
    headings = ("held-out", *first, "baseline", "meaning")
    console.print(plain_table(headings, rows, is_last_text=True))
    console.print()
    console.print(
        f"baseline: knowing only how frequent each token is (entropy "
        f"{held_out.unigram_entropy:.3f} nats)"
        + (', or always saying "original"' if held_out.kind == "pair" else ""),
        markup=False,
    )
    console.print(
        f"{held_out.num_examples:,} of {held_out.num_held_out_examples:,} held-out sequences of "
        f"up to {held_out.length} tokens, {held_out.fraction:.0%} hidden"
        + (f", as in {held_out.settings_from}" if held_out.settings_from else ""),
        markup=False,
        soft_wrap=True,
    )
