import pytest

from amber.tasks.example import TaggedExample
from amber.tasks.plain_words import (
    is_by_character,
    looks_like_columns,
    plain_sentences,
    word_spans,
)
from amber.tasks.tagged import joiner_of


def words(text: str, *, by_character: bool = False) -> list[str]:
    return [text[start:end] for start, end in word_spans(text, by_character=by_character)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna lives in York.", ["Anna", "lives", "in", "York", "."]),
        (
            '  "Well," he said.\u3000(Yes!)',
            ['"', "Well", ",", '"', "he", "said", ".", *"(", "Yes", *"!)"],
        ),
        ("don't state-of-the-art 3.5 U.S.", ["don't", "state-of-the-art", "3.5", "U.S", "."]),
        ("@anna #tag :)", ["@anna", "#tag", ":", ")"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_words_end_at_blanks_and_punctuation_around_them_is_apart(text: str, expected: list[str]):
    assert words(text) == expected


def test_characters_are_words_where_they_were_in_the_training():
    assert words("a \u4e00b", by_character=True) == ["a", "\u4e00", "b"]
    assert is_by_character("abc", "")
    assert not is_by_character("\u4e00\u4e8c", " ")
    assert is_by_character("\u4e00\u4e8c a", None)
    assert not is_by_character("\u4e00 abc", None)


def test_every_text_is_a_sentence_without_tags():
    first, second = plain_sentences(["one two", ""], joiner=" ")
    assert (first.id, first.text, first.spans, first.tags) == (
        "0",
        "one two",
        ((0, 3), (4, 7)),
        None,
    )
    assert (second.id, second.spans) == ("1", ())


@pytest.mark.parametrize(
    ("lines", "is_columns"),
    [
        (["EU B-ORG", "rejects O", "", "Anna B-PER"], True),
        (["EU NNP B-NP B-ORG"] * 9 + ["broken"], True),
        (["EU B-ORG"] * 9 + ["rejects o"], True),
        (["one", "two", "", "three"], True),
        (["Anna lives in York ."], False),
        (["Anna lives .", "He is here .", "It was good today ."], False),
        (["", ""], False),
    ],
)
def test_columns_are_told_from_sentences(lines: list[str], is_columns: bool):
    assert looks_like_columns(lines, joiner=" ") == is_columns


def test_a_line_of_several_characters_is_a_sentence_where_characters_are_words():
    sentences, characters = (
        ["\u4e00\u4e8c\u4e09", "\u4e00\u4e8c"],
        ["\u4e00", "\u4e8c", "", "\u4e09"],
    )
    for joiner in ("", None):
        assert not looks_like_columns(sentences, joiner=joiner)
        assert looks_like_columns(characters, joiner=joiner)
    assert looks_like_columns(sentences, joiner=" ")


@pytest.mark.parametrize(
    ("text", "spans", "joiner"),
    [
        ("a bc", ((0, 1), (2, 3), (3, 4)), ""),  # characters, whatever blanks the text has
        ("ab c d", ((0, 2), (3, 4), (5, 6)), " "),
        ("ab c,d", ((0, 2), (3, 4), (4, 5)), None),  # blanks here, none there
        ("ab", ((0, 2),), None),
    ],
)
def test_how_words_are_joined_is_read_off_the_texts(text: str, spans, joiner: str | None):
    example = TaggedExample(id="0", text=text, spans=spans, tags=None)
    assert joiner_of([example]) == joiner
