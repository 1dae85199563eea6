"""Predict for every row of a file, in order: what `amber predict` does."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from amber.downstream.encoded import EncodedExamples
from amber.downstream.inputs import DataLayout, TaskInput, layout_for, read_input
from amber.downstream.predict_config import PredictConfig
from amber.downstream.prediction import Predictions
from amber.downstream.tuned_model import TunedModel, ask, open_tuned
from amber.errors import UserError
from amber.run.device import Process
from amber.tasks.decoding import sigmoid, softmax
from amber.tasks.example import Example, QAExample, TaggedExample, TextExample
from amber.tasks.mentions import as_mentions, mentions_of
from amber.tasks.pieces import PlainTokenizer
from amber.tasks.questions import QuestionWindow
from amber.tasks.submission import write_submission
from amber.tasks.task import Task

CHUNK: Final = 4096
"""Examples that are encoded at a time."""

OnCount = Callable[[float, int | None], None]
"""Is told how many rows are done, and how many there are."""
OnLosses = Callable[[dict[str, int]], None]
"""Is told the counts of `EncodedExamples`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """The prediction for one row of the file."""

    id: str
    value: Any
    """A label, a tuple of labels, a number, a tuple of tags, or an answer (empty: none)."""

    fields: dict[str, Any]
    """As JSON. Where there is nothing to read, the prediction is None."""

    is_blank: bool
    """There is nothing to read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """A model with what it is to predict for."""

    tuned: TunedModel
    layout: DataLayout
    input: TaskInput

    @property
    def num_rows(self) -> int:
        """In the file."""
        return len(self.input.examples)


def open_prediction(config: PredictConfig) -> Prediction:
    """Open the model and read the file.

    Raises:
        UserError: one of them cannot be read, or there is nothing to do.
    """
    tuned = open_tuned(config.model)
    layout = layout_for(tuned, task=config.task, columns=config.own)
    if config.split is not None and config.submission is None and config.file.is_file():
        raise UserError(f"split has no effect on {config.file}, which is one file: leave it out")
    read = read_input(layout, config.file, split=config.split)
    if config.submission is not None:
        refuse_submission(tuned, layout.task, read.split)
    return Prediction(tuned=tuned, layout=layout, input=read)


def refuse_submission(tuned: TunedModel, task: Task, split: str) -> None:
    """Stop before the work where no leaderboard takes the predictions.

    Raises:
        UserError: own data, a split that is not handed in, or labels that the task does not have.
    """
    if task.submission is None or split not in task.submission_files:
        there = ", ".join(task.submission_files) or "none"
        raise UserError(
            f"submission has no effect on the {split} file of task {task.name}: leaderboards take "
            f"{there}; leave it out"
        )
    wrong = [name for name in tuned.labels if task.labels is not None and name not in task.labels]
    if wrong:
        raise UserError(
            f"submission: {tuned.path} has the label {wrong[0]!r}, which is none of task "
            f"{task.name} ({', '.join((task.labels or ())[:6])}): use a model of this task"
        )


def predict_rows(
    prediction: Prediction,
    process: Process,
    *,
    batch_size: int = 0,
    on_count: OnCount = lambda done, total: None,
    on_losses: OnLosses = lambda counts: None,
) -> Iterator[Row]:
    """Yield a prediction for each row, some thousands at a time.

    Args:
        prediction: the model, which is moved to the device, and the rows.
        process: gives device and precision.
        batch_size: sequences per forward pass; 0 = by their tokens.
        on_count: is told how many are done.
        on_losses: is told of some rows after the other what was cut or lost on the way to tokens.

    Raises:
        UserError: the model does not read enough at once.
        RunError: a score is no number.
    """
    tuned, total = prediction.tuned, prediction.num_rows
    tuned.model.to(process.device)
    on_count(0.0, total)
    for start in range(0, total, CHUNK):
        some = prediction.input.examples[start : start + CHUNK]
        encoded = tuned.encode(some)
        on_losses(encoded.counts)

        def note(
            done: int, before: int = start, size: int = len(some), of: EncodedExamples = encoded
        ) -> None:
            on_count(before + size * done / len(of.sequences), total)

        found, scores = ask(tuned, encoded, process, batch_size=batch_size, on_count=note)
        yield from rows_of(tuned, encoded, found, scores)


def rows_of(
    tuned: TunedModel, encoded: EncodedExamples, found: Predictions, scores: Sequence[Any]
) -> Iterator[Row]:
    """Put predictions into rows."""
    if tuned.kind == "tagging":
        for example, tags in zip(encoded.examples, found.values, strict=True):
            assert isinstance(example, TaggedExample)
            yield tag_row(example, tags)
    elif tuned.kind == "qa":
        readable = contexts_with_text(encoded)
        for index, example in enumerate(encoded.examples):
            yield answer_row(example, found, index, is_blank=index not in readable)
    else:
        blank = blank_texts(tuned, encoded)
        table = np.stack(scores)
        chances = sigmoid(table) if tuned.kind == "multilabel" else softmax(table)
        for index, example in enumerate(encoded.examples):
            row = text_row(tuned, example, found, index, chances[index])
            yield as_blank(row) if blank[index] else row


def text_row(
    tuned: TunedModel,
    example: Example,
    found: Predictions,
    index: int,
    chances: Float[np.ndarray, " C"],
) -> Row:
    """Write the label with its probability, the labels with theirs, or the number."""
    value = found.values[index]
    if tuned.kind == "regression":
        fields: dict[str, Any] = {"value": value}
    elif tuned.kind == "multilabel":
        chosen = dict(zip(value, found.probabilities[index], strict=True))
        fields = {"labels": list(value), "label_probabilities": list(chosen.values())}
    else:
        fields = {"label": value, "probability": found.probabilities[index]}
    if tuned.labels:
        fields["probabilities"] = dict(zip(tuned.labels, chances.tolist(), strict=True))
    return Row(id=example.id, value=value, fields={"id": example.id} | fields, is_blank=False)


def as_blank(row: Row) -> Row:
    """Take the prediction out of what is written: there was nothing to read."""
    fields = {name: value if name == "id" else None for name, value in row.fields.items()}
    return Row(id=row.id, value=row.value, fields=fields, is_blank=True)


def tag_row(example: TaggedExample, tags: Sequence[str]) -> Row:
    """Write the entities, and the words with their places and tags."""
    words = [
        {"word": example.text[start:end], "start": start, "end": end, "tag": tag}
        for (start, end), tag in zip(example.spans, tags, strict=True)
    ]
    found = entity_fields(example, tags)
    fields = {"id": example.id, "text": example.text, "entities": found, "words": words}
    return Row(id=example.id, value=tuple(tags), fields=fields, is_blank=not words)


def entity_fields(example: TaggedExample, tags: Sequence[str]) -> list[dict[str, Any]]:
    """Write entities with their places."""
    return [
        {"text": example.text[start:end], "start": start, "end": end, "type": kind}
        for start, end, kind in mentions_of(example, tags)
    ]


def answer_row(example: Example, found: Predictions, index: int, *, is_blank: bool) -> Row:
    """Write the answer with its place; one that is not given has none."""
    span, answer = found.spans[index], found.values[index]
    assert isinstance(example, QAExample)
    assert example.context[span.start : span.start + len(span.text)] == span.text
    fields = {
        "id": example.id,
        "answer": answer or None,
        "start": span.start if answer else None,
        "end": span.start + len(answer) if answer else None,
        "score": span.score,
        "no_answer_score": span.no_answer_score,
    }
    return Row(id=example.id, value=answer, fields=fields, is_blank=is_blank)


def contexts_with_text(encoded: EncodedExamples) -> set[int]:
    """The numbers of the questions of whose context the tokenizer leaves something."""
    windows = (window for window in encoded.windows if isinstance(window, QuestionWindow))
    return {w.example for w in windows if (w.offsets[:, 1] > w.offsets[:, 0]).any()}


def blank_texts(tuned: TunedModel, encoded: EncodedExamples) -> list[bool]:
    """Say of each text or pair whether the tokenizer leaves nothing of it."""
    frame = PlainTokenizer(tuned.tokenizer).frame
    return [
        bool(length <= (frame.num_special if example.pair is None else frame.num_special_pair))
        for example, length in zip(encoded.examples, encoded.sequences.lengths, strict=True)
        if isinstance(example, TextExample)
    ]


def hand_in(prediction: Prediction, rows: Sequence[Row], folder: Path) -> Path:
    """Write the file that a leaderboard takes; it gets its name when it is complete.

    Args:
        prediction: names the task and the split.
        rows: of the whole file.
        folder: is made if it is not there.

    Raises:
        UserError: a label that the task does not have, or an id that occurs twice.
    """
    beside = folder.with_name(f".{folder.name}.unfinished")
    twice = next((name for name, count in Counter(r.id for r in rows).items() if count > 1), None)
    if twice is not None:
        raise UserError(
            f"{prediction.input.path}: several rows have the id {twice}, and a leaderboard takes "
            "one prediction for each: give the task's own file"
        )
    examples = prediction.input.examples
    values = {
        row.id: as_mentions(each, row.value) if isinstance(each, TaggedExample) else row.value
        for row, each in zip(rows, examples, strict=True)
    }
    path = None
    try:
        path = write_submission(
            prediction.layout.task, values, beside, split=prediction.input.split
        )
        folder.mkdir(parents=True, exist_ok=True)
        return path.replace(folder / path.name)
    except (FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise UserError(f"submission is {folder}: cannot be written ({error.strerror})") from error
    finally:
        if path is not None:
            path.unlink(missing_ok=True)
        if beside.is_dir() and not any(beside.iterdir()):
            beside.rmdir()
