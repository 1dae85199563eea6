"""What a task network says of examples: labels with their probabilities, tags, answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from amber.downstream.encoded import EncodedExamples
from amber.downstream.forward import encode_batch, task_scores, to_device
from amber.downstream.joint_decoding import WindowAnswer, best_in_window, join_windows
from amber.downstream.sequences import Sequences, TaskBatch, collate, sorted_batches
from amber.model.joint_answers import JointAnswerHead
from amber.model.task_heads import TaskModel
from amber.run.device import Process
from amber.tasks.decoding import (
    AnswerSpan,
    decode_answers,
    decode_label_sets,
    decode_labels,
    decode_tags,
)
from amber.tasks.example import QAExample, TaggedExample
from amber.tasks.questions import QuestionWindow
from amber.tasks.tagging import TaggedWindow

TOKENS_PER_PASS: Final = {"cpu": 4096, "cuda": 65_536}
MAX_ANSWER: Final = 30

OnCount = Callable[[int], None]
"""Is told how many sequences are done."""
SequenceScores = Float[np.ndarray, "..."] | WindowAnswer
"""What the head says of one sequence: of the official code's head for questions its best answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions:
    """One entry per example, in their order."""

    values: tuple[Any, ...]
    """A label, a tuple of labels, a number, a tuple of tags, or the text of an answer: as
    `amber.tasks.metrics.score` takes them. Empty: no answer."""

    probabilities: tuple[Any, ...] = ()
    """Of the label (a number), of each label given (a tuple); empty for other kinds."""

    spans: tuple[AnswerSpan, ...] = ()
    """Of questions: the best part of the context, beside "no answer"."""


def predict_examples(
    model: TaskModel,
    encoded: EncodedExamples,
    process: Process,
    *,
    pad_id: int,
    max_answer: int = MAX_ANSWER,
) -> Predictions:
    """Predict for every example; every question is answered.

    Args:
        model: on the process's device; its mode is put back afterwards.
        encoded: with or without labels.
        process: gives device and precision.
        pad_id: of the padding token.
        max_answer: tokens of the longest answer.
    """
    scores = score_sequences(
        model, encoded.sequences, process, pad_id=pad_id, max_answer=max_answer
    )
    return decode(encoded, scores, threshold=None, max_answer=max_answer)


def score_sequences(
    model: TaskModel,
    sequences: Sequences,
    process: Process,
    *,
    pad_id: int,
    max_answer: int,
    batch_size: int = 0,
    on_count: OnCount = lambda done: None,
) -> list[SequenceScores]:
    """Run the network over all sequences, the longest first; the result has their order.

    Args:
        model: on the process's device; its mode is put back afterwards.
        sequences: token ids.
        process: gives device and precision.
        pad_id: of the padding token.
        max_answer: tokens of the longest answer.
        batch_size: sequences per forward pass; 0 = as many as have a fixed number of tokens.
        on_count: told how many sequences are done.
    """
    was_training, found = model.training, dict[int, SequenceScores]()
    model.eval()
    limit = TOKENS_PER_PASS.get(process.device.type, TOKENS_PER_PASS["cpu"])
    batches = list(sorted_batches(sequences.lengths, num_tokens=limit))
    if batch_size:
        order = np.concatenate(batches)
        batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    with torch.inference_mode():
        for rows in batches:
            batch = to_device(collate(sequences, rows, pad_id=pad_id), process.device)
            if isinstance(model.head, JointAnswerHead):
                hidden = encode_batch(model, batch, process)
                parts = joint_answers(model.head, hidden, batch, max_answer=max_answer)
            else:
                parts = task_scores(model, batch, process).cpu().numpy()
            found |= dict(zip(rows.tolist(), parts, strict=True))
            on_count(len(found))
    model.train(was_training)
    return [found[row] for row in range(len(sequences))]


def joint_answers(
    head: JointAnswerHead, hidden: Float[Tensor, "B T D"], batch: TaskBatch, *, max_answer: int
) -> list[WindowAnswer]:
    """Search the best answer in each window with the official code's head."""
    assert batch.is_context is not None
    spans = head.search(hidden, batch.is_context)
    return best_in_window(spans, batch.is_context, max_answer=max_answer)


def decode(
    encoded: EncodedExamples,
    scores: Sequence[SequenceScores],
    *,
    threshold: float | None,
    max_answer: int,
) -> Predictions:
    """Turn the scores of sequences into predictions for examples."""
    joint = [each for each in scores if isinstance(each, WindowAnswer)]
    logits = [each for each in scores if not isinstance(each, WindowAnswer)]
    if encoded.kind == "tagging":
        sentences = [e for e in encoded.examples if isinstance(e, TaggedExample)]
        windows = [w for w in encoded.windows if isinstance(w, TaggedWindow)]
        return Predictions(values=tuple(decode_tags(sentences, windows, logits, encoded.labels)))
    if encoded.kind == "qa":
        questions = [e for e in encoded.examples if isinstance(e, QAExample)]
        parts = [w for w in encoded.windows if isinstance(w, QuestionWindow)]
        if joint:
            spans = join_windows(questions, parts, joint)
        else:
            starts, ends = [each[:, 0] for each in logits], [each[:, 1] for each in logits]
            spans = decode_answers(questions, parts, starts, ends, max_answer=max_answer)
        return with_threshold(tuple(spans), threshold)
    table = np.stack(logits) if logits else np.zeros((0, 1), dtype=np.float32)
    if encoded.kind == "regression":
        return Predictions(values=tuple(table[:, 0].astype(np.float64).tolist()))
    if encoded.kind == "multilabel":
        sets = decode_label_sets(table, encoded.labels)
        return Predictions(
            values=tuple(tuple(each.label for each in group) for group in sets),
            probabilities=tuple(tuple(each.probability for each in group) for group in sets),
        )
    best = decode_labels(table, encoded.labels)
    return Predictions(
        values=tuple(each.label for each in best),
        probabilities=tuple(each.probability for each in best),
    )


def with_threshold(spans: tuple[AnswerSpan, ...], threshold: float | None) -> Predictions:
    """Answer questions, or not, by a threshold."""
    return Predictions(
        values=tuple(span.answer(threshold=threshold) for span in spans), spans=spans
    )
