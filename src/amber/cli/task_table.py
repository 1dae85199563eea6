"""The table over several tasks that closes `amber finetune --task glue`."""

from rich.console import Console

from amber.cli.finetune_table import shown
from amber.cli.output import duration, plain_table
from amber.downstream.table import TaskRow, TaskTable

HEADINGS = ("task", "metric", "runs", "median", "min", "max", "deviation", "baseline", "training")


def show_table(table: TaskTable, console: Console) -> None:
    """Print a row for each task, the average, and what was left out."""
    console.print()
    if table.rows:
        console.print(plain_table(HEADINGS, [cells(row) for row in table.rows]))
        console.print()
    for line in closing_lines(table):
        console.print(line, markup=False, soft_wrap=True)


def cells(row: TaskRow) -> list[str]:
    """Write the row of a task."""
    spread = row.spread
    deviation = spread.standard_deviation
    return [
        row.task + (f" ({row.num_collapsed} collapsed)" if row.num_collapsed else ""),
        f"{row.split} {row.metric}",
        str(spread.num_runs),
        *(shown(row.metric, value) for value in (spread.median, spread.min, spread.max)),
        "" if deviation is None else shown(row.metric, deviation),
        shown(row.metric, row.baseline.value),
        duration(row.seconds),
    ]


def closing_lines(table: TaskTable) -> list[str]:
    """Give the average with its tasks, what is missing, and where the results are."""
    lines: list[str] = []
    if not table.is_done:
        lines.append("stopped; what is finished is kept, and the same command goes on after it")
    average = table.average
    if average is not None:
        lines.append(
            f"average of the medians {100 * average.value:.2f} (baseline "
            f"{100 * average.baseline:.2f}) over {len(average.tasks)} tasks: "
            f"{', '.join(average.tasks)}"
        )
        if average.missing:
            lines.append(
                f"this is not the average of {table.group}, to which "
                f"{', '.join(average.missing)} belong, too"
            )
    if table.skipped:
        lines.append(f"skipped: {', '.join(table.skipped)}")
    return [*lines, f"time {duration(table.seconds)}; results: {table.out}/table.json"]
