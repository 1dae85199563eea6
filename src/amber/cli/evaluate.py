"""`amber evaluate`: the held-out metrics of a model, or minimal pairs, beside trivial baselines."""

import json
from dataclasses import asdict
from typing import Any

from rich.console import Console

from amber.cli.bar import Bar
from amber.cli.method import baseline_words, is_hiding, proposer
from amber.cli.output import duration, open_console, plain_table, print_json, short_number
from amber.cli.score import open_output
from amber.cli.task_scores import show_scores
from amber.downstream.evaluation import evaluate_task, refuse_idle_settings
from amber.downstream.tuned_model import find_tuned
from amber.electra.config import Objective
from amber.run.commands import EvaluateConfig
from amber.run.held_out import HeldOut, evaluate_folder
from amber.run.score import NAMES
from amber.run.wins import PairWins, Wins, evaluate_pairs

ROWS = (
    ("masked_lm_loss", ".3f", "nats per hidden token (lower is better)"),
    ("masked_lm_accuracy", ".1%", "hidden tokens whose first guess is right"),
    ("sampled_masked_lm_accuracy", ".1%", "chosen tokens whose drawn replacement is right"),
    ("generator_entropy", ".3f", "nats: how undecided the guesses are"),
    ("generator_reward", ".3f", "nats that the discriminator loses at a chosen token"),
    ("encoder_lm_loss", ".3f", "nats per chosen token (lower is better)"),
    ("encoder_lm_accuracy", ".1%", "chosen tokens whose original is named"),
    ("disc_loss", ".4f", "nats per token (lower is better)"),
    ("disc_auc", ".3f", "how often a replaced token outscores an original one"),
    ("disc_accuracy", ".1%", "tokens told right at 50 %"),
    ("disc_precision", ".1%", "of those called replaced, really replaced"),
    ("disc_recall", ".1%", "of the replaced, called replaced"),
    ("label_conflict_fraction", ".1%", "of those labelled replaced, equal to the text"),
    ("replaced_fraction", ".1%", "share of the tokens that are replaced"),
)
"""Metric, how it is written, what it is."""

TOWERS = {
    "masked_lm_loss": "nats per token, of the towers (lower is better)",
    "masked_lm_accuracy": "chosen tokens that the towers guess first",
    "generator_entropy": "nats: how undecided the towers are",
}
"""What metrics are where two towers propose the replacements."""

MEANINGS: dict[Objective, dict[str, str]] = {
    "rtd_masked": {
        "disc_loss": "nats per chosen token (lower is better)",
        "disc_accuracy": "chosen tokens told right at 50 %",
    },
    "all_tokens_mlm": {
        "encoder_lm_loss": "nats per token, copied or named (lower is better)",
        "disc_auc": "how often an original beats a replaced one in P(copy)",
        "disc_accuracy": "tokens that are rightly copied or not, at 50 %",
        "disc_precision": "of those not copied, really replaced",
        "disc_recall": "of the replaced, not copied",
    },
    "electric": {
        "disc_loss": "nats per token, noise against data (lower is better)",
        "disc_auc": "how often noise scores above data",
        "disc_precision": "of those called noise, really noise",
        "disc_recall": "of the noise, called noise",
        "label_conflict_fraction": "of the noise, equal to the text",
        "replaced_fraction": "share of the tokens that differ from the text",
    },
}
"""What metrics are with an objective, where it is something else."""


def run(config: EvaluateConfig, *, is_json: bool) -> int:
    """Print the metrics."""
    console, result = open_console(is_json=is_json), dict[str, Any]()
    is_tuned = find_tuned(config.model) is not None
    refuse_idle_settings(config, is_tuned=is_tuned)
    if is_tuned:
        with Bar(console, "sequences") as bar, open_output(config.out, is_to_stdout=False) as file:

            def write(verdict: dict[str, Any]) -> None:
                if file is not None:
                    file.write(json.dumps(verdict, ensure_ascii=False) + "\n")

            scores = evaluate_task(
                config, on_count=bar.note, on_verdict=None if file is None else write
            )
        if is_json:
            print_json(asdict(scores))
        show_scores(scores, console, seconds=bar.seconds)
        if config.out is not None:
            console.print(f"each example: {config.out}", markup=False, soft_wrap=True)
        return 0
    if config.data is not None:
        held_out = evaluate_folder(config)
        result |= asdict(held_out)
        if not is_json:
            show(held_out, console)
    if config.pairs is not None:
        with Bar(console, "pairs") as bar:
            wins = evaluate_pairs(config, on_count=bar.note)
        result |= {"pairs": asdict(wins)}
        if not is_json:
            console.print("\n" * (config.data is not None), end="")
            show_pairs(wins, console, seconds=bar.seconds)
    if is_json:
        print_json(result)
    return 0


def show(held_out: HeldOut, console: Console, *, before: dict[str, float] | None = None) -> None:
    """Print the metrics as a table.

    Args:
        held_out: what was measured.
        console: where to print.
        before: the same metrics before training, for a column of their own.
    """
    rows, others = [], MEANINGS.get(held_out.objective, {})
    if proposer(held_out.objective, held_out.noise) != "MLM":
        others = others | TOWERS
    for name, form, meaning in ROWS:
        if name not in held_out.metrics:
            continue
        values = [held_out.metrics, held_out.baselines]
        values = values if before is None else [before, *values]
        cells = [f"{part[name]:{form}}" if name in part else "" for part in values]
        rows.append([name, *cells, others.get(name, meaning)])
    first = ("value",) if before is None else ("before", "after")
    headings = ("held-out", *first, "baseline", "meaning")
    console.print(plain_table(headings, rows, is_last_text=True))
    console.print()
    words = baseline_words(
        held_out.objective, held_out.metrics, unigram_entropy=held_out.unigram_entropy
    )
    console.print(words, markup=False, soft_wrap=True)
    done = "hidden" if is_hiding(held_out.objective, held_out.noise) else "chosen"
    console.print(
        f"{held_out.num_examples:,} of {held_out.num_held_out_examples:,} held-out sequences of "
        f"up to {held_out.length} tokens, {held_out.fraction:.0%} {done}"
        + (f", as in {held_out.settings_from}" if held_out.settings_from else ""),
        markup=False,
        soft_wrap=True,
    )


def show_pairs(wins: PairWins, console: Console, *, seconds: float) -> None:
    """Print the pairs that were won, by phenomenon and in all, and what needs no model."""
    rows = [pair_row(each) for each in wins.phenomena]
    rows.append(pair_row(wins.total))
    console.print(plain_table(("phenomenon", "pairs", "won", "+-", "fewer tokens win"), rows))
    total, error = wins.total, wins.paradigm_standard_error
    console.print()
    spread = "" if error is None else f" +- {error:.1%}"
    lines = [
        f"mean of the {len(wins.paradigms):,} paradigms: {wins.paradigm_mean:.1%}{spread}; "
        f"baseline: a coin wins {wins.chance:.0%}",
        f"scored by {wins.by} ({NAMES[wins.by]}), sentences of up to {wins.length} tokens"
        + (f" ({wins.num_cut:,} longer ones cut)" if wins.num_cut else "")
        + (f"; the first {wins.limit:,} pairs of each paradigm" if wins.limit else ""),
        f"{total.num_ties:,} ties, counted half ({wins.num_identical:,} pairs are the same tokens "
        "to the model)",
    ]
    if total.same_length_accuracy is not None:
        lines.append(
            f"{total.num_same_length:,} pairs have equally many tokens: of these "
            f"{total.same_length_accuracy:.1%} are won"
        )
    rate = short_number(2 * total.num_pairs / max(seconds, 1e-9))
    lines.append(f"{duration(seconds)}, {rate} sentences/s")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def pair_row(wins: Wins) -> list[str]:
    """Write one row: name, pairs, share won, its standard error, what the length alone gives."""
    return [
        wins.name or "(not named)",
        f"{wins.num_pairs:,}",
        f"{wins.accuracy:.1%}",
        f"{wins.standard_error:.1%}",
        f"{wins.shorter_accuracy:.1%}",
    ]
