"""The scores of a fine-tuned model as a table, beside the baseline."""

from typing import Final

from rich.console import Console
from rich.table import Table

from amber.cli.finetune_table import shown
from amber.cli.losses import loss_words
from amber.cli.output import counted, duration, plain_table, short_number
from amber.downstream.evaluation import TaskScores

MOST_LABELS: Final = 20
MOST_MISTAKES: Final = 4


def show_scores(scores: TaskScores, console: Console, *, seconds: float) -> None:
    """Print every metric on every split, and what a reader should know."""
    rows = [
        [f"{split} {name}", shown(name, value), shown(name, scores.baselines[split][name].value)]
        for split, values in scores.scores.items()
        for name, value in values.items()
    ]
    console.print(plain_table(("metric", "score", "baseline"), rows))
    console.print()
    for split, labels in scores.by_label.items():
        if labels:
            console.print(label_table(split, scores))
            console.print()
    for line in closing_lines(scores, seconds=seconds):
        console.print(line, markup=False, soft_wrap=True)


def label_table(split: str, scores: TaskScores) -> Table:
    """Lay out the scores of each label; of many labels those that occur most."""
    every = scores.by_label[split]
    often = set(sorted(range(len(every)), key=lambda i: -every[i].num_gold)[:MOST_LABELS])
    rows = [
        [
            each.label,
            f"{each.num_gold:,}",
            f"{each.num_predicted:,}",
            *(f"{100 * value:.2f}" for value in (each.precision, each.recall, each.f1)),
        ]
        for index, each in enumerate(every)
        if index in often
    ]
    what, unit = names_of(scores)
    title = what if len(scores.by_label) == 1 else f"{split} {what}"
    return plain_table((title, unit, "predicted", "precision", "recall", "F1"), rows)


def names_of(scores: TaskScores) -> tuple[str, str]:
    """Say what a row of the table is, and what it counts."""
    return ("type", "entities") if scores.kind == "tagging" else ("label", "examples")


def mistake_text(split: str, scores: TaskScores) -> str:
    """Name the most frequent mistakes; nothing where a table of two labels says the same."""
    found = scores.mistakes[split]
    if len(scores.labels) < 3 or not found:
        return ""
    words = [f"{each.gold} taken for {each.predicted} ({each.count:,})" for each in found]
    total = counted(sum(each.count for each in found), "mistake")
    return f"{split}: {total}, most often {', '.join(words[:MOST_MISTAKES])}"


def closing_lines(scores: TaskScores, *, seconds: float) -> list[str]:
    """Say what was scored, by what, and what is odd about it."""
    lines, what = list[str](), names_of(scores)[0]
    for split, count in scores.num_examples.items():
        guess = next(iter(scores.baselines[split].values())).guess
        lines.append(
            f"{split}: {counted(count, 'example')} of {scores.files[split]}; baseline: {guess}, by "
            f"{scores.baseline_from}"
        )
        losses = loss_words(scores.counts[split], truncated_share=scores.truncated_share[split])
        lines += [f"{split}: {', '.join(losses)}"] if losses else []
        if hidden := max(0, len(scores.by_label[split]) - MOST_LABELS):
            lines.append(
                f"{split}: {counted(hidden, f'rarer {what}')} left out above; --json has all"
            )
        if text := mistake_text(split, scores):
            lines.append(text)
        if split in scores.collapsed:
            lines.append(f"{split}: every prediction is {scores.collapsed[split]}")
    lines += [f"note: {note}" for note in scores.notes]
    rate = short_number(sum(scores.num_examples.values()) / max(seconds, 1e-9))
    return [*lines, f"{scores.model}; {duration(seconds)}, {rate} examples/s"]
