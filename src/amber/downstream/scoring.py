"""Scores of predictions, the baseline beside them, and whether a run learned anything at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from amber.downstream.encoded import gold_of
from amber.downstream.prediction import Predictions, with_threshold
from amber.errors import UserError
from amber.tasks.baseline import baseline
from amber.tasks.decoding import best_threshold
from amber.tasks.example import Example, Kind
from amber.tasks.metrics import ANSWER_RULES, LOWER_IS_BETTER, METRICS, score
from amber.tasks.task import Task

FITTING: Final[dict[Kind, tuple[str, ...]]] = {
    "classification": ("accuracy", "mcc", "f1", "macro_f1"),
    "multilabel": ("micro_f1", "accuracy"),
    "regression": ("pearson", "spearman", "mse"),
    "tagging": ("entity_f1", "entity_precision", "entity_recall"),
    "qa": tuple(ANSWER_RULES),
}
"""Metrics that a kind of task can have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """The scores of one set of predictions."""

    values: dict[str, float]
    """By metric; the first one counts."""

    notes: tuple[str, ...] = ()
    """What a reader should know, one sentence each."""

    collapsed: str = ""
    """What every prediction is, when all are the same and the truth is not; else empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The score of a guess that reads no text."""

    value: float
    guess: str


def check_metrics(task: Task, num_labels: int) -> None:
    """Refuse metrics that do not fit the task, before anything is trained.

    Raises:
        UserError: with the metric.
    """
    for name in task.metrics:
        fitting = FITTING[task.kind]
        if name not in METRICS or name not in fitting:
            raise UserError(
                f"metric {name!r} does not fit {task.kind}: choose from {', '.join(fitting)}"
            )
    if "f1" in task.metrics and num_labels != 2:
        raise UserError(
            f"metric 'f1' is for two labels and there are {num_labels}: choose macro_f1"
        )


def golds_of(
    examples: Sequence[Example], *, where: str, advice: str = "give a file with labels"
) -> list[Any]:
    """Return the truth of all examples.

    Args:
        examples: of a split.
        where: the file, for the message.
        advice: what to do where labels are missing.

    Raises:
        UserError: some are unlabelled, or there are none.
    """
    if not examples:
        raise UserError(f"{where}: holds no example: give a file with labelled examples")
    golds = [gold_of(example) for example in examples]
    missing = [i for i, gold in enumerate(golds) if gold is None]
    if missing:
        raise UserError(
            f"{where}: {len(missing):,} of {len(golds):,} examples have no label (the first is "
            f"{examples[missing[0]].id}), so nothing can be scored on them: {advice}"
        )
    return golds


def score_predictions(
    task: Task, golds: Sequence[Any], predictions: Predictions, *, labels: Sequence[str]
) -> Scores:
    """Compute every metric of a task.

    Args:
        task: names kind and metrics.
        golds: the truth.
        predictions: for the same examples.
        labels: in the order of their numbers.
    """
    found = {name: score(name, golds, predictions.values, labels=labels) for name in task.metrics}
    return Scores(
        values={name: each.value for name, each in found.items()},
        notes=tuple(dict.fromkeys(each.note for each in found.values() if each.note)),
        collapsed=same_everywhere(task.kind, golds, predictions.values),
    )


def baselines_of(
    task: Task, train: Sequence[Any], golds: Sequence[Any], *, labels: Sequence[str]
) -> dict[str, Baseline]:
    """Score the most frequent label, the mean number, no entity or no answer."""
    found = {name: baseline(task.kind, name, train, golds, labels=labels) for name in task.metrics}
    return {name: Baseline(value=each.value, guess=each.note) for name, each in found.items()}


def same_everywhere(kind: Kind, golds: Sequence[Any], predicted: Sequence[Any]) -> str:
    """Name the one prediction of a run that learned nothing; empty when there are several.

    A single example, or truth that is all alike, proves nothing.
    """
    if len(predicted) < 2 or len({str(gold) for gold in golds}) < 2:
        return ""
    if kind == "tagging":
        is_blank = not any(tag != "O" for tags in predicted for tag in tags)
        return "no entity" if is_blank else ""
    seen = {tuple(sorted(each)) if kind == "multilabel" else each for each in predicted}
    if len(seen) > 1:
        return ""
    (only,) = seen
    if kind == "qa":
        return "" if only else "no answer"
    if kind == "multilabel":
        return ", ".join(only) or "no label"
    return f"{only:.6g}" if kind == "regression" else str(only)


def choose_threshold(
    task: Task, golds: Sequence[Any], predictions: Predictions, *, is_test: bool
) -> tuple[Predictions, float | None]:
    """Choose when to give no answer, by the first metric; None where every question has one.

    Nothing is chosen by test examples: on those, the better of answer and "no answer" is given.
    """
    if task.kind != "qa" or all(golds):
        return predictions, None
    rule, threshold = ANSWER_RULES[task.metrics[0]], 0.0
    if not is_test:
        threshold = best_threshold(golds, predictions.spans, rule=rule)
    return with_threshold(predictions.spans, threshold), threshold


def is_better(metric: str, new: float, old: float) -> bool:
    """Compare two scores."""
    return new < old if metric in LOWER_IS_BETTER else new > old
