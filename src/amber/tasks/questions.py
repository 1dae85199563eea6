"""Questions and their contexts as windows of token ids, with the answer's place in each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from tokenizers import Tokenizer

from amber.tasks.example import QAExample
from amber.tasks.pieces import Frame, Pieces, PlainTokenizer
from amber.tasks.windows import IGNORED, check_window, windows

NO_ANSWER = 0  # [CLS] stands for "no answer in this window"
OUTSIDE = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionWindow:
    """A question and a part of its context, without padding."""

    example: int
    """Index of the question."""
    input_ids: Int[np.ndarray, " T"]
    token_type_ids: Int[np.ndarray, " T"]
    offsets: Int[np.ndarray, "T 2"]
    """Start and end of each token in the context, in characters; `OUTSIDE` for tokens that are not
    of the context."""
    start_label: int
    """First token of the answer; `NO_ANSWER` when this window does not hold it all, `IGNORED`
    without a label."""
    end_label: int
    """Last token of the answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionEncoding:
    """Questions as windows, in order, and what happened to their answers."""

    windows: tuple[QuestionWindow, ...]
    num_split: int = 0
    """Questions whose context is longer than one window."""
    num_cut: int = 0
    """Windows that hold a part of the answer only: labelled "no answer"."""
    num_lost: int = 0
    """Questions whose answer no window holds in full."""
    num_inexact: int = 0
    """Questions whose answer begins or ends inside a piece: the piece is the label."""
    num_long_questions: int = 0
    """Questions cut to `max_question` tokens."""
    num_empty: int = 0
    """Questions whose context has no piece."""


def encode_questions(
    examples: Sequence[QAExample],
    tokenizer: Tokenizer,
    *,
    max_length: int = 384,
    stride: int = 128,
    max_question: int = 64,
) -> QuestionEncoding:
    """Encode each question with every window of its context.

    Args:
        examples: of several answers the first is the label.
        tokenizer: as `load_tokenizer` gives it.
        max_length: tokens of a window, question and special tokens included.
        stride: tokens of the context from the start of a window to that of the next.
        max_question: tokens of the question that are read.

    Raises:
        UserError: the settings leave parts of a context out.
    """
    plain = PlainTokenizer(tokenizer)
    frame = plain.frame
    room = max_length - frame.num_special_pair
    reason = f"special tokens and a question of {max_question} (lower max_question)"
    check_window(room - max_question, stride, max_length=max_length, reason=reason)
    contexts = list(dict.fromkeys(example.context for example in examples))
    pieces_of = dict(zip(contexts, plain.pieces(contexts), strict=True))
    questions = plain.ids([example.question for example in examples])
    found: list[QuestionWindow] = []
    counts: Counter[str] = Counter()
    for index, (example, question) in enumerate(zip(examples, questions, strict=True)):
        pieces = pieces_of[example.context]
        counts["num_long_questions"] += len(question) > max_question
        question = question[:max_question]
        spans = windows(len(pieces), capacity=room - len(question), stride=stride)
        answer = _answer_pieces(example, pieces)
        found += [
            _window(index, question, pieces, span, frame, answer, is_labelled=example.is_labelled)
            for span in spans
        ]
        counts["num_split"] += len(spans) > 1
        counts["num_empty"] += len(pieces) == 0
        if example.is_labelled and example.answers:
            is_whole = [_holds(span, answer) for span in spans]
            is_touched = [_touches(span, answer) for span in spans]
            counts["num_cut"] += sum(is_touched) - sum(is_whole)
            counts["num_lost"] += not any(is_whole)
            counts["num_inexact"] += not _is_exact(example, pieces, answer)
    return QuestionEncoding(windows=tuple(found), **counts)


def _window(
    index: int,
    question: Int[np.ndarray, " Q"],
    pieces: Pieces,
    span: tuple[int, int],
    frame: Frame,
    answer: tuple[int, int] | None,
    *,
    is_labelled: bool,
) -> QuestionWindow:
    start, stop = span
    tokens = frame.around_pair(question, pieces.ids[start:stop])
    shift = frame.pair[0].shape[1] + len(question) + frame.pair[1].shape[1]
    offsets = np.full((tokens.shape[1], 2), OUTSIDE)
    offsets[shift : shift + stop - start] = pieces.offsets[start:stop]
    label = (NO_ANSWER, NO_ANSWER) if is_labelled else (IGNORED, IGNORED)
    if answer is not None and _holds(span, answer):
        label = (answer[0] - start + shift, answer[1] - start + shift)
    return QuestionWindow(
        example=index,
        input_ids=tokens[0],
        token_type_ids=tokens[1],
        offsets=offsets,
        start_label=label[0],
        end_label=label[1],
    )


def _holds(span: tuple[int, int], answer: tuple[int, int] | None) -> bool:
    return answer is not None and span[0] <= answer[0] and answer[1] < span[1]


def _touches(span: tuple[int, int], answer: tuple[int, int] | None) -> bool:
    return answer is not None and answer[0] < span[1] and span[0] <= answer[1]


def _answer_characters(example: QAExample) -> tuple[int, int]:
    """Start and end of the first answer, without blanks at its ends."""
    answer = example.answers[0]
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    return start, start + len(answer.text.strip())


def _answer_pieces(example: QAExample, pieces: Pieces) -> tuple[int, int] | None:
    """First and last piece of the first answer; None when it has no piece."""
    if not example.is_labelled or not example.answers:
        return None
    start, stop = _answer_characters(example)
    inside = (pieces.offsets[:, 1] > start) & (pieces.offsets[:, 0] < stop)
    places = np.flatnonzero(inside)
    return (int(places[0]), int(places[-1])) if len(places) else None


def _is_exact(example: QAExample, pieces: Pieces, answer: tuple[int, int] | None) -> bool:
    if answer is None:
        return True
    covered = (int(pieces.offsets[answer[0], 0]), int(pieces.offsets[answer[1], 1]))
    return covered == _answer_characters(example)
