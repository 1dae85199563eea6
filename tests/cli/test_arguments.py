from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from amber.cli.arguments import list_settings, parse_words
from amber.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    learning_rate: float = 0.1
    num_steps: int = 5
    kind: Literal["small", "large"] = "small"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    text: tuple[str, ...]
    out: Path
    is_strict: bool = False
    lowercase: bool | None = None
    size: int | None = None
    inner: Inner = field(default_factory=Inner)


def parse(line):
    return parse_words(line.split(), list_settings(Outer), positional=("text",))


def test_flags_become_the_dictionary_that_a_toml_file_would_give():
    assert parse("a.txt --out d --inner.learning-rate 5e-4 b.txt --inner.kind large") == {
        "text": ["a.txt", "b.txt"],
        "out": Path("d"),
        "inner": {"learning_rate": 5e-4, "kind": "large"},
    }


def test_what_is_not_given_is_not_there():
    assert parse("") == {}


@pytest.mark.parametrize("flag", ["--inner.num-steps", "--inner.num_steps"])
def test_hyphens_and_underscores_are_the_same(flag):
    assert parse(f"{flag} 3") == parse(f"{flag}=3") == {"inner": {"num_steps": 3}}


def test_an_underscore_in_a_value_stays():
    assert parse("--out=a_b") == {"out": Path("a_b")}


@pytest.mark.parametrize(
    ("word", "value"), [("1e4", 10_000), ("1_000_000", 1_000_000), ("2.0", 2), ("-3", -3)]
)
def test_whole_numbers_may_be_written_as_people_do(word, value):
    got = parse(f"--size {word}")["size"]
    assert got == value
    assert type(got) is int


@pytest.mark.parametrize("word", ["1.5", "five", "nan", "inf", ""])
def test_other_words_are_no_whole_number(word):
    with pytest.raises(UserError, match="^--size: "):
        parse_words(["--size", word], list_settings(Outer))


@pytest.mark.parametrize("word", ["nan", "inf", "0.1.2"])
def test_a_number_is_finite(word):
    with pytest.raises(UserError, match=f"^--inner.learning-rate: '{word}' is not a number"):
        parse(f"--inner.learning-rate {word}")


@pytest.mark.parametrize(
    ("words", "value"),
    [("", True), ("yes", True), ("on", True), ("True", True), ("False", False), ("no", False)],
)
def test_a_boolean_is_a_flag_or_has_a_word(words, value):
    assert parse(f"--is-strict {words}") == {"is_strict": value}
    assert parse(f"--lowercase {words}") == {"lowercase": value}


def test_a_boolean_flag_leaves_the_next_file_alone():
    assert parse("--is-strict a.txt") == {"is_strict": True, "text": ["a.txt"]}


def test_another_word_is_no_boolean():
    with pytest.raises(UserError, match="'maybe' is not yes or no"):
        parse("--is-strict=maybe")


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--inner.learning-rat", "did you mean '--inner.learning-rate'?"),
        ("--learning-rate", "did you mean --inner.learning-rate?"),
        ("--inner-kind", "did you mean '--inner.kind'?"),
        ("--inner.kin", "did you mean '--inner.kind'?"),
        ("--zzz", "--help lists them"),
    ],
)
def test_an_unknown_flag_is_an_error_with_the_nearest_one(flag, hint):
    with pytest.raises(UserError) as caught:
        parse(f"{flag} 1")
    assert str(caught.value).startswith(f"there is no flag {flag}")
    assert str(caught.value).endswith(hint)


def test_a_flag_without_its_value_is_an_error():
    with pytest.raises(UserError, match="^--size: "):
        parse("--size --is-strict")


def test_a_choice_names_its_options():
    with pytest.raises(UserError, match="there is no 'smal'; did you mean 'small'?"):
        parse("--inner.kind smal")
    with pytest.raises(UserError, match="there is no 'zzz'; there are small, large$"):
        parse("--inner.kind zzz")


def test_an_abbreviated_flag_is_unknown():
    with pytest.raises(UserError, match="did you mean '--lowercase'"):
        parse("--lowerca")
