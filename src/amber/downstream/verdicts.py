"""Each labelled example with its prediction, and whether that is right."""

from collections.abc import Iterator, Sequence
from typing import Any

from amber.downstream.encoded import EncodedExamples
from amber.downstream.predict import Row, entity_fields, rows_of
from amber.downstream.prediction import Predictions
from amber.downstream.tuned_model import TunedModel
from amber.tasks.answers import cmrc_exact_match, squad_exact_match
from amber.tasks.example import Example, QAExample, TaggedExample
from amber.tasks.task import Task


def verdicts(
    tuned: TunedModel,
    task: Task,
    encoded: EncodedExamples,
    found: Predictions,
    scores: Sequence[Any],
    golds: Sequence[Any],
) -> Iterator[dict[str, Any]]:
    """Yield an object for JSON for each example, in their order.

    Args:
        tuned: the model.
        task: its metrics say how answers are compared.
        encoded: the examples.
        found: what was predicted.
        scores: of each sequence.
        golds: the truth.
    """
    rows = rows_of(tuned, encoded, found, scores)
    for example, row, gold in zip(encoded.examples, rows, golds, strict=True):
        yield given(example) | row.fields | judged(task, example, row, gold)


def given(example: Example) -> dict[str, Any]:
    """Return what was read."""
    if isinstance(example, QAExample):
        return {"id": example.id, "question": example.question, "context": example.context}
    if isinstance(example, TaggedExample) or example.pair is None:
        return {"id": example.id, "text": example.text}
    return {"id": example.id, "text": example.text, "pair": example.pair}


def judged(task: Task, example: Example, row: Row, gold: Any) -> dict[str, Any]:
    """Return the truth beside the prediction: of numbers the error, of all else if it is right."""
    if task.kind == "regression":
        return {"gold": gold, "error": row.value - gold}
    if isinstance(example, TaggedExample):
        entities = entity_fields(example, gold)
        return {"gold": entities, "is_right": entities == entity_fields(example, row.value)}
    if task.kind == "qa":
        is_chinese = task.metrics[0].startswith("cmrc")
        rule = cmrc_exact_match if is_chinese else squad_exact_match
        return {"gold": list(gold), "is_right": bool(rule(gold, row.value))}
    if task.kind == "multilabel":
        return {"gold": list(gold), "is_right": set(gold) == set(row.value)}
    return {"gold": gold, "is_right": row.value == gold}
