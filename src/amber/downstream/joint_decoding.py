"""From the beam of the official code's head for questions to answers."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from amber.model.joint_answers import Spans
from amber.tasks.decoding import AnswerSpan
from amber.tasks.example import QAExample
from amber.tasks.questions import QuestionWindow


class WindowAnswer(NamedTuple):
    """The best answer in one window."""

    start: int
    """First token; -1 when the beam holds no answer that may be given."""

    end: int
    log_chance: float
    no_answer: float
    """Positive: this window has no answer."""


def best_in_window(
    spans: Spans, is_context: Bool[Tensor, "B T"], *, max_answer: int
) -> list[WindowAnswer]:
    """Take the likeliest pair of each window that is a part of the context and not too long."""
    lengths = spans.end - spans.start + 1
    is_inside = is_context.gather(1, spans.start) & is_context.gather(1, spans.end)
    is_good = is_inside & (lengths >= 1) & (lengths <= max_answer)  # (B, N)
    first = is_good.int().argmax(dim=1, keepdim=True)  # the pairs come best first
    rows = torch.cat(
        [
            torch.where(is_good.any(dim=1, keepdim=True), spans.start.gather(1, first), -1),
            spans.end.gather(1, first),
        ],
        dim=1,
    ).tolist()
    chances = spans.log_chance.gather(1, first).squeeze(1).tolist()
    return [
        WindowAnswer(start, end, chance, no_answer)
        for (start, end), chance, no_answer in zip(
            rows, chances, spans.no_answer.tolist(), strict=True
        )
    ]


def join_windows(
    examples: Sequence[QAExample],
    windows: Sequence[QuestionWindow],
    answers: Sequence[WindowAnswer],
) -> list[AnswerSpan]:
    """Take the likeliest answer over the windows of each context.

    "No answer" is ahead of it by the lowest score for having no answer among the windows, as in
    the official code.
    """
    best: dict[int, tuple[float, int, int]] = {}
    silent: dict[int, float] = {}
    for window, answer in zip(windows, answers, strict=True):
        index = window.example
        silent[index] = min(silent.get(index, float("inf")), answer.no_answer)
        is_better = index not in best or answer.log_chance > best[index][0]
        if answer.start >= 0 and is_better:
            start, stop = window.offsets[answer.start, 0], window.offsets[answer.end, 1]
            best[index] = answer.log_chance, int(start), int(stop)
    found: list[AnswerSpan] = []
    for index, example in enumerate(examples):
        score, start, stop = best.get(index, (0.0, 0, 0))
        found.append(
            AnswerSpan(
                text=example.context[start:stop],
                start=start,
                score=score,
                no_answer_score=score + silent[index],
            )
        )
    return found
