"""The score of a guess that reads no text: what every other score should be compared with."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from amber.tasks.example import Kind
from amber.tasks.metrics import Score, score


def baseline(
    kind: Kind,
    metric: str,
    train: Sequence[Any],
    gold: Sequence[Any],
    *,
    labels: Sequence[str] = (),
) -> Score:
    """Score the same prediction for every example.

    Args:
        kind: of the task.
        metric: as for `score`.
        train: the truth of the training examples, in the form of `score`'s `gold`. What is
            predicted: the most frequent label or set of labels (of equally frequent ones the first
            by order of `labels`), the mean number, no entity, no answer.
        gold: the truth to score against.
        labels: as for `score`.

    Returns:
        The score; its note names the prediction.

    Raises:
        ValueError: no training labels.
    """
    if not len(train):
        raise ValueError("a baseline takes at least one training label")
    if kind == "tagging":
        guesses: list[Any] = [("O",) * len(tags) for tags in gold]
        note = "no entity"
    elif kind == "qa":
        guesses, note = [""] * len(gold), "no answer"
    elif kind == "regression":
        mean = float(np.mean(train))
        guesses, note = [mean] * len(gold), f"always {mean:g}"
    else:
        guess = _most_frequent(train, labels)
        guesses = [guess] * len(gold)
        named = ", ".join(guess) if isinstance(guess, tuple) else guess
        note = "no label" if guess == () else f"always '{named}'"
    return Score(value=score(metric, gold, guesses, labels=labels).value, note=note)


def _most_frequent(train: Sequence[Any], labels: Sequence[str]) -> Any:
    order = {label: index for index, label in enumerate(labels)}
    if isinstance(train[0], tuple):
        train = [tuple(sorted(set(group))) for group in train]
    counts = Counter(train)
    return min(counts, key=lambda label: (-counts[label], order.get(label, len(order)), label))
