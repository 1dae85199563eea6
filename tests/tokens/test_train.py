import json
import math
import os
import subprocess
import sys
import unicodedata

import pytest

from amber.errors import UserError
from amber.tokens.train import train_tokenizer
from amber.tokens.unknown import script_of, unk_by_script, unk_fraction
from amber.tokens.vocabulary import SPECIAL_TOKENS

HAN = "".join(chr(0x4E00 + n) for n in range(300))
LINES = [
    "the quick brown fox jumps over the lazy dog, the end",
    "caf\u00e9 stra\u00dfe \u03bb\u03cc\u03b3\u03bf\u03c2 \u0130stanbul",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0928\u092e\u0938\u094d\u0924\u0947",
    "\U0001f600 hello \U0001f468\u200d\U0001f469\u200d\U0001f467",
]
SCRIPT = """
import sys
from amber.tokens.tokenizer import fingerprint
from amber.tokens.train import train_tokenizer
words = [a + b + c for a in "abcdef" for b in "ghijkl" for c in "mnopqr"]
texts = [" ".join(words[n::7]) for n in range(7)] * 2
for kind in ("wordpiece", "bpe", "unigram"):
    size = 300 if kind == "bpe" else 120
    print(fingerprint(train_tokenizer(texts, kind=kind, vocab_size=size)))
"""


def test_training_is_repeatable_in_new_processes_and_with_other_threads():
    found = set()
    for threads in ("1", "1", "2", "4"):  # many ties: every word occurs equally often
        environment = {**os.environ, "RAYON_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_the_special_tokens_come_first_and_a_text_comes_back(kind):
    tokenizer = train_tokenizer(LINES * 5, kind=kind, vocab_size=700, lowercase=False)
    assert [tokenizer.id_to_token(n) for n in range(5)] == list(SPECIAL_TOKENS)
    for line in LINES:
        encoding = tokenizer.encode(line)
        assert encoding.ids[0] == 2
        assert encoding.ids[-1] == 3
        assert 1 not in encoding.ids
        expected = line if kind != "wordpiece" else line.replace("\u200d", "")  # BERT's cleaning
        decoded = tokenizer.decode(encoding.ids).strip()
        assert unicodedata.normalize("NFC", decoded).split() == expected.split() or (
            decoded.replace(" ", "") == expected.replace(" ", "")
        )


def test_case_and_accents_are_separate_settings():
    text = ["\u00c9cole \u00e9cole \u0926\u0941"] * 5
    for lowercase in (True, False):
        for strip in (True, False):
            tokenizer = train_tokenizer(
                text, vocab_size=60, lowercase=lowercase, strip_accents=strip
            )
            folded = tokenizer.normalizer.normalize_str("\u00c9 \u0926\u0941")
            letter = {(True, True): "e", (True, False): "\u00e9", (False, True): "E"}.get(
                (lowercase, strip), "\u00c9"
            )
            assert folded == f"{letter} \u0926" + ("" if strip else "\u0941")


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_a_vocabulary_below_its_alphabet_is_refused_with_both_numbers(kind):
    with pytest.raises(UserError, match=r"vocab_size is 50, .*300 characters, 30[56] tokens"):
        train_tokenizer([HAN], kind=kind, vocab_size=50)
    assert len(train_tokenizer([HAN], vocab_size=305).get_vocab()) == 305


def test_byte_level_pieces_need_a_vocabulary_for_all_bytes():
    with pytest.raises(UserError, match="vocab_size is 200, .*261 tokens"):
        train_tokenizer(["abc"], kind="bpe", vocab_size=200)


def test_the_scores_of_unigram_pieces_are_logarithms_of_probabilities_that_sum_to_1():
    tokenizer = train_tokenizer(LINES * 5, kind="unigram", vocab_size=150)
    scores = [score for _, score in json.loads(tokenizer.to_str())["model"]["vocab"][5:]]
    assert sum(map(math.exp, scores)) == pytest.approx(1.0, abs=1e-4)  # rounded to six digits
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("texts", [[], ["", " "]])
def test_training_on_nothing_is_an_error(texts):
    with pytest.raises(UserError, match="no text to train"):
        train_tokenizer(texts, vocab_size=100)


def test_frequent_characters_are_known_and_only_rare_ones_are_not():
    text = [HAN * 10 + "\u9f9c"]  # 3,000 characters cover 99.97 %; the last occurs once
    tokenizer = train_tokenizer(text, vocab_size=400)
    assert 1 not in tokenizer.encode(HAN).ids
    assert tokenizer.token_to_id("\u9f9c") is None
    twice = train_tokenizer([*text, "\u9f9c"], vocab_size=400)
    assert twice.token_to_id("\u9f9c") is not None


def test_no_piece_is_learned_across_a_character_that_is_left_out():
    tokenizer = train_tokenizer(["ab ab ab a\u9f9cb xx"] * 1 + ["ab " * 3000], vocab_size=60)
    tokens = tokenizer.get_vocab()
    assert "ab" in tokens
    assert "\u9f9c" not in tokens


def test_unk_is_counted_by_script():
    tokenizer = train_tokenizer(["hello world 12, " * 10], vocab_size=60)
    table = unk_by_script(tokenizer, ["hello \u4e2d\u6587 \U0001f600 12,", "\u043f\u0440\u0438"])
    assert table["Han"] == {"tokens": 2, "unk": 2, "unk_fraction": 1.0}
    assert table["Cyrillic"]["unk"] == table["emoji/other"]["unk"] == 1
    assert table["Latin"]["unk"] == table["digit"]["unk"] == table["punctuation"]["unk"] == 0
    total = sum(row["tokens"] for row in table.values())
    assert unk_fraction(table) == 4 / total


def test_scripts_of_single_characters():
    names = [script_of(c) for c in "a\u00e9\uff21\u4e2d\u3042\ud55c\u0436\u0645\u0e01\u0928\u05d0"]
    expected = "Latin Latin Latin Han Kana Hangul Cyrillic Arabic Thai Devanagari Hebrew"
    assert names == expected.split()
    assert [script_of(c) for c in "1,$\U0001f600"] == [
        "digit",
        "punctuation",
        "punctuation",
        "emoji/other",
    ]
