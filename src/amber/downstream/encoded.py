"""The examples of a task as token ids, encoded once: what training and prediction read."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from amber.downstream.sequences import Sequences, join_sequences
from amber.tasks.encoding import encode_texts
from amber.tasks.example import Example, Kind, QAExample, TaggedExample, TextExample
from amber.tasks.questions import QuestionEncoding, QuestionWindow, encode_questions
from amber.tasks.tagging import TaggedWindow, encode_tagged


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedExamples:
    """Examples of one kind, and the sequences that they became."""

    kind: Kind
    labels: tuple[str, ...]
    """Names in the order of their numbers."""

    examples: tuple[Example, ...]
    sequences: Sequences
    windows: tuple[TaggedWindow, ...] | tuple[QuestionWindow, ...] = ()
    """Of tags and questions: what each sequence is a part of."""

    counts: dict[str, int] = field(default_factory=dict)
    """What was cut or lost on the way, each with its number where it is above 0."""

    @property
    def truncated_share(self) -> float:
        """Share of the examples of which something was not read; 0.0 of none."""
        return self.counts.get("truncated", 0) / max(1, len(self.examples))


def encode_examples(
    kind: Kind,
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    *,
    labels: tuple[str, ...],
    length: int,
    stride: int | None = None,
    max_question: int | None = None,
) -> EncodedExamples:
    """Encode the examples of a split, labelled or not.

    Args:
        kind: of the task.
        examples: all of this kind.
        tokenizer: the model's.
        labels: names in the order of their numbers.
        length: tokens of a sequence, [CLS] and [SEP] included.
        stride: tokens from one window to the next (tags and questions).
        max_question: tokens of a question that are read (questions).
    """
    if kind == "tagging":
        assert stride is not None
        return _encode_tags(examples, tokenizer, labels=labels, length=length, stride=stride)
    if kind == "qa":
        assert stride is not None
        assert max_question is not None
        return _encode_questions(
            examples, tokenizer, length=length, stride=stride, max_question=max_question
        )
    texts = [example for example in examples if isinstance(example, TextExample)]
    found = encode_texts(texts, tokenizer, max_length=length)
    return EncodedExamples(
        kind=kind,
        labels=labels,
        examples=tuple(texts),
        sequences=join_sequences(
            [each.input_ids for each in found],
            [each.token_type_ids for each in found],
            _text_labels(kind, texts, labels),
        ),
        counts=_above_zero(truncated=sum(each.is_truncated for each in found)),
    )


def _text_labels(kind: Kind, examples: list[TextExample], labels: tuple[str, ...]) -> np.ndarray:
    """Number the labels; those of unlabelled examples are 0 and never looked at."""
    row = {name: number for number, name in enumerate(labels)}
    if kind == "regression":
        return np.array([_number(example.label) for example in examples], dtype=np.float32)
    if kind == "classification":
        return np.array([row.get(str(example.label), 0) for example in examples], dtype=np.int64)
    table = np.zeros((len(examples), len(labels)), dtype=np.float32)
    for index, example in enumerate(examples):
        for name in example.label if isinstance(example.label, tuple) else ():
            table[index, row[name]] = 1.0
    return table


def _number(label: object) -> float:
    return float(label) if isinstance(label, int | float) else 0.0


def _encode_tags(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    *,
    labels: tuple[str, ...],
    length: int,
    stride: int,
) -> EncodedExamples:
    sentences = [example for example in examples if isinstance(example, TaggedExample)]
    found = encode_tagged(sentences, tokenizer, labels=labels, max_length=length, stride=stride)
    nothing = [np.zeros(0, dtype=np.int64)]
    return EncodedExamples(
        kind="tagging",
        labels=labels,
        examples=tuple(sentences),
        sequences=join_sequences(
            [window.input_ids for window in found.windows],
            [window.token_type_ids for window in found.windows],
            np.concatenate([*nothing, *(window.labels for window in found.windows)]),
        ),
        windows=found.windows,
        counts=_above_zero(split=found.num_split, words_without_token=found.num_without_piece),
    )


def _encode_questions(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    *,
    length: int,
    stride: int,
    max_question: int,
) -> EncodedExamples:
    questions = [example for example in examples if isinstance(example, QAExample)]
    found: QuestionEncoding = encode_questions(
        questions, tokenizer, max_length=length, stride=stride, max_question=max_question
    )
    places = [(window.start_label, window.end_label) for window in found.windows]
    return EncodedExamples(
        kind="qa",
        labels=(),
        examples=tuple(questions),
        sequences=join_sequences(
            [window.input_ids for window in found.windows],
            [window.token_type_ids for window in found.windows],
            np.array(places, dtype=np.int64).reshape(-1, 2),
            is_context=[window.offsets[:, 1] >= 0 for window in found.windows],
        ),
        windows=found.windows,
        counts=_above_zero(
            truncated=found.num_long_questions,
            split=found.num_split,
            windows_with_part_of_the_answer=found.num_cut,
            answers_in_no_window=found.num_lost,
            answers_inside_a_token=found.num_inexact,
            contexts_without_token=found.num_empty,
        ),
    )


def _above_zero(**counts: int) -> dict[str, int]:
    return {name: int(count) for name, count in counts.items() if count}


def with_both_orders(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Add each pair turned round, after all the others."""
    turned = [
        replace(example, text=example.pair, pair=example.text)
        for example in examples
        if isinstance(example, TextExample) and example.pair is not None
    ]
    return (*examples, *turned)


def gold_of(example: Example) -> Any:
    """Return the truth in the form that `amber.tasks.metrics.score` takes; None when unlabelled."""
    if isinstance(example, TextExample):
        return example.label
    if isinstance(example, TaggedExample):
        return example.tags
    if not example.is_labelled:
        return None
    return example.gold_texts or tuple(answer.text for answer in example.answers)


def fingerprint_of(encoded: EncodedExamples) -> str:
    """Return a digest of what is read, what is learned, and of the truth."""
    digest = hashlib.blake2b(digest_size=16)
    read = encoded.sequences
    for array in (read.input_ids, read.token_type_ids, read.starts, read.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(repr([gold_of(example) for example in encoded.examples]).encode("utf-8"))
    digest.update(repr(encoded.labels).encode("utf-8"))
    return digest.hexdigest()
