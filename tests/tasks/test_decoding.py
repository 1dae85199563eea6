import numpy as np
import pytest

from amber.tasks.answers import squad_exact_match
from amber.tasks.decoding import (
    AnswerSpan,
    best_threshold,
    decode_answers,
    decode_label_sets,
    decode_labels,
)
from amber.tasks.example import QAExample
from amber.tasks.questions import OUTSIDE, QuestionWindow

CONTEXT = "aa bb cc dd"
LABELS = ("x", "y", "z")


def window(example=0, first=0, count=4):
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


def example(context=CONTEXT):
    return QAExample(id="0", question="q", context=context)


def scores(*values):
    return np.array(values, dtype=np.float32)


def test_the_label_is_the_most_probable_one():
    found = decode_labels(np.log(np.array([[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]])), LABELS)
    assert [p.label for p in found] == ["y", "x"]
    assert [p.probability for p in found] == pytest.approx([0.7, 0.5])


def test_large_scores_do_not_overflow():
    found = decode_labels(np.array([[1e5, -1e5, 0.0]], dtype=np.float32), LABELS)
    assert (found[0].label, found[0].probability) == ("x", 1.0)
    assert decode_label_sets(np.array([[1e5, -1e5, 1e5]]), LABELS)[0][1].probability == 1.0


def test_a_set_holds_every_label_above_one_half():
    found = decode_label_sets(np.array([[0.1, -0.1, 2.0], [-1.0, -1.0, 0.0]]), LABELS)
    assert [[p.label for p in group] for group in found] == [["x", "z"], []]
    assert found[0][1].probability == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_the_answer_has_the_highest_sum_of_start_and_end():
    start = scores(9, 9, 9, 1, 5, 2, 0, 9)  # words: aa 1, bb 5, cc 2, dd 0
    end = scores(1, 9, 9, 6, 0, 4, 3, 9)  # aa 6, bb 0, cc 4, dd 3
    span = decode_answers([example()], [window()], [start], [end])[0]
    # aa-aa 7, bb-cc 9 and bb-dd 8; bb-aa would be 11 but ends before it begins
    assert (span.text, span.start, span.score, span.no_answer_score) == ("bb cc", 3, 9.0, 10.0)


def test_an_answer_is_no_longer_than_allowed():
    start = scores(0, 0, 0, 5, 0, 0, 0, 0)
    end = scores(0, 0, 0, 1, 2, 0, 5, 0)
    for longest, text in ((4, CONTEXT), (3, "aa bb"), (1, "aa")):
        span = decode_answers([example()], [window()], [start], [end], max_answer=longest)[0]
        assert span.text == text


def test_when_the_best_starts_and_ends_do_not_fit_all_are_tried():
    start = scores(0, 0, 0, 1, 2, 3, 9, 0)
    end = scores(0, 0, 0, 9, 1, 0, -5, 0)
    span = decode_answers([example()], [window()], [start], [end], num_best=1)[0]
    assert span.text == "aa"  # 1 + 9


def test_few_starts_and_ends_are_enough_to_find_the_best():
    rng = np.random.default_rng(0)
    words = window(count=40)
    context = example("aa " * 40)
    for _ in range(20):
        start, end = rng.normal(size=(2, len(words.input_ids))).astype(np.float32)
        spans = [
            decode_answers([context], [words], [start], [end], num_best=n)[0] for n in (20, 40)
        ]
        assert spans[0] == spans[1]


def test_the_best_window_wins_and_the_lowest_no_answer_counts():
    windows = [window(first=0, count=2), window(first=2, count=2)]
    tokens = [scores(3, 0, 0, 1, 0, 0), scores(1, 0, 0, 0, 2, 0)]
    for order in ([0, 1], [1, 0]):
        some = [tokens[n] for n in order]
        span = decode_answers([example()], [windows[n] for n in order], some, some)[0]
        assert (span.text, span.score, span.no_answer_score) == ("dd", 4.0, 2.0)


def test_padding_is_not_looked_at():
    start = scores(0, 0, 0, 1, 0, 0, 0, 0, 99, 99)
    end = scores(0, 0, 0, 1, 0, 0, 0, 0, 99, 99)
    assert decode_answers([example()], [window()], [start], [end])[0].text == "aa"


def test_windows_may_come_in_any_order():
    examples = [example("aa bb"), example("cc dd")]
    windows = [window(1, 0, 2), window(0, 0, 2)]
    one = scores(0, 0, 0, 0, 5, 0)
    found = decode_answers(examples, windows, [one, one], [one, one])
    assert [span.text for span in found] == ["bb", "dd"]


def span(text, margin):
    return AnswerSpan(text=text, start=0, score=0.0, no_answer_score=margin)


def test_silence_wins_only_above_the_threshold():
    assert span("aa", 1.0).answer(threshold=0.5) == ""
    assert span("aa", 1.0).answer(threshold=1.0) == "aa"
    assert span("aa", 99.0).answer() == "aa"


def test_the_best_threshold_gives_the_highest_score():
    rng = np.random.default_rng(0)
    spans = [span("cat", float(m)) for m in rng.integers(-5, 5, size=40)]
    answers = [("cat",) if rng.random() < 0.6 - s.no_answer_score / 10 else () for s in spans]

    def total(threshold):
        return sum(
            squad_exact_match(a, s.answer(threshold=threshold))
            for a, s in zip(answers, spans, strict=True)
        )

    found = best_threshold(answers, spans, rule=squad_exact_match)
    assert total(found) == max(total(float(threshold)) for threshold in range(-7, 7))


def test_the_threshold_is_below_all_when_silence_is_best():
    spans = [span("cat", 1.0), span("cat", 2.0)]
    assert best_threshold([(), ()], spans) < 1.0
    assert best_threshold([("cat",), ("cat",)], spans) == 2.0
    assert best_threshold([], []) == 0.0
