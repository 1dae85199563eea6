"""Words as people see them, from three kinds of tokenizer and from jieba."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from amber.errors import UserError
from amber.tokens.config import PrepareConfig
from amber.tokens.encode import Encoder
from amber.tokens.prepare import prepare
from amber.tokens.tokenizer import load_tokenizer
from amber.tokens.train import train_tokenizer
from amber.tokens.words import FoundWords, load_jieba

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = "hello, world! hellos (unbelievable) don't"
ENGLISH_WORDS = ["hello", ",", "world", "!", "hellos", "(", "unbelievable", ")"]
ENGLISH_WORDS += ["don", "'", "t"]
LEARNED = ["the unable world, he lost believers! (hell)", "worth, hello! (be)", "' d"] * 3
# the sentence, each word of jieba's between bars
CHINESE = (
    "\u4f7f\u7528|\u8bed\u8a00|\u6a21\u578b|BERT|2024|\u5e74|\u7684|\uff21|\u80a1|\uff0c|"
    "\u4e2d\u56fd\u4eba\u6c11\u94f6\u884c|\U0001f600|\u8bf4|\uff1a|\u201c|\u597d|\u201d|!"
)
needs_jieba = pytest.mark.skipif(find_spec("jieba") is None, reason="jieba is an extra")


def found(tokenizer: Tokenizer, text: str, words: str = "tokenizer") -> FoundWords:
    """The words of one text."""
    encoded = Encoder(tokenizer, words).encode([text])
    assert encoded.words is not None
    assert len(encoded.words.is_start) == len(encoded.ids)
    return encoded.words


def pieces(tokenizer: Tokenizer, text: str, words: str = "tokenizer") -> list[str]:
    """The text of each word, without blanks, by the characters of its tokens."""
    starts = np.flatnonzero(found(tokenizer, text, words).is_start).tolist()
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    stops = [*starts[1:], len(offsets)]
    return [
        text[offsets[a][0] : offsets[b - 1][1]].strip() for a, b in zip(starts, stops, strict=True)
    ]


def characters(text: str) -> Tokenizer:
    """A WordPiece tokenizer that knows the characters of a text and their continuations."""
    known = sorted(set(text.lower()) - {" "})
    tokens = [*SPECIALS, *known, *(f"##{c}" for c in known)]
    model = models.WordPiece({t: n for n, t in enumerate(tokens)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer()  # type: ignore
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore
    return tokenizer


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_all_pieces_of_a_word_are_together_and_punctuation_is_apart(kind):
    tokenizer = train_tokenizer(LEARNED, kind=kind, vocab_size=300 if kind == "bpe" else 60)
    assert pieces(tokenizer, ENGLISH) == ENGLISH_WORDS
    assert len(found(tokenizer, ENGLISH).is_start) > len(ENGLISH_WORDS) + 5  # words have pieces


def test_the_words_of_wordpiece_are_the_pieces_without_a_prefix():
    tokenizer = train_tokenizer(LEARNED, vocab_size=60)
    text = f"{ENGLISH} caf\u00e9 \u0130\u0301 stra\u00dfe x\u0301y \uff21\uff22\uff0c z"
    tokens = tokenizer.encode(text, add_special_tokens=False).tokens
    expected = [not token.startswith("##") for token in tokens]
    assert found(tokenizer, text).is_start.tolist() == expected


def test_a_sign_for_a_blank_belongs_to_what_follows_it():
    pieces = [(token, -5.0) for token in [*SPECIALS, "\u2581", "(", "a", "b", ")"]]
    tokenizer = Tokenizer(models.Unigram(pieces, 1, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # type: ignore
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    # _ ( a b ) _ a
    assert found(tokenizer, "(ab) a").is_start.tolist() == [1, 0, 1, 0, 1, 1, 0]


def test_a_byte_that_looks_like_punctuation_is_part_of_its_letter():
    tokenizer = train_tokenizer(["ab"] * 3, kind="bpe", vocab_size=262)  # a token a byte
    text = "x\u00e1y \u00bf"  # the second byte of the letter is written as a mark
    assert "\u00a1" in tokenizer.encode(text).tokens
    assert pieces(tokenizer, text) == ["x\u00e1y", "\u00bf"]


def test_a_word_that_was_added_to_the_vocabulary_is_one():
    tokenizer = train_tokenizer(LEARNED, vocab_size=60)
    tokenizer.add_tokens([AddedToken("NEWS")])
    assert pieces(tokenizer, "worldNEWSworld") == ["world", "NEWS", "world"]


def test_texts_do_not_share_words_and_empty_ones_have_none():
    tokenizer = train_tokenizer(LEARNED, vocab_size=60)
    texts = ["", "world", "", "world world", ""]
    together = Encoder(tokenizer, "tokenizer").encode(texts)
    alone = [found(tokenizer, text).is_start.tolist() for text in texts]
    assert together.words is not None
    assert together.words.is_start.tolist() == sum(alone, [])
    assert alone[0] == []
    assert Encoder(tokenizer).encode(texts).words is None


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_with_the_tokenizer_a_chinese_character_is_a_word(kind):
    text = "ab\u4f7f\u7528\u8bed 12\u5e74\u7684ab"
    tokenizer = train_tokenizer(["ab 12 cd"] * 3, kind=kind, vocab_size=262)
    if kind != "bpe":
        tokenizer = characters(text)
    assert pieces(tokenizer, text) == ["ab", *"\u4f7f\u7528\u8bed", "12", *"\u5e74\u7684", "ab"]


@needs_jieba
def test_jieba_cuts_chinese_and_the_tokenizer_the_rest():
    text = CHINESE.replace("|", "")
    tokenizer = characters(text)
    expected = CHINESE.replace("BERT|2024", "BERT2024").split("|")  # letters and digits are one
    assert pieces(tokenizer, text, "jieba") == expected
    words = found(tokenizer, text, "jieba")
    assert (words.num_chinese, words.num_split) == (9, 0)
    assert len(words.is_start) == len(text)  # one token a character
    apart = (
        text.replace("2024", " 2024 ")
        .replace("BERT", "  BERT\n")
        .replace("\uff0c", " \uff0c\u3000")
    )
    assert pieces(tokenizer, apart, "jieba") == CHINESE.split("|")


@needs_jieba
def test_bytes_of_a_character_belong_to_its_word():
    tokenizer = train_tokenizer(["ab"] * 3, kind="bpe", vocab_size=262)  # a token a byte
    text = CHINESE.replace("|", "")
    # byte-level BPE keeps the two full-width marks in one word
    expected = CHINESE.replace("\uff1a|\u201c", "\uff1a\u201c").split("|")
    assert pieces(tokenizer, text, "jieba") == expected
    words = found(tokenizer, text, "jieba")
    assert (words.num_chinese, words.num_split) == (9, 0)
    assert len(words.is_start) == len(text.encode())


@needs_jieba
def test_words_that_a_token_crosses_become_single_tokens_and_are_counted():
    tokens = [*SPECIALS, "\u4f7f", "\u7528\u8bed", "\u8a00", "\u6a21", "\u578b", "\u5e74,", "a"]
    tokenizer = Tokenizer(models.Unigram([(t, -5.0) for t in tokens], 1, False))
    # use | language | model: the second token crosses the edge of the first two words
    text = "\u4f7f\u7528\u8bed\u8a00\u6a21\u578b"
    words = found(tokenizer, text, "jieba")
    assert words.is_start.tolist() == [True, True, True, True, False]
    assert (words.num_chinese, words.num_split) == (3, 2)
    # a token of a Chinese character and a comma stands alone
    words = found(tokenizer, "\u6a21\u578b\u5e74,a", "jieba")
    assert words.is_start.tolist() == [True, False, True, True]
    assert (words.num_chinese, words.num_split) == (2, 1)


@needs_jieba
def test_all_tokens_of_a_word_that_is_crossed_stand_alone():
    text = "\u6765\u4e2d\u56fd\u4eba\u6c11\u94f6\u884c"  # a word of one character, one of six
    tokens = [*SPECIALS, text[:2], *text[2:], "x", "a\u5e74", "b"]
    tokenizer = Tokenizer(models.Unigram([(t, -5.0) for t in tokens], 1, False))
    words = found(tokenizer, text, "jieba")
    assert words.is_start.tolist() == [True] * 6
    assert (words.num_chinese, words.num_split) == (2, 2)
    # the second token begins outside Chinese, within a word of the tokenizer
    assert found(tokenizer, "xa\u5e74b", "jieba").is_start.all()


@needs_jieba
def test_a_blank_in_front_of_a_word_is_no_part_of_it():
    text = "x \u8bed\u8a00\u3000\u8bed\u8a00"
    tokenizer = train_tokenizer([text] * 20, kind="bpe", vocab_size=275)
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    assert any(text[a] == " " and b - a > 1 for a, b in offsets)
    assert pieces(tokenizer, text, "jieba") == ["x", "\u8bed\u8a00", "", "\u8bed\u8a00"]
    assert found(tokenizer, text, "jieba").num_split == 0


@needs_jieba
def test_places_are_those_of_the_original_text():
    # accents fall away, capitals become two characters, full-width marks and ligatures change
    text = "\u00c9\u0130e\u0301\ufb01 \u8bed\u8a00\uff01\u8bed\u8a00 \U00020bb7\u3000\u8bed\u8a00"
    tokenizer = characters(text + "ei\u0307fi")
    tokenizer.normalizer = normalizers.Sequence(  # type: ignore
        [normalizers.NFKD(), normalizers.StripAccents(), tokenizer.normalizer]
    )
    cut = pieces(tokenizer, text, "jieba")
    assert cut.count("\u8bed\u8a00") == 3
    assert found(tokenizer, text, "jieba").num_split == 0


@needs_jieba
def test_jieba_is_silent_and_leaves_nothing_in_the_common_folder(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    load_jieba.cache_clear()
    tokenizer = characters("\u8bed\u8a00")
    assert pieces(tokenizer, "\u8bed\u8a00", "jieba") == ["\u8bed\u8a00"]
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())


def test_a_missing_jieba_is_named_before_the_text_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    load_jieba.cache_clear()
    config = PrepareConfig(text=(str(tmp_path / "none.txt"),), out=tmp_path / "o", words="jieba")
    with pytest.raises(UserError, match=r"^words is jieba, .*: pip install 'amber\[zh\]'$"):
        prepare(config)


def test_a_vocabulary_file_gives_words_too(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*SPECIALS, "hell", "##o", "##s", "\u4e2d", ","]))
    words = found(load_tokenizer(path), "Hello, hellos\u4e2d\u4e2d q")
    assert words.is_start.tolist() == [1, 0, 1, 1, 0, 0, 1, 1, 1]
