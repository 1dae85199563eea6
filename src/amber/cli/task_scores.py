"""The scores of a fine-tuned model as a table, beside the baseline."""

from rich.console import Console

from amber.cli.finetune_table import shown
from amber.cli.losses import loss_words
from amber.cli.output import counted, duration, plain_table, short_number
from amber.downstream.evaluation import TaskScores


def show_scores(scores: TaskScores, console: Console, *, seconds: float) -> None:
    """Print every metric on every split, and what a reader should know."""
    rows = [
        [f"{split} {name}", shown(name, value), shown(name, scores.baselines[split][name].value)]
        for split, values in scores.scores.items()
        for name, value in values.items()
    ]
    console.print(plain_table(("metric", "score", "baseline"), rows))
    console.print()
    for line in closing_lines(scores, seconds=seconds):
        console.print(line, markup=False, soft_wrap=True)


def closing_lines(scores: TaskScores, *, seconds: float) -> list[str]:
    """Say what was scored, by what, and what is odd about it."""
    lines: list[str] = []
    for split, count in scores.num_examples.items():
        guess = next(iter(scores.baselines[split].values())).guess
        lines.append(
            f"{split}: {counted(count, 'example')} of {scores.files[split]}; baseline: {guess}, by "
            f"{scores.baseline_from}"
        )
        losses = loss_words(scores.counts[split], truncated_share=scores.truncated_share[split])
        lines += [f"{split}: {', '.join(losses)}"] if losses else []
        if split in scores.collapsed:
            lines.append(f"{split}: every prediction is {scores.collapsed[split]}")
    lines += [f"note: {note}" for note in scores.notes]
    rate = short_number(sum(scores.num_examples.values()) / max(seconds, 1e-9))
    return [*lines, f"{scores.model}; {duration(seconds)}, {rate} examples/s"]
