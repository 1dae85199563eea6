"""`amber finetune`: train on a task with every seed, and print the scores of all runs."""

import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console

from amber.cli.bar import Bar
from amber.cli.finetune_table import score_table, shown, sweep_table
from amber.cli.losses import loss_words
from amber.cli.output import counted, duration, open_console, plain_table, print_json, short_number
from amber.cli.task_table import show_table
from amber.downstream.config import FinetuneConfig
from amber.downstream.finetune import FinetuneEvent, Show, finetune
from amber.downstream.rates import Rates, rates_of
from amber.downstream.results import FinetuneResult, SeedRun
from amber.downstream.table import finetune_tasks
from amber.tasks.named import GROUPS


def run(config: FinetuneConfig, *, is_json: bool) -> int:
    """Train; return 0, or 128 and the signal's number when the command was stopped."""
    console = open_console(is_json=is_json)
    if config.show_rates:
        rates = rates_of(config)
        if is_json:
            print_json(asdict(rates))
        else:
            show_rates(rates, console)
        return 0
    if config.task in GROUPS:
        return run_group(config, console, is_json=is_json)
    with Bar(console, "examples") as bar:
        result = finetune(config, show=Screen(console, bar).show)
    if is_json:
        print_json(asdict(result))
    show_result(result, console)
    return 0 if result.is_done else 128 + (result.signal_number or signal.SIGINT)


def run_group(config: FinetuneConfig, console: Console, *, is_json: bool) -> int:
    """Train for every task of a group that is there; return the code as `run`."""
    with Bar(console, "examples") as bar:

        def show(task: str) -> Show:
            console.print(f"\n{task}", style="bold", highlight=False)
            return Screen(console, bar).show

        table = finetune_tasks(
            config,
            show=show,
            on_skip=lambda task, reason: console.print(
                f"skipped {task}: {reason}", markup=False, soft_wrap=True
            ),
        )
    if is_json:
        print_json(asdict(table))
    show_table(table, console)
    return 0 if table.is_done else 128 + (table.signal_number or signal.SIGINT)


class Screen:
    """Shows events: a bar over all runs, and a line for each epoch and each run."""

    def __init__(self, console: Console, bar: Bar, *, has_epochs: bool = True) -> None:
        """Show nothing yet; without `has_epochs` no line for each epoch."""
        self.console = console
        self.bar = bar
        self.has_epochs = has_epochs
        self.outline: FinetuneResult | None = None

    def show(self, event: FinetuneEvent) -> None:
        """Show one event."""
        if event.result is not None:
            self.outline = event.result
            for line in start_lines(event.result, num_jobs=event.num_jobs):
                self.print(line)
            return
        assert self.outline is not None
        self.bar.note(float(event.done), event.total)
        who = f"seed {event.seed}" + changes_text(event.changes or {}, before="  ")
        metric, split = self.outline.metric, self.outline.scored_split
        if event.epoch is not None and self.has_epochs:
            epoch, total = event.epoch, self.outline.recipe["epochs"]
            total = (event.changes or {}).get("epochs", total)
            score = shown(metric, epoch.score)
            self.print(
                f"{who}  epoch {epoch.epoch} of {total}  loss {epoch.loss:.4f}  {split} {metric} "
                f"{score}"
            )
        if event.run is not None:
            self.print(f"{who}  done  {pace_text(event.run)}{collapse_text(event.run)}")

    def print(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, markup=False, soft_wrap=True)


def start_lines(outline: FinetuneResult, *, num_jobs: int) -> list[str]:
    """Say what is trained, on what and how."""
    recipe, num = outline.recipe, outline.num_examples
    scored = ", ".join(f"{num[split]:,} {split}" for split in num if split != "train")
    limit = " (limited)" if outline.limit_train else ""
    fresh = len(outline.new_weights)
    lines = [
        f"model     {outline.model}: {outline.loaded_share:.1%} of the network's tensors come from "
        f"it, {fresh} start anew ({outline.head} head)",
        f"task      {outline.task}, {kind_text(outline)}: {num['train']:,} train{limit}, {scored} "
        f"examples; scored by {', '.join(outline.metrics)}",
        f"recipe    rate {recipe['learning_rate']:g}, layer decay {recipe['layer_decay']:g} "
        f"({recipe['layer_decay_rule']} rule), {recipe['epochs']} x "
        f"{outline.num_sequences:,} sequences, {recipe['batch_size']} a step, of up to "
        f"{recipe['length']} tokens; what was not given is as for {outline.size}, the nearest "
        "in size",
        f"run       {outline.precision}, {counted(num_jobs, 'process', 'processes')}; "
        f"weights of the {outline.keep} epoch are kept; in {outline.out}",
    ]
    if outline.loaded_share == 0:
        lines.append("note      every weight starts at random: no pre-training")
    elif outline.loaded_share < 0.5:
        lines.append("warning   most of the network was not loaded from the model folder")
    if outline.ignored_weights:
        names = ", ".join(outline.ignored_weights[:3])
        more = " ..." if len(outline.ignored_weights) > 3 else ""
        lines.append(f"note      not needed from the model folder: {names}{more}")
    lines += [f"note      {note}" for note in outline.notes]
    lines += [f"note      {line}" for line in loss_lines(outline)]
    if outline.num_reused:
        runs = "run is" if outline.num_reused == 1 else "runs are"
        lines.append(f"resumed   {outline.num_reused} finished {runs} used again")
    return lines


def kind_text(outline: FinetuneResult) -> str:
    """Name the kind of task and the labels."""
    if not outline.labels:
        return outline.kind
    names = ", ".join(outline.labels[:6]) + (" ..." if len(outline.labels) > 6 else "")
    return f"{outline.kind} with {len(outline.labels)} labels ({names})"


def loss_lines(outline: FinetuneResult) -> list[str]:
    """Say what of the examples is not read, or not trained on."""
    lines: list[str] = []
    for split, counts in outline.counts.items():
        words = loss_words(counts, truncated_share=outline.truncated_share[split])
        if words:
            lines.append(f"{split}: {', '.join(words)}")
    return lines


def changes_text(changes: Mapping[str, Any], *, before: str = "") -> str:
    """Write the settings of a combination."""
    if not changes:
        return ""
    return before + ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in changes.items()
    )


def pace_text(run: SeedRun) -> str:
    """Say how long a run took."""
    rate = short_number(run.sequences_per_second)
    return f"{duration(run.seconds)} of training, {rate} examples/s"


def collapse_text(run: SeedRun) -> str:
    """Warn of a run that predicts one thing only."""
    return f"  COLLAPSED: every prediction is {run.collapsed}" if run.collapsed else ""


def show_result(result: FinetuneResult, console: Console) -> None:
    """Print every run, what they say together, the baseline, and where the models are."""

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    if not result.is_done:
        done = len(result.runs) or sum(len(point.runs) for point in result.points)
        kept = "1 finished run is" if done == 1 else f"{done} finished runs are"
        say(f"\nstopped; {kept} kept, and the same command goes on from there")
        if not result.runs:
            return
    console.print()
    if result.points:
        console.print(sweep_table(result))
        say(
            f"\nchosen by the best median {result.metric} on {result.scored_split} of "
            f"{len(result.points)} combinations, so its score is a little flattering: "
            f"{changes_text(result.chosen)}\n"
        )
    console.print(score_table(result))
    console.print()
    for line in closing_lines(result):
        say(line)


def closing_lines(result: FinetuneResult) -> list[str]:
    """Say how to read the table, and where the models are."""
    split, metric = result.scored_split, result.metric
    middle = result.spreads[split][metric]
    floor = result.baselines[split][metric]
    lines = [
        f"{split} {metric}: median {shown(metric, middle.median)} of "
        f"{counted(middle.num_runs, 'run')}; baseline {shown(metric, floor.value)} "
        f"({floor.guess})"
    ]
    if result.limit_train:
        lines.append(f"trained on {counted(result.limit_train, 'example')} only")
    if result.keep == "best":
        lines.append(f"each run keeps the weights of its best epoch, chosen on {split}")
    if any(run.threshold is not None for run in result.runs):
        lines.append(f"when to give no answer was chosen on {split}")
    for run in result.runs:
        if run.collapsed:
            lines.append(
                f"seed {run.seed} collapsed: every prediction is {run.collapsed}; try a lower "
                "recipe.learning_rate or more epochs"
            )
        lines += [f"seed {run.seed}: {note}" for note in run.notes if not run.collapsed]
    lines += [f"time {duration(result.seconds)}; results: {result.out}/results.json"]
    if result.median_model is not None:
        lines.append(f"model of the median run: {result.out}/{result.median_model}")
    return lines


def show_rates(rates: Rates, console: Console) -> None:
    """Print the learning rate of each layer."""
    rows = [[each.layer, f"{each.share:.5f}", f"{each.learning_rate:.3g}"] for each in rates.layers]
    console.print(plain_table(("layer", "share", "peak rate"), rows))
    console.print(
        f"\nrate {rates.learning_rate:g}, decay {rates.layer_decay:g} by the "
        f"{rates.layer_decay_rule} rule; the size nearest to {rates.model} is {rates.size}",
        markup=False,
        soft_wrap=True,
    )
