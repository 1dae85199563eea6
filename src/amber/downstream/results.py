"""What fine-tuning leaves behind: records of the runs, and results.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from amber.downstream.scoring import Baseline
from amber.downstream.statistics import Spread, median_index, spread
from amber.errors import UserError
from amber.tasks.metrics import LOWER_IS_BETTER

RESULTS: Final = "results.json"
RUN: Final = "run.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRecord:
    """One epoch of one run."""

    epoch: int
    loss: float
    """Of training, mean over the steps."""

    score: float
    """The first metric on the scored split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedRun:
    """One training with one seed."""

    seed: int
    scores: dict[str, dict[str, float]]
    """By split, then by metric: of the weights that were kept."""

    epoch: int
    """After which the weights were kept."""

    epochs: tuple[EpochRecord, ...]
    collapsed: str
    """What every prediction on the scored split is, when all are the same; empty otherwise."""

    notes: tuple[str, ...]
    threshold: float | None
    """Of "no answer", chosen on the scored split; None where there is none."""

    model: str
    """Folder of the fine-tuned network, relative to the folder of the results."""

    num_steps: int
    seconds: float
    """Of training steps."""

    sequences_per_second: float
    num_threads: int
    settings: dict[str, Any] = field(default_factory=dict)
    """With fingerprints: what must be equal for the run to be used again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One combination of settings of a sweep, or the only one."""

    changes: dict[str, Any]
    """What differs from the recipe that was given."""

    runs: tuple[SeedRun, ...]
    spread: Spread
    """Of the first metric on the scored split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneResult:
    """The runs of one task, and what they say together."""

    task: str
    kind: str
    out: str
    is_done: bool
    """False when it was stopped before all seeds were run."""

    signal_number: int
    """Of the signal that stopped it; 0 = none."""

    model: str
    size: str
    """The model of the paper whose recipe it is."""

    loaded_share: float
    """Part of the network's tensors that came from the model folder."""

    new_weights: tuple[str, ...]
    ignored_weights: tuple[str, ...]
    head: str
    recipe: dict[str, Any]
    precision: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    """The first one counts."""

    scored_split: str
    num_examples: dict[str, int]
    """By split."""

    num_sequences: int
    """Trained on: windows of long examples and pairs in both orders count."""

    limit_train: int
    """0 = no limit."""

    truncated_share: dict[str, float]
    """By split: examples of which something was not read."""

    counts: dict[str, dict[str, int]]
    """By split: what was cut or lost on the way to tokens."""

    files: dict[str, str]
    notes: tuple[str, ...]
    keep: str
    baselines: dict[str, dict[str, Baseline]]
    """By split, then by metric."""

    runs: tuple[SeedRun, ...]
    """Of the chosen settings, in the order of the seeds."""

    spreads: dict[str, dict[str, Spread]]
    """By split, then by metric; empty without runs."""

    median_seed: int | None
    """The run with the median score; of two in the middle the worse one."""

    median_model: str | None
    """Its folder."""

    points: tuple[Point, ...]
    """All combinations of a sweep; empty without one."""

    chosen: dict[str, Any]
    """The combination whose median is the best on the scored split."""

    seconds: float
    """Of the whole command, without those of runs that were there before."""

    num_reused: int
    """Runs that were there before."""

    @property
    def metric(self) -> str:
        """The score of the task."""
        return self.metrics[0]


def spreads_of(runs: Sequence[SeedRun]) -> dict[str, dict[str, Spread]]:
    """Summarise every metric on every split over the runs; nothing without runs."""
    if not runs:
        return {}
    return {
        split: {name: spread([run.scores[split][name] for run in runs]) for name in values}
        for split, values in runs[0].scores.items()
    }


def median_run(runs: Sequence[SeedRun], *, split: str, metric: str) -> SeedRun | None:
    """Return the run with the median score."""
    if not runs:
        return None
    values = [run.scores[split][metric] for run in runs]
    return runs[median_index(values, lower_is_better=metric in LOWER_IS_BETTER)]


def best_point(points: Sequence[Point], *, metric: str) -> Point:
    """Return the point with the best median; of equal ones the first."""
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    return max(points, key=lambda point: sign * point.spread.median)


def to_json(record: Any) -> str:
    """Write a record as JSON for people to read."""
    return json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file beside its place, then move it there."""
    beside = path.with_name(f".{path.name}.unfinished")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def read_run(path: Path) -> SeedRun | None:
    """Read the record of a finished run; None where there is none, or only half of one."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["epochs"] = tuple(EpochRecord(**each) for each in values["epochs"])
        values["notes"] = tuple(values["notes"])
        return SeedRun(**values)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def find_model(path: Path) -> Path:
    """Return the model of the median run of a folder of results; other folders as they are.

    Raises:
        UserError: the results are damaged, or have no model.
    """
    results = path / RESULTS
    if (path / "config.json").is_file():
        return path
    if not results.is_file():
        if any(found for place in ("*", "*/*") for found in path.glob(f"{place}/{RUN}")):
            raise UserError(unfinished(path))
        return path
    try:
        model = json.loads(results.read_text(encoding="utf-8"))["median_model"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{results}: cannot be read ({error}): fine-tune again") from error
    folder = path / str(model)
    if model is None or not (folder / "config.json").is_file():
        raise UserError(unfinished(path))
    return folder


def unfinished(path: Path) -> str:
    """Say that there is no median yet."""
    return (
        f"{path}: the fine-tuning came to no end, so there is no median model: finish it with the "
        "same command, or give one of its seed folders"
    )
