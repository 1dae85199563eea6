"""From the pairs of the official code's head to answers, with numbers worked out by hand."""

import numpy as np
import pytest
import torch

from amber.downstream.joint_decoding import WindowAnswer, best_in_window, join_windows
from amber.model.joint_answers import Spans
from amber.tasks.example import QAExample
from amber.tasks.questions import OUTSIDE, QuestionWindow

CONTEXT = "aa bb cc dd"
IS_CONTEXT = torch.tensor([[False, False, False, True, True, True, True, False]])


def spans(*pairs: tuple[int, int], no_answer: float = 0.25) -> Spans:
    """Pairs of start and end, the first with a log chance of -1, the next of -2."""
    chances = [-1.0 - number for number in range(len(pairs))]
    return Spans(
        start=torch.tensor([[start for start, _ in pairs]]),
        end=torch.tensor([[end for _, end in pairs]]),
        log_chance=torch.tensor([chances]),
        no_answer=torch.tensor([no_answer]),
    )


def window(example=0, first=0, count=4) -> QuestionWindow:
    """[CLS] q [SEP] and words of the context, [SEP]."""
    outside = [[OUTSIDE, OUTSIDE]]
    words = [[3 * n, 3 * n + 2] for n in range(first, first + count)]
    offsets = np.array([*outside * 3, *words, *outside])
    ids = np.arange(len(offsets))
    return QuestionWindow(
        example=example,
        input_ids=ids,
        token_type_ids=np.zeros_like(ids),
        offsets=offsets,
        start_label=0,
        end_label=0,
    )


def example() -> QAExample:
    return QAExample(id="0", question="q", context=CONTEXT)


@pytest.mark.parametrize(
    ("better", "why"),
    [
        ((5, 4), "ends before it begins"),
        ((0, 0), "[CLS] is no part of the context"),
        ((2, 4), "begins before the context"),
        ((6, 7), "ends after the context"),
        ((3, 6), "longer than three tokens"),
    ],
)
def test_a_pair_that_may_not_be_given_is_passed_over(better: tuple[int, int], why: str):
    found = best_in_window(spans(better, (3, 5), (4, 4)), IS_CONTEXT, max_answer=3)
    assert found == [WindowAnswer(3, 5, -2.0, 0.25)], why


def test_the_first_of_the_pairs_that_may_be_given_is_the_best():
    found = best_in_window(spans((4, 4), (3, 5)), IS_CONTEXT, max_answer=3)
    assert found == [WindowAnswer(4, 4, -1.0, 0.25)]


def test_a_window_may_hold_no_answer_that_may_be_given():
    (found,) = best_in_window(spans((0, 0), (5, 4), no_answer=-3.5), IS_CONTEXT, max_answer=3)
    assert found.start == -1
    assert found.no_answer == -3.5


def test_each_window_has_an_answer_of_its_own():
    one, two = spans((5, 4), (3, 3)), spans((4, 6), (3, 3), no_answer=2.0)
    both = Spans(
        **{name: torch.cat([getattr(one, name), getattr(two, name)]) for name in Spans.__slots__}
    )
    found = best_in_window(both, IS_CONTEXT.repeat(2, 1), max_answer=3)
    assert found == [WindowAnswer(3, 3, -2.0, 0.25), WindowAnswer(4, 6, -1.0, 2.0)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_best_window_wins_and_the_lowest_no_answer_counts(order: tuple[int, int]):
    windows = [window(first=0, count=2), window(first=2, count=2)]
    answers = [WindowAnswer(3, 4, -2.0, 0.25), WindowAnswer(4, 4, -0.5, 3.0)]
    (found,) = join_windows([example()], [windows[n] for n in order], [answers[n] for n in order])
    assert (found.text, found.start, found.score) == ("dd", 9, -0.5)
    assert found.no_answer_score == -0.25  # ahead by 0.25, of the first window
    assert found.answer(threshold=0.25) == "dd"
    assert found.answer(threshold=0.0) == ""


def test_a_window_without_answer_wins_never_but_its_no_answer_counts():
    windows = [window(first=0, count=2), window(first=2, count=2)]
    answers = [WindowAnswer(3, 4, -8.0, 0.25), WindowAnswer(-1, 0, 0.0, -1.5)]
    (found,) = join_windows([example()], windows, answers)
    assert (found.text, found.score, found.no_answer_score) == ("aa bb", -8.0, -9.5)


def test_a_question_without_any_answer_has_an_empty_one():
    answers = [WindowAnswer(-1, 0, -1e4, 0.75)]
    (found,) = join_windows([example()], [window()], answers)
    assert (found.text, found.start, found.score, found.no_answer_score) == ("", 0, 0.0, 0.75)


def test_windows_of_several_questions_may_come_in_any_order():
    windows = [window(1, 0, 2), window(0, 2, 2)]
    answers = [WindowAnswer(4, 4, -1.0, 0.5), WindowAnswer(3, 4, -4.0, 2.0)]
    found = join_windows([example(), example()], windows, answers)
    assert [(each.text, each.no_answer_score) for each in found] == [("cc dd", -2.0), ("bb", -0.5)]
