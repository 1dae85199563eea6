"""How far a count has come: a live bar on a terminal, a line now and then elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from amber.cli.output import duration, short_number

SECONDS_BETWEEN_LINES = 10.0


class Bar:
    """Shows a count; a context manager, which takes the live bar away at its end."""

    def __init__(self, console: Console, unit: str, *, is_live: bool = True) -> None:
        """Show nothing yet.

        Args:
            console: where to show it.
            unit: what is counted, in the plural.
            is_live: show a bar if the console is a terminal; without, a terminal shows nothing.
        """
        self.console = console
        self.unit = unit
        self.is_live = is_live and console.is_terminal
        self.done, self.total = 0.0, None
        self.start = self.shown = time.perf_counter()
        self.live = Live(
            console=console, get_renderable=self.render, transient=True, refresh_per_second=4
        )

    def __enter__(self) -> "Bar":
        """Begin."""
        if self.is_live:
            self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        if self.is_live:
            self.live.stop()

    @property
    def seconds(self) -> float:
        """Since the count began."""
        return time.perf_counter() - self.start

    def note(self, done: float, total: int | None) -> None:
        """Note how many are done, and how many there are where that is known.

        The clock starts when none is: what comes before does not count for the rate.
        """
        self.done, self.total = done, total
        now = time.perf_counter()
        if not done:
            self.start = now
        if not self.console.is_terminal and now - self.shown >= SECONDS_BETWEEN_LINES:
            self.shown = now
            self.console.print("  ".join(self.words()), soft_wrap=True)

    def words(self) -> list[str]:
        """Say how far it is, how fast it goes, and how long it still takes."""
        done, total, seconds = self.done, self.total, max(self.seconds, 1e-9)
        rate = f"{short_number(done / seconds)} {self.unit}/s"
        if total is None:
            return [f"{done:,.0f} {self.unit}", rate]
        words = [f"{done / max(1, total):.0%}", f"{done:,.0f} of {total:,} {self.unit}", rate]
        return words + ([f"{duration(seconds * (total - done) / done)} left"] if done else [])

    def render(self) -> Table | Text:
        """Draw the live line."""
        if not self.done:
            return Text("reading", style="dim")
        words = Text("  ".join(self.words()), no_wrap=True, overflow="ellipsis")
        if self.total is None:
            return words
        row = Table.grid(padding=(0, 1))
        row.add_row(ProgressBar(total=self.total, completed=self.done, width=20), words)
        return row
