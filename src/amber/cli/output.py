"""Where a command's results go: tables for people, or one JSON object for programs."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 120


def open_console(*, is_json: bool) -> Console:
    """Open the console for people: stdout, or stderr while stdout is for a JSON object.

    Only the first of several processes prints.
    """
    file = sys.stderr if is_json else sys.stdout
    return Console(
        file=file,
        width=None if file.isatty() else PLAIN_WIDTH,
        highlight=False,
        quiet=os.environ.get("RANK", "0") != "0",
    )


def print_json(result: Any) -> None:
    """Print a result as one JSON object, in the first process only."""
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps(result, indent=1, ensure_ascii=False))


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, is_last_text: bool = False
) -> Table:
    """Lay out rows under their headings, without a frame: a name, then numbers.

    Args:
        headings: of the columns.
        rows: one text per column.
        is_last_text: the last column is text, too, and so begins at the left.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, heading in enumerate(headings):
        is_text = i == 0 or (is_last_text and i == len(headings) - 1)
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: 1 row, 2,000 rows."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def short_number(value: int | float) -> str:
    """Write a count in three digits: 12.3k, 4.56M."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def duration(seconds: int | float) -> str:
    """Write a time: 12s, 3m20s, 2h05m."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"
