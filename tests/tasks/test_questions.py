import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from amber.errors import UserError
from amber.tasks.decoding import decode_answers
from amber.tasks.example import Answer, QAExample
from amber.tasks.questions import NO_ANSWER, OUTSIDE, encode_questions
from amber.tasks.windows import IGNORED
from amber.tokens.tokenizer import add_template, wordpiece
from amber.tokens.train import train_tokenizer
from amber.tokens.vocabulary import SPECIAL_TOKENS

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tiny(*words, strip_accents=True):
    tokenizer = wordpiece(
        [*SPECIAL_TOKENS, *LETTERS, *words], lowercase=True, strip_accents=strip_accents
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    return tokenizer


def ask(context, answer="", *, question="q", start=None):
    place = context.index(answer) if start is None else start
    answers = (Answer(text=answer, start=place),) if answer else ()
    return QAExample(id="0", question=question, context=context, answers=answers)


def certain(encoding):
    """Scores that point at the labels."""
    starts, ends = [], []
    for window in encoding.windows:
        for scores, label in ((starts, window.start_label), (ends, window.end_label)):
            scores.append(np.eye(len(window.input_ids), dtype=np.float32)[label] * 5)
    return starts, ends


def round_trip(example, tokenizer, **settings):
    """What is decoded when the model says exactly what it was taught."""
    encoding = encode_questions([example], tokenizer, **settings)
    span = decode_answers([example], encoding.windows, *certain(encoding))[0]
    assert example.context[span.start : span.start + len(span.text)] == span.text
    return span.answer(threshold=0.0)


def test_a_short_context_is_one_window():
    found = encode_questions([ask("a b c", "b c")], tiny())
    window = found.windows[0]
    assert len(found.windows) == 1
    assert window.input_ids.tolist() == [2, 21, 3, 5, 6, 7, 3]
    assert window.token_type_ids.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert (window.start_label, window.end_label) == (4, 5)
    assert window.offsets.tolist() == [
        *[[OUTSIDE, OUTSIDE]] * 3,
        [0, 1],
        [2, 3],
        [4, 5],
        [OUTSIDE, OUTSIDE],
    ]


def test_a_window_with_a_part_of_the_answer_is_labelled_no_answer_and_counted():
    context = " ".join(LETTERS[:8])
    # 4 pieces fit beside [CLS] q [SEP] and [SEP]: a-d, c-f, e-h; the answer is d e
    found = encode_questions([ask(context, "d e")], tiny(), max_length=8, stride=2, max_question=1)
    labels = [(w.start_label, w.end_label) for w in found.windows]
    assert labels == [(NO_ANSWER, NO_ANSWER), (4, 5), (NO_ANSWER, NO_ANSWER)]
    assert (found.num_split, found.num_cut, found.num_lost) == (1, 2, 0)
    # a b is whole in the first window, and the others hold nothing of it
    found = encode_questions([ask(context, "a b")], tiny(), max_length=8, stride=2, max_question=1)
    assert (found.num_split, found.num_cut, found.num_lost) == (1, 0, 0)


def test_an_answer_that_fits_no_window_is_counted():
    context = " ".join(LETTERS[:8])
    found = encode_questions(
        [ask(context, "b c d e f")], tiny(), max_length=8, stride=2, max_question=1
    )
    assert {(w.start_label, w.end_label) for w in found.windows} == {(NO_ANSWER, NO_ANSWER)}
    assert (found.num_cut, found.num_lost) == (3, 1)


def test_windows_equal_those_of_transformers():
    tokenizer = tiny("##b", "abc")
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tiny("##b", "abc"),
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
    )
    rng = np.random.default_rng(0)
    words = ["a", "ab", "abc", "\u4e2d", "\U0001f600", "caf\u00e9", "x,"]
    context = " ".join(words[i] for i in rng.integers(len(words), size=60))
    question = "a b c"
    max_length, stride = 20, 5
    room = max_length - 3 - 3
    expected = theirs(
        question,
        context,
        truncation="only_second",
        max_length=max_length,
        stride=room - stride,  # theirs is the overlap
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    found = encode_questions(
        [ask(context, question=question)],
        tokenizer,
        max_length=max_length,
        stride=stride,
        max_question=3,
    ).windows
    assert [w.input_ids.tolist() for w in found] == expected["input_ids"]
    assert [w.token_type_ids.tolist() for w in found] == expected["token_type_ids"]
    for number, window in enumerate(found):
        is_context = [s == 1 for s in expected.sequence_ids(number)]
        offsets = np.array(expected["offset_mapping"][number])[is_context]
        assert window.offsets[window.offsets[:, 0] != OUTSIDE].tolist() == offsets.tolist()


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("a caf\u00e9 b", "caf\u00e9"),
        ("a cafe\u0301 b", "cafe\u0301"),  # the accent is a character of its own
        ("a\u202fb\u00a0c d", "b\u00a0c"),
        ("a\u3000\uff22\uff22 c", "\uff22\uff22"),  # full-width
        ("a \ufb01n b", "\ufb01n"),  # one character, two letters
        ("a \U0001f468\u200d\U0001f469 b", "\U0001f468\u200d\U0001f469"),
        ("a\u200bb c", "c"),
        (
            "\u8303\u5ef7\u9882\u751f\u4e8e1919\u5e746\u670815\u65e5\u3002",
            "1919\u5e746\u670815\u65e5",
        ),
        ("\u7bc4\u5ef7\u980c\uff0c\u8d8a\u5357", "\u8d8a\u5357"),  # traditional
        ("[SEP] a b", "a"),
    ],
)
@pytest.mark.parametrize("kind", ["bert", "unigram", "bpe"])
def test_answers_come_back_as_they_stand_in_the_context(context, answer, kind):
    if kind == "bert":
        tokenizer = tiny("1919", "6", "15", *(c for c in dict.fromkeys(context) if ord(c) > 0x3000))
    else:
        words = [context.lower(), answer, *context]
        tokenizer = train_tokenizer(words * 3, kind=kind, vocab_size=300, unicode_form="NFKC")
    found = round_trip(ask(context, answer), tokenizer)
    if kind == "bert":
        assert found == answer
    else:  # pieces may hold more than the answer, never less
        assert answer in found


def test_blanks_around_an_answer_are_not_part_of_it():
    example = ask("in 1998 b", " 1998 ")
    assert round_trip(example, tiny("in", "1998")) == "1998"
    assert encode_questions([example], tiny("in", "1998")).num_inexact == 0


def test_an_answer_inside_a_piece_is_counted():
    found = encode_questions([ask("abc d", "bc")], tiny("abc"))
    assert (found.windows[0].start_label, found.windows[0].end_label) == (3, 3)
    assert found.num_inexact == 1
    assert encode_questions([ask("abc d", "abc")], tiny("abc")).num_inexact == 0


def test_of_several_answers_the_first_is_the_label():
    answers = (Answer(text="b", start=2), Answer(text="a", start=0))
    example = QAExample(id="0", question="q", context="a b", answers=answers)
    assert encode_questions([example], tiny()).windows[0].start_label == 4


def test_questions_without_an_answer_and_without_a_label_differ():
    unlabelled = QAExample(id="0", question="q", context="a b", is_labelled=False)
    found = encode_questions([ask("a b"), unlabelled], tiny())
    assert [w.start_label for w in found.windows] == [NO_ANSWER, IGNORED]
    assert [w.end_label for w in found.windows] == [NO_ANSWER, IGNORED]
    assert [w.example for w in found.windows] == [0, 1]
    assert found.num_lost == 0


def test_a_long_question_is_cut_and_counted():
    example = ask("a b", "b", question=" ".join("q" * 70))
    found = encode_questions([example], tiny())
    assert found.num_long_questions == 1
    assert found.windows[0].input_ids.tolist() == [2, *[21] * 64, 3, 5, 6, 3]
    assert round_trip(example, tiny()) == "b"


def test_an_empty_context_has_an_empty_answer():
    example = ask("")
    found = encode_questions([example], tiny())
    assert found.num_empty == 1
    assert found.windows[0].input_ids.tolist() == [2, 21, 3, 3]
    span = decode_answers([example], found.windows, *certain(found))[0]
    assert (span.text, span.answer()) == ("", "")


def test_an_answer_of_which_no_piece_is_left_is_lost():
    found = encode_questions([ask("a \u200b b", "\u200b")], tiny())
    assert (found.num_lost, found.num_inexact, found.windows[0].start_label) == (1, 0, NO_ANSWER)


def test_settings_that_leave_gaps_are_refused():
    with pytest.raises(UserError, match="stride is 128, .* set it from 1 to 61"):
        encode_questions([ask("a b")], tiny(), max_length=128)
    with pytest.raises(UserError, match="length is 64, which leaves no room"):
        encode_questions([ask("a b")], tiny(), max_length=64, stride=1)
