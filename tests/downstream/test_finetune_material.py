"""A part of train as dev: which examples it gets, and that no text is on both sides."""

from dataclasses import replace

import pytest

from amber.downstream.material import answer_notes, with_dev
from amber.errors import UserError
from amber.tasks.example import Example, TextExample
from amber.tasks.named import find_task

COLA = find_task("cola")
# places by the hash: a 0.73, b 0.47, c 0.17, d 0.06, e 0.79, f 0.79
LETTERS = tuple(TextExample(id=str(n), text=text, label="1") for n, text in enumerate("abcdef"))


def divided(examples: tuple[Example, ...], fraction: float) -> dict[str, list[Example]]:
    found = with_dev(COLA, {"train": examples, "test": LETTERS[:1]}, fraction, files={})
    assert found["test"] == LETTERS[:1]
    return {split: list(found[split]) for split in ("train", "dev")}


@pytest.mark.parametrize(
    ("fraction", "dev"), [(0.06, "d"), (0.2, "cd"), (0.5, "bcd"), (0.75, "abcd")]
)
def test_dev_gets_the_texts_whose_hash_is_below_the_fraction(fraction: float, dev: str):
    found = divided(LETTERS, fraction)
    assert found["dev"] == [example for example in LETTERS if example.text in dev]
    assert found["train"] == [example for example in LETTERS if example.text not in dev]


def test_the_same_text_is_on_one_side_whatever_else_is_there():
    again = tuple(replace(example, id=f"again {example.id}", label="0") for example in LETTERS)
    found = divided((*again[::-1], *LETTERS[2:]), 0.5)
    assert {example.text for example in found["dev"]} == set("bcd")
    assert {example.text for example in found["train"]} == set("aef")
    assert [example.id for example in found["dev"]] == ["again 3", "again 2", "again 1", "2", "3"]


def test_a_part_for_dev_needs_a_train_file_alone_and_examples_on_both_sides():
    both = {"train": LETTERS, "dev": LETTERS}
    with pytest.raises(UserError, match=r"no effect with the dev file /x/dev\.tsv"):
        with_dev(COLA, both, 0.5, files={"dev": "/x/dev.tsv"})
    for fraction in (0.05, 0.8):
        with pytest.raises(UserError, match=f"dev_fraction {fraction} leaves no example of cola"):
            divided(LETTERS, fraction)


def test_chinese_answers_that_are_compared_word_by_word_are_noted():
    chinese, english = [("\u4e00\u4e5d\u4e00\u4e5d\u5e74",), ()], [("in 1919",)]
    [note] = answer_notes(find_task("squad1"), chinese)
    assert "--own.metrics cmrc_f1 cmrc_exact_match" in note
    assert not answer_notes(find_task("squad1"), english)
    assert not answer_notes(find_task("cmrc2018"), chinese)
    assert not answer_notes(find_task("stsb"), [0.5, 1.0])
