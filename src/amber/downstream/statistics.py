"""What several runs with different seeds say together."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The scores of all runs, none left out."""

    num_runs: int
    median: float
    min: float
    max: float
    mean: float
    standard_deviation: float | None
    """Of the sample (divided by the number of runs less one); None for a single run."""


def spread(values: Sequence[float]) -> Spread:
    """Summarise the scores of runs.

    Raises:
        ValueError: there is none.
    """
    if not values:
        raise ValueError("there are no runs")
    return Spread(
        num_runs=len(values),
        median=float(statistics.median(values)),
        min=float(min(values)),
        max=float(max(values)),
        mean=float(statistics.fmean(values)),
        standard_deviation=float(statistics.stdev(values)) if len(values) > 1 else None,
    )


def median_index(values: Sequence[float], *, lower_is_better: bool = False) -> int:
    """Say which run has the median score; of the two in the middle the worse one.

    Of runs with equal scores it is the first.

    Raises:
        ValueError: there is none.
    """
    if not values:
        raise ValueError("there are no runs")
    signs = [-value if lower_is_better else value for value in values]
    middle = sorted(signs)[(len(signs) - 1) // 2]
    return signs.index(middle)
