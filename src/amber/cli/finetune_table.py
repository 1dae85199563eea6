"""The tables that close a fine-tuning: the scores of all runs, and the points of a sweep."""

from collections.abc import Callable

from rich.table import Table

from amber.cli.output import duration, plain_table
from amber.downstream.results import FinetuneResult
from amber.downstream.statistics import Spread

UNSCALED = ("mse",)
"""Metrics that are no shares."""


def shown(metric: str, value: float) -> str:
    """Write a score as papers do: times 100."""
    return f"{value:.4g}" if metric in UNSCALED else f"{100 * value:.2f}"


def score_table(result: FinetuneResult) -> Table:
    """Lay out each run, then what they say together, then the baseline."""
    columns = [(split, name) for split in result.spreads for name in result.metrics]
    headings = ["run", *(f"{split} {name}" for split, name in columns), "epoch", "training"]
    rows = [
        [
            f"seed {run.seed}" + (" (collapsed)" if run.collapsed else ""),
            *(shown(name, run.scores[split][name]) for split, name in columns),
            str(run.epoch),
            duration(run.seconds),
        ]
        for run in result.runs
    ]

    def row(title: str, pick: Callable[[Spread], float | None]) -> list[str]:
        values = [(name, pick(result.spreads[split][name])) for split, name in columns]
        cells = ["" if value is None else shown(name, value) for name, value in values]
        return [title, *cells, "", ""]

    if len(result.runs) > 1:
        rows += [
            row("median", lambda spread: spread.median),
            row("min", lambda spread: spread.min),
            row("max", lambda spread: spread.max),
            row("standard deviation", lambda spread: spread.standard_deviation),
        ]
    floor = [shown(name, result.baselines[split][name].value) for split, name in columns]
    rows.append(["baseline", *floor, "", ""])
    return plain_table(headings, rows)


def sweep_table(result: FinetuneResult) -> Table:
    """Lay out every combination of a sweep."""
    names = list(result.points[0].changes)
    headings = [*names, "runs", "median", "min", "max"]
    rows = []
    for point in result.points:
        values = (point.spread.median, point.spread.min, point.spread.max)
        rows.append(
            [
                *(f"{point.changes[name]}" for name in names),
                str(point.spread.num_runs),
                *(shown(result.metric, value) for value in values),
            ]
        )
    return plain_table(headings, rows)
