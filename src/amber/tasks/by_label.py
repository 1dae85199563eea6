"""The scores of each label or type of entity, and the most frequent mistakes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amber.tasks.entities import count_entities
from amber.tasks.example import Kind
from amber.tasks.matches import count_matches


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScores:
    """How well one label is told; as fractions."""

    label: str
    num_gold: int
    """Examples that have it; of entities those of this type."""

    num_predicted: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One label taken for another."""

    gold: str
    predicted: str
    count: int


def label_scores(
    kind: Kind, gold: Sequence[Any], predicted: Sequence[Any], *, labels: Sequence[str]
) -> tuple[LabelScores, ...]:
    """Score each label by itself; nothing for numbers and answers.

    Args:
        kind: of the task.
        gold: the truth, as `amber.tasks.metrics.score` takes it.
        predicted: likewise.
        labels: in the order of their numbers; of tags the types come in alphabetical order.
    """
    if kind == "tagging":
        counts = count_entities(gold, predicted)
        names = list(counts)
    elif kind in ("classification", "multilabel"):
        sets = [
            [[(name, 0) for name in (one if kind == "multilabel" else (one,))] for one in part]
            for part in (gold, predicted)
        ]
        counts = count_matches(*sets)
        names = [name for name in labels if name in counts]
    else:
        return ()
    return tuple(
        LabelScores(
            label=name,
            num_gold=counts[name].num_gold,
            num_predicted=counts[name].num_predicted,
            precision=counts[name].precision,
            recall=counts[name].recall,
            f1=counts[name].f1,
        )
        for name in names
    )


def mistakes(kind: Kind, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[Mistake, ...]:
    """Count which label was taken for which, the most frequent first; of classification only."""
    if kind != "classification":
        return ()
    pairs = Counter((a, b) for a, b in zip(gold, predicted, strict=True) if a != b)
    order = sorted(pairs, key=lambda pair: (-pairs[pair], pair))
    return tuple(Mistake(gold=a, predicted=b, count=pairs[a, b]) for a, b in order)
