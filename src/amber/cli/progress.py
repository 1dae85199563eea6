"""What a pre-training run shows while it goes: a live line on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from amber.cli.method import noise_words
from amber.cli.output import duration, short_number
from amber.electra.metrics import main_loss_name
from amber.run.config import PretrainConfig
from amber.run.log import Event

METRICS = (
    ("masked_lm_loss", "mlm", ".3f"),
    ("generator_reward", "reward", ".3f"),
    ("encoder_lm_loss", "naming", ".3f"),
    ("encoder_lm_accuracy", "named", ".1%"),
    ("disc_loss", "rtd", ".4f"),
    ("replaced_fraction", "replaced", ".1%"),
    ("label_conflict_fraction", "conflicts", ".1%"),
    ("disc_auc", "auc", ".3f"),
    ("disc_accuracy", "accuracy", ".1%"),
    ("majority_accuracy", "majority", ".1%"),
)
"""Metric, its name on the screen, how it is written."""

NAMES: dict[str, dict[str, str]] = {
    "two_tower": {"masked_lm_loss": "towers"},
    "electric": {"disc_loss": "nce", "label_conflict_fraction": ""},
    "all_tokens_mlm": {"disc_auc": "gate auc", "disc_accuracy": "", "majority_accuracy": ""},
}
"""Other names, by objective or noise; nothing for what is left out."""

HELD_OUT_ONLY = ("disc_accuracy", "encoder_lm_accuracy", "label_conflict_fraction")
"""Metrics that lines of training leave out."""


class Progress:
    """Shows the events of one run; a context manager, which ends the live line."""

    def __init__(self, console: Console, config: PretrainConfig) -> None:
        """Show nothing yet."""
        self.console = console
        self.config = config
        self.latest: Event | None = None
        self.clock = Clock()
        self.live = Live(
            console=console,
            get_renderable=self.render,
            transient=True,
            auto_refresh=console.is_terminal,
            refresh_per_second=2,
        )

    def __enter__(self) -> "Progress":
        """Begin."""
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the live line away."""
        if self.console.is_terminal:
            self.live.stop()

    def show(self, event: Event) -> None:
        """Show one event."""
        self.clock.note(event.progress, time.perf_counter())
        if event.kind == "start":
            for line in start_lines(event, self.config):
                self.print(line)
        elif event.kind == "train":
            self.latest = event
            if not self.console.is_terminal:
                left = self.clock.time_left(time.perf_counter())
                self.print(event_line(event, self.config, time_left=left))
        elif event.kind == "held_out":
            self.print(event_line(event, self.config), style="bold")
        elif event.kind == "checkpoint":
            if not self.console.is_terminal:
                self.print(f"saved     {event.text}")
        elif event.kind == "warning":
            self.print(f"warning   {event.text}", style="yellow")

    def print(self, line: str, *, style: str = "") -> None:
        """Print a line that stays."""
        self.console.print(line, style=style, markup=False, soft_wrap=True)

    def render(self) -> Group | Text:
        """Draw the live lines."""
        event = self.latest
        if event is None:
            return Text("starting", style="dim")
        bar = ProgressBar(total=1.0, completed=self.clock.progress, width=24)
        row = Table.grid(padding=(0, 1))
        words = [f"{self.clock.progress:.1%}", f"step {event.step:,}", *pace(event)]
        left = self.clock.time_left(time.perf_counter())
        words += [f"{duration(left)} left"] if left is not None else []
        row.add_row(bar, Text("  ".join(words), no_wrap=True, overflow="ellipsis"))
        return Group(
            row, Text("  ".join(metrics(event, self.config)), no_wrap=True, overflow="ellipsis")
        )


class Clock:
    """How fast the budget is used up, evaluations and checkpoints included."""

    def __init__(self) -> None:
        """Nothing has happened yet."""
        self.start = self.noted = 0.0
        self.first: float | None = None
        self.progress = 0.0

    def note(self, progress: float, now: float) -> None:
        """Note the share of the budget that is used up at a time, in seconds."""
        if self.first is None:
            self.start, self.first = now, progress
        self.progress, self.noted = progress, now

    def time_left(self, now: float) -> float | None:
        """Return the seconds to the end, at the pace from the first note to the last one."""
        if self.first is None or self.progress <= self.first:
            return None
        pace = (self.noted - self.start) / (self.progress - self.first)
        return max(0.0, pace * (1.0 - self.progress) - (now - self.noted))


def start_lines(event: Event, config: PretrainConfig) -> list[str]:
    """Say what is trained, on what and where."""
    values, model = event.values, config.model
    total, main = values["num_parameters"], values["num_encoder_parameters"]
    padding = values["padding"] / (values["num_train_examples"] * config.batch.length)
    where = event.text or f"device {config.device}, precision {config.precision}"
    beside = {"frozen": " and the frozen generator", "two_tower": " and the towers"}
    second = beside.get(config.noise.source, " and the generator")
    noise = noise_words(config)
    lines = [
        f"model     {config.objective}, {model.body} body, {model.num_hidden_layers} layers x "
        f"{model.hidden_size}: {short_number(main)} parameters, "
        f"{short_number(total)} with the heads{second * config.method.has_network}",
        *([f"noise     {noise}"] if noise else []),
        f"data      {short_number(values['num_train_tokens'])} tokens in "
        f"{values['num_train_examples']:,.0f} sequences of {config.batch.length} "
        f"({padding:.1%} padding) and {values['num_held_out_examples']:,.0f} held-out ones; "
        f"unigram entropy {values['unigram_entropy']:.3f} nats",
        f"run       {where}; {budget_text(config)}; {config.batch.size} sequences a step; "
        f"in {config.out}",
    ]
    if event.step:
        lines.append(f"resumed   at step {event.step:,}, {event.progress:.1%} of the budget")
    return lines


def budget_text(config: PretrainConfig) -> str:
    """Say when the run ends."""
    budget = config.budget
    if budget.steps:
        return f"{budget.steps:,} steps"
    if budget.tokens:
        return f"{short_number(budget.tokens)} tokens"
    if budget.flops:
        return f"{budget.flops:.3g} FLOPs"
    return f"{duration(3600 * budget.hours)} of training"


def event_line(event: Event, config: PretrainConfig, *, time_left: float | None = None) -> str:
    """Write a training or held-out event as one line."""
    name = "held-out" if event.kind == "held_out" else event.kind
    words = [f"{name:<8}", f"step {event.step:,}", f"{event.progress:.1%}"]
    words += metrics(event, config) + pace(event)
    words += [f"{duration(time_left)} left"] if time_left is not None else []
    return "  ".join(words)


def metrics(event: Event, config: PretrainConfig) -> list[str]:
    """Write the stage, where there are two, and the metrics; on held-out text all of them."""
    names: dict[str, str] = NAMES.get(config.objective, {})
    if config.objective != "mlm":
        names = names | NAMES.get(config.noise.source, {})
    values = dict(event.values)
    if "majority_accuracy" in values:  # of the answer that is the more frequent one
        values["majority_accuracy"] = max(
            values["majority_accuracy"], 1.0 - values["majority_accuracy"]
        )
    written = [
        f"{names.get(name, label)} {values[name]:{form}}"
        for name, label, form in METRICS
        if name in values
        and names.get(name, label)
        and (event.kind == "held_out" or name not in HELD_OUT_ONLY)
    ]
    if config.algorithm != "two_stage":
        return written
    is_second = main_loss_name(config.objective) in values
    return [f"stage {1 + is_second} of 2", *written]


def pace(event: Event) -> list[str]:
    """Write the tokens per second, where they are known."""
    rate = event.values.get("tokens_per_second")
    return [f"{short_number(rate)} tok/s"] if rate is not None else []
