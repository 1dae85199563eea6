"""Texts as word pieces, each with its place in the original text, and the tokens around them."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from tokenizers import Tokenizer

from amber.tokens.vocabulary import special_ids, special_token_ids, vocab_size


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """One text without [CLS] and [SEP]."""

    ids: Int[np.ndarray, " T"]
    offsets: Int[np.ndarray, "T 2"]
    """Start and end of each piece in the text, in characters, without blanks at its ends; equal
    for a piece that stands for blanks only."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The special tokens that a tokenizer puts around a text or a pair, as ids and segments."""

    single: tuple[Int[np.ndarray, "2 _"], Int[np.ndarray, "2 _"]]
    """Before and after one text."""
    pair: tuple[Int[np.ndarray, "2 _"], Int[np.ndarray, "2 _"], Int[np.ndarray, "2 _"]]
    """Before, between and after two texts."""
    second_segment: int
    """`token_type_ids` of the second text: 1 in BERT, 0 where segments are not used."""

    @property
    def num_special(self) -> int:
        """Tokens around one text."""
        return sum(part.shape[1] for part in self.single)

    @property
    def num_special_pair(self) -> int:
        """Tokens around two texts."""
        return sum(part.shape[1] for part in self.pair)

    def around(self, ids: Int[np.ndarray, " T"]) -> Int[np.ndarray, "2 _"]:
        """Put the tokens around one text; return `input_ids` and `token_type_ids`."""
        before, after = self.single
        return np.concatenate([before, _with_segment(ids, 0), after], axis=1)

    def around_pair(
        self, first: Int[np.ndarray, " A"], second: Int[np.ndarray, " B"]
    ) -> Int[np.ndarray, "2 _"]:
        """Put the tokens around two texts; return `input_ids` and `token_type_ids`."""
        before, between, after = self.pair
        texts = _with_segment(first, 0), _with_segment(second, self.second_segment)
        return np.concatenate([before, texts[0], between, texts[1], after], axis=1)


def _with_segment(ids: Int[np.ndarray, " T"], segment: int) -> Int[np.ndarray, "2 T"]:
    return np.stack([ids, np.full_like(ids, segment)])


class PlainTokenizer:
    """A tokenizer that reads names of special tokens in a text, such as `[SEP]`, as plain text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.frame = _find_frame(self._tokenizer)
        self._tokenizer.encode_special_tokens = True
        self._unk = special_ids(tokenizer).unk
        self._is_special = np.zeros(vocab_size(tokenizer), dtype=bool)
        self._is_special[list(special_token_ids(tokenizer) - {self._unk})] = True

    def ids(self, texts: Sequence[str]) -> list[Int[np.ndarray, " T"]]:
        """Encode without places, which is faster."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._checked(encoding.ids) for encoding in found]

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Encode with the place of each piece."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            Pieces(ids=self._checked(encoding.ids), offsets=_trim(text, encoding.offsets))
            for text, encoding in zip(texts, found, strict=True)
        ]

    def _checked(self, ids: list[int]) -> Int[np.ndarray, " T"]:
        array = np.array(ids, dtype=np.int64)
        array[self._is_special[array]] = self._unk
        return array


def _trim(text: str, offsets: Sequence[tuple[int, int]]) -> Int[np.ndarray, "T 2"]:
    """Leave out blanks at the ends of each piece, and take in marks that no piece covers.

    Byte-level and Unigram pieces begin with the blank before the word. BERT's normaliser drops
    accents, so that the piece of "e" + accent would end between the two.
    """
    trimmed = np.zeros((len(offsets), 2), dtype=np.int64)
    for index, (start, stop) in enumerate(offsets):
        while start < stop and text[start].isspace():
            start += 1
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        limit = offsets[index + 1][0] if index + 1 < len(offsets) else len(text)
        while start < stop < limit and _is_mark(text[stop]):
            stop += 1
        trimmed[index] = start, stop
    return trimmed


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _find_frame(tokenizer: Tokenizer) -> Frame:
    """Read the special tokens off what the tokenizer makes of one letter and of two."""
    single, pair = tokenizer.encode("a"), tokenizer.encode("a", "a")
    tokens = np.array([single.ids, single.type_ids], dtype=np.int64)
    tokens_pair = np.array([pair.ids, pair.type_ids], dtype=np.int64)
    start, stop = _place(single.sequence_ids, 0)
    first_start, first_stop = _place(pair.sequence_ids, 0)
    second_start, second_stop = _place(pair.sequence_ids, 1)
    return Frame(
        single=(tokens[:, :start], tokens[:, stop:]),
        pair=(
            tokens_pair[:, :first_start],
            tokens_pair[:, first_stop:second_start],
            tokens_pair[:, second_stop:],
        ),
        second_segment=pair.type_ids[second_start],
    )


def _place(sequence_ids: Sequence[int | None], number: int) -> tuple[int, int]:
    """Start and end of the text with this number."""
    inside = [index for index, sequence in enumerate(sequence_ids) if sequence == number]
    return inside[0], inside[-1] + 1
