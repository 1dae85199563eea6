"""From a model's scores to labels, tags and answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from amber.tasks.answers import squad_f1
from amber.tasks.example import QAExample, TaggedExample
from amber.tasks.questions import NO_ANSWER, QuestionWindow
from amber.tasks.tagging import NO_WORD, TaggedWindow


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelPrediction:
    """The most probable label of one example."""

    label: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSpan:
    """The best part of a context, and how it compares with "no answer"."""

    text: str
    """Exactly as in the context; empty when the context has no piece."""
    start: int
    """First character in the context."""
    score: float
    """Scores of its first and last token, added up."""
    no_answer_score: float
    """The same for [CLS], the lowest of all windows."""

    def answer(self, *, threshold: float | None = None) -> str:
        """Return the text, or nothing when "no answer" is ahead by more than `threshold`.

        Args:
            threshold: None always answers, as in SQuAD 1.1.
        """
        is_silent = threshold is not None and self.no_answer_score - self.score > threshold
        return "" if is_silent else self.text


def softmax(logits: Float[np.ndarray, "B C"]) -> Float[np.ndarray, "B C"]:
    """Turn the scores of labels that exclude each other into probabilities, in float64."""
    powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sigmoid(logits: Float[np.ndarray, "B C"]) -> Float[np.ndarray, "B C"]:
    """Turn the score of each label by itself into a probability, in float64."""
    return np.tanh(logits.astype(np.float64) / 2) / 2 + 0.5  # cannot overflow


def decode_labels(logits: Float[np.ndarray, "B C"], labels: Sequence[str]) -> list[LabelPrediction]:
    """Choose the label of each example, with its probability (softmax)."""
    return [
        LabelPrediction(label=labels[int(row.argmax())], probability=float(row.max()))
        for row in softmax(logits)
    ]


def decode_label_sets(
    logits: Float[np.ndarray, "B C"], labels: Sequence[str]
) -> list[tuple[LabelPrediction, ...]]:
    """Choose every label whose probability (sigmoid) is above one half: its score is above 0."""
    return [
        tuple(
            LabelPrediction(label=labels[index], probability=float(chances[index]))
            for index in np.flatnonzero(row > 0).tolist()
        )
        for row, chances in zip(logits, sigmoid(logits), strict=True)
    ]


def decode_tags(
    examples: Sequence[TaggedExample],
    windows: Sequence[TaggedWindow],
    logits: Sequence[Float[np.ndarray, "_ C"]],
    labels: Sequence[str],
) -> list[tuple[str, ...]]:
    """Read the tag of each word at its token; a word that has none is O.

    Args:
        examples: the sentences that were encoded.
        windows: of those sentences, in any order.
        logits: of each window; rows past its tokens are padding.
        labels: the tags in the order of their numbers.
    """
    tags = [["O"] * len(example.spans) for example in examples]
    for window, scores in zip(windows, logits, strict=True):
        places = np.flatnonzero(window.words != NO_WORD)
        best = scores[places].argmax(axis=1)
        for word, index in zip(window.words[places], best, strict=True):
            tags[window.example][word] = labels[index]
    return [tuple(sentence) for sentence in tags]


def decode_answers(
    examples: Sequence[QAExample],
    windows: Sequence[QuestionWindow],
    start_logits: Sequence[Float[np.ndarray, " _"]],
    end_logits: Sequence[Float[np.ndarray, " _"]],
    *,
    num_best: int = 20,
    max_answer: int = 30,
) -> list[AnswerSpan]:
    """Find the best answer to each question over the windows of its context.

    Args:
        examples: the questions that were encoded.
        windows: of those questions, in any order; at least one of each.
        start_logits: of each window; numbers past its tokens are padding.
        end_logits: likewise.
        num_best: starts and ends that are tried; where none of them fit together, all are.
        max_answer: tokens of the longest answer.
    """
    best: dict[int, tuple[float, int, int]] = {}
    silent: dict[int, float] = {}
    for window, starts, ends in zip(windows, start_logits, end_logits, strict=True):
        index, size = window.example, len(window.input_ids)
        no_answer = float(starts[NO_ANSWER]) + float(ends[NO_ANSWER])
        silent[index] = min(silent.get(index, np.inf), no_answer)
        pair = _best_pair(
            starts[:size].astype(np.float64),
            ends[:size].astype(np.float64),
            window.offsets[:, 1] > window.offsets[:, 0],
            num_best=num_best,
            max_answer=max_answer,
        )
        if pair is not None and (index not in best or pair[0] > best[index][0]):
            start, stop = window.offsets[pair[1], 0], window.offsets[pair[2], 1]
            best[index] = pair[0], int(start), int(stop)
    spans: list[AnswerSpan] = []
    for index, example in enumerate(examples):
        score, start, stop = best.get(index, (silent[index], 0, 0))
        spans.append(
            AnswerSpan(
                text=example.context[start:stop],
                start=start,
                score=score,
                no_answer_score=silent[index],
            )
        )
    return spans


def _best_pair(
    starts: Float[np.ndarray, " T"],
    ends: Float[np.ndarray, " T"],
    is_text: Bool[np.ndarray, " T"],
    *,
    num_best: int,
    max_answer: int,
) -> tuple[float, int, int] | None:
    """Score, first and last token of the best answer in one window; None without text."""
    places = np.flatnonzero(is_text)
    for limit in (num_best, len(places)):
        first = places[np.argsort(-starts[places], kind="stable")[:limit]]
        last = places[np.argsort(-ends[places], kind="stable")[:limit]]
        lengths = last - first[:, None] + 1
        scores = starts[first][:, None] + ends[last]
        scores[(lengths < 1) | (lengths > max_answer)] = -np.inf
        if scores.size and scores.max() > -np.inf:
            row, column = np.unravel_index(scores.argmax(), scores.shape)
            return float(scores[row, column]), int(first[row]), int(last[column])
    return None


def best_threshold(
    answers: Sequence[tuple[str, ...]],
    spans: Sequence[AnswerSpan],
    *,
    rule: Callable[[Sequence[str], str], float] = squad_f1,
) -> float:
    """Find the threshold of `AnswerSpan.answer` with the highest score, on a development set.

    Args:
        answers: the right answers to each question; none where there is no answer.
        spans: found for the same questions.
        rule: the score of one answer.
    """
    margins = np.array([span.no_answer_score - span.score for span in spans])
    order = np.argsort(margins, kind="stable")
    gains = [rule(answers[i], spans[i].text) - rule(answers[i], "") for i in order.tolist()]
    return _best_cut(margins[order], np.cumsum(np.array([0.0, *gains])))


def _best_cut(margins: Float[np.ndarray, " N"], totals: Float[np.ndarray, " M"]) -> float:
    """The margin up to which answering pays most; equal margins are answered together."""
    if not len(margins):
        return 0.0
    ends: Int[np.ndarray, " E"] = np.flatnonzero(np.append(margins[1:] > margins[:-1], True))
    best = ends[totals[ends + 1].argmax()]
    if totals[0] >= totals[best + 1]:
        return float(margins[0] - 1.0)
    return float(margins[best])
