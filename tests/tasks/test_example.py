from dataclasses import replace

import pytest

from amber.tasks.example import Answer, QAExample, TaggedExample, TextExample, place_of

TEXT = TextExample(id="0", text="a", label="x")
PAIR = replace(TEXT, pair="b")
TAGGED = TaggedExample(id="0", text="a", spans=((0, 1),), tags=("O",))
QUESTION = QAExample(id="0", question="q", context="a", answers=(Answer(text="a", start=0),))


def test_the_place_of_an_example_is_the_hash_of_its_text():
    # BLAKE2b of 8 bytes, over 2^64: of "a\n", "a\nb", "a" and "a"
    assert place_of(TEXT) == pytest.approx(0.7301517193893421, abs=1e-15)
    assert place_of(PAIR) == pytest.approx(0.65402090242913, abs=1e-15)
    assert place_of(TAGGED) == pytest.approx(0.25379361057584854, abs=1e-15)
    assert place_of(QUESTION) == pytest.approx(0.25379361057584854, abs=1e-15)
    assert place_of(replace(TEXT, text="\ud800")) == pytest.approx(0.09594693346177333, abs=1e-15)


def test_nothing_but_the_text_decides_the_place():
    assert place_of(replace(PAIR, id="1", label=None)) == place_of(PAIR)
    assert place_of(replace(TAGGED, id="1", spans=(), tags=None)) == place_of(TAGGED)
    other = replace(QUESTION, id="1", question="p", answers=(), is_labelled=False)
    assert place_of(other) == place_of(QUESTION)
