"""The scores of the tasks, as fractions: 0.5, not 50.

A score is always a finite number. Where predictions leave it without meaning (all alike, none at
all, not numbers) it is 0.0, and the note beside it says why.
"""

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from amber.errors import UserError
from amber.tasks.answers import cmrc_exact_match, cmrc_f1, squad_exact_match, squad_f1
from amber.tasks.entities import count_entities
from amber.tasks.matches import total

LabelMetric = Literal["accuracy", "mcc", "f1", "macro_f1"]
SetMetric = Literal["micro_f1"]
NumberMetric = Literal["pearson", "spearman", "mse"]
TagMetric = Literal["entity_precision", "entity_recall", "entity_f1"]
AnswerMetric = Literal["exact_match", "answer_f1", "cmrc_exact_match", "cmrc_f1"]
Metric = Literal[LabelMetric, SetMetric, NumberMetric, TagMetric, AnswerMetric]
METRICS: tuple[str, ...] = get_args(Metric)
LOWER_IS_BETTER = frozenset({"mse"})
ANSWER_RULES: dict[str, Callable[[Sequence[str], str], float]] = {
    "exact_match": squad_exact_match,
    "answer_f1": squad_f1,
    "cmrc_exact_match": cmrc_exact_match,
    "cmrc_f1": cmrc_f1,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One number, and what a reader should know about it."""

    value: float
    note: str = ""
    """Empty when there is nothing to say."""


def score(
    name: str, gold: Sequence[Any], predicted: Sequence[Any], *, labels: Sequence[str] = ()
) -> Score:
    """Compare predictions with the truth.

    Args:
        name: a `Metric`.
        gold: one entry for each example. Classification: the label. Multi-label (`micro_f1` and
            `accuracy`): a tuple of labels. Regression: a number. Tagging: the BIO tags of the
            sentence. Questions: a tuple of right answers, empty when there is none.
        predicted: as `gold`; for questions the answer given, empty for "no answer".
        labels: all labels in the order of the task; `f1` is that of the last one. Without them,
            those of `gold` and `predicted`, sorted.

    Raises:
        UserError: no such metric, or `f1` of more than two labels.
        ValueError: another number of predictions than of examples.
    """
    if name not in METRICS:
        raise UserError(f"metric '{name}' is not known: choose from {', '.join(METRICS)}")
    if len(gold) != len(predicted):
        raise ValueError(f"{len(predicted)} predictions for {len(gold)} examples")
    if not len(gold):
        return Score(value=0.0, note="no examples")
    if name in get_args(NumberMetric):
        return _score_numbers(name, np.array(gold, np.float64), np.array(predicted, np.float64))
    if name in get_args(TagMetric):
        return _score_tags(name, gold, predicted)
    if name in ANSWER_RULES:
        return _score_answers(name, gold, predicted)
    if name == "micro_f1":
        return _score_sets(gold, predicted)
    return _score_labels(name, gold, predicted, labels)


def _score_labels(
    name: str, gold: Sequence[Any], predicted: Sequence[Any], labels: Sequence[str]
) -> Score:
    if isinstance(gold[0], tuple):  # sets of labels: right when all are
        gold = ["\n".join(sorted(set(group))) for group in gold]
        predicted = ["\n".join(sorted(set(group))) for group in predicted]
    seen = sorted(set(gold) | set(predicted))
    note = ""
    if len(set(predicted)) == 1 and len(gold) > 1:
        note = f"every prediction is '{', '.join(predicted[0].splitlines())}'"
    row = {label: index for index, label in enumerate(seen)}
    true = np.array([row[label] for label in gold])
    guessed = np.array([row[label] for label in predicted])
    if name == "accuracy":
        value = accuracy_score(true, guessed)
    elif name == "macro_f1":
        value = f1_score(true, guessed, average="macro", zero_division=0.0)  # type: ignore
    elif name == "f1":
        order = list(labels) or seen
        if len(order) > 2:
            raise UserError(
                f"metric 'f1' is for two labels and there are {len(order)}: choose 'macro_f1'"
            )
        positive = row.get(order[-1], -1)
        value = f1_score(true == positive, guessed == positive, zero_division=0.0)  # type: ignore
        if not (true == positive).any():
            note = note or f"no example is '{order[-1]}'"
    else:
        value = _mcc(true, guessed)
        if len(set(gold)) == 1:
            note = note or f"every example is '{gold[0]}'"
    return Score(value=float(value), note=note)


def _mcc(true: Int[np.ndarray, " N"], guessed: Int[np.ndarray, " N"]) -> float:
    if len(set(true)) == 1 or len(set(guessed)) == 1:
        return 0.0
    return float(matthews_corrcoef(true, guessed))


def _score_sets(gold: Sequence[tuple[str, ...]], predicted: Sequence[tuple[str, ...]]) -> Score:
    num_both = sum(len(set(a) & set(b)) for a, b in zip(gold, predicted, strict=True))
    num_predicted = sum(len(set(group)) for group in predicted)
    num_either = sum(len(set(group)) for group in gold) + num_predicted
    note = ""
    if num_predicted == 0:
        note = "no label was predicted"
    elif len({frozenset(group) for group in predicted}) == 1 and len(gold) > 1:
        note = f"every prediction is '{', '.join(sorted(set(predicted[0])))}'"
    return Score(value=2 * num_both / num_either if num_either else 0.0, note=note)


def _score_numbers(
    name: str, gold: Float[np.ndarray, " N"], predicted: Float[np.ndarray, " N"]
) -> Score:
    is_number = np.isfinite(predicted)
    if not is_number.all():
        worst = sys.float_info.max if name == "mse" else 0.0
        count = len(gold) - is_number.sum()
        return Score(value=worst, note=f"{count} of {len(gold)} predictions are not finite numbers")
    note = ""
    if len(gold) > 1 and (predicted == predicted[0]).all():
        note = f"every prediction is {predicted[0]:g}"
    if name == "mse":
        with np.errstate(over="ignore"):
            value = float(np.minimum(np.mean((gold - predicted) ** 2), sys.float_info.max))
        return Score(value=value, note=note)
    if len(gold) < 2:
        return Score(value=0.0, note="a correlation takes at least two examples")
    if note or (gold == gold[0]).all():
        return Score(value=0.0, note=note or f"every example is {gold[0]:g}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of numbers that differ in their last digits only
        value = float((pearsonr if name == "pearson" else spearmanr)(gold, predicted)[0])  # type: ignore
    if not math.isfinite(value):
        return Score(value=0.0, note="the predictions differ too little or too much to correlate")
    return Score(value=value)


def _score_tags(
    name: str, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> Score:
    counts = total(count_entities(gold, predicted))
    values = {
        "entity_precision": counts.precision,
        "entity_recall": counts.recall,
        "entity_f1": counts.f1,
    }
    note = ""
    if counts.num_gold == 0:
        note = "no example holds an entity"
    elif counts.num_predicted == 0:
        note = "no entity was predicted"
    return Score(value=values[name], note=note)


def _score_answers(name: str, gold: Sequence[tuple[str, ...]], predicted: Sequence[str]) -> Score:
    rule = ANSWER_RULES[name]
    values = [rule(answers, answer) for answers, answer in zip(gold, predicted, strict=True)]
    is_silent = any(gold) and not any(predicted)
    note = "every prediction is 'no answer'" if is_silent else ""
    return Score(value=sum(values) / len(values), note=note)
