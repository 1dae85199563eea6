"""Where words begin among the tokens of a text: what whole-word masking needs.

Outside Chinese the words are the tokenizer's own, with two rules for all kinds of tokenizer:
a token of punctuation is a word by itself, and a token that is only the sign for a blank belongs to
what follows it in its word.

A Chinese character is a word by itself, or jieba cuts the runs of Chinese characters. Words and
tokens are compared by their characters' places in the original text, so that lower case, accents
and other normal forms do not matter. A token that crosses the edge of a word becomes a word by
itself, and so does every token of the words that it touches.
"""

import unicodedata
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from tokenizers import Encoding, Tokenizer, pre_tokenizers

from amber.errors import UserError
from amber.tokens.config import Words
from amber.tokens.vocabulary import CJK_RANGES, vocab_size

Cut = Callable[[str], list[str]]

BLANK_SIGNS = "\u0120\u2581"  # of byte-level BPE, and of SentencePiece
BLANKS = [9, 10, 11, 12, 13, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029]
BLANKS += [0x202F, 0x205F, 0x3000]


@dataclass(frozen=True, slots=True)
class FoundWords:
    """Where words begin in some texts, their tokens end to end."""

    is_start: np.ndarray
    num_chinese: int
    """Words of Chinese."""
    num_split: int
    """Those of them that became single tokens, because a token crosses their edge."""


class WordFinder:
    """Finds the first token of each word."""

    def __init__(self, tokenizer: Tokenizer, words: Words) -> None:
        """Look at the vocabulary once, and load jieba where it is asked for.

        Raises:
            UserError: jieba is not installed.
        """
        self._cut: Cut = load_jieba() if words == "jieba" else list
        is_bytes = set(pre_tokenizers.ByteLevel.alphabet()) <= set(tokenizer.get_vocab())
        self._is_blank = np.zeros(vocab_size(tokenizer), dtype=bool)
        self._is_punctuation = np.zeros_like(self._is_blank)
        for token, row in tokenizer.get_vocab(with_added_tokens=True).items():
            plain = token.strip(BLANK_SIGNS)
            self._is_blank[row] = not plain
            # beyond ASCII, a letter of byte-level BPE stands for a part of a character
            is_text = plain.isascii() or not is_bytes
            self._is_punctuation[row] = bool(plain) and is_text and all(map(_is_mark, plain))

    def find(
        self, texts: Sequence[str], encodings: Sequence[Encoding], ids: np.ndarray
    ) -> FoundWords:
        """Find the words of some texts; no word crosses the edge of a text.

        Args:
            texts: as they were encoded.
            encodings: one for each, with word ids and offsets.
            ids: their ids, end to end.
        """
        sizes = [len(encoding.ids) for encoding in encodings]
        bounds = np.cumsum([0, *sizes])
        words = [np.array(encoding.word_ids, dtype=np.int64) for encoding in encodings]
        word = np.concatenate([*words, np.zeros(0, dtype=np.int64)])
        is_start = np.ones(len(ids), dtype=bool)
        is_mark, is_blank = self._is_punctuation[ids], self._is_blank[ids]
        is_start[1:] = (word[1:] != word[:-1]) | is_mark[:-1] | (is_mark[1:] & ~is_blank[:-1])
        is_start[bounds[:-1][np.array(sizes, dtype=np.int64) > 0]] = True
        num_chinese = num_split = 0
        for index, text in enumerate(texts):
            if text.isascii() or not sizes[index]:
                continue
            characters = _Characters.of(text, self._cut)
            if characters.num_words:
                place = slice(bounds[index], bounds[index + 1])
                offsets = np.array(encodings[index].offsets, dtype=np.int64)
                is_start[place], split = _align(is_start[place], offsets, characters)
                num_chinese += characters.num_words
                num_split += split
        return FoundWords(is_start, num_chinese, num_split)


def _is_mark(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "P" or (character.isascii() and category[0] == "S")


@dataclass(frozen=True, slots=True)
class _Characters:
    """The Chinese words of a text, by character."""

    word: np.ndarray
    """Number of the word that each character belongs to; -1 outside Chinese."""
    num_words: int
    next_visible: np.ndarray
    """Place of the first character from each on that is not a blank."""

    @staticmethod
    def of(text: str, cut: Cut) -> "_Characters":
        codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
        is_chinese = np.zeros(len(codes) + 2, dtype=bool)
        for low, high in CJK_RANGES:
            is_chinese[1:-1] |= (low <= codes) & (codes <= high)
        edges = np.flatnonzero(is_chinese[1:] != is_chinese[:-1])
        word = np.full(len(codes), -1, dtype=np.int64)
        num_words = 0
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            lengths = [len(piece) for piece in cut(text[start:stop])]
            numbers = np.arange(num_words, num_words + len(lengths))
            word[start:stop] = np.repeat(numbers, lengths)
            num_words += len(lengths)
        places = np.where(np.isin(codes, BLANKS), len(codes) - 1, np.arange(len(codes)))
        next_visible = np.minimum.accumulate(places[::-1])[::-1]
        return _Characters(word, num_words, next_visible)


def _align(
    is_start: np.ndarray, offsets: np.ndarray, characters: _Characters
) -> tuple[np.ndarray, int]:
    """Put the words of Chinese in the place of the tokenizer's.

    Args:
        is_start: by the tokenizer, of one text.
        offsets: the characters that each token begins and ends at.
        characters: of the same text.

    Returns:
        The new starts, and how many words became single tokens.
    """
    top = len(characters.word) - 1
    last = np.clip(offsets[:, 1] - 1, 0, top)
    first = characters.next_visible[np.minimum(offsets[:, 0], top)]
    first = np.minimum(first, last)  # a token of blanks only
    from_word, to_word = characters.word[first], characters.word[last]
    crosses = from_word != to_word
    is_split = np.zeros(characters.num_words + 1, dtype=bool)
    for token in np.flatnonzero(crosses):
        is_split[characters.word[first[token] : last[token] + 1]] = True
    is_split[-1] = False  # outside Chinese
    before = np.concatenate([[-1], to_word[:-1]])
    after_crossing = np.concatenate([[False], crosses[:-1]])
    by_chinese = (from_word != before) | is_split[from_word]
    found = np.where(from_word >= 0, by_chinese, is_start | (before >= 0))
    found |= crosses | after_crossing
    found[0] = True
    return found, int(is_split.sum())


@cache
def load_jieba() -> Cut:
    """Return jieba's function that cuts Chinese into words, with its own dictionary.

    The dictionary is read here rather than by jieba, which writes messages and keeps a copy in a
    folder that all users share.

    Raises:
        UserError: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its code is older than this Python
            import jieba
    except ImportError as error:
        raise UserError(
            "words is jieba, which is not installed: pip install 'amber[zh]'"
        ) from error
    segmenter = jieba.Tokenizer()
    segmenter.FREQ, segmenter.total = segmenter.gen_pfdict(segmenter.get_dict_file())
    segmenter.initialized = True
    return segmenter.lcut
