"""Text to ids in worker processes, the results in the order of the input."""

import os
import re
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from tokenizers import Tokenizer

from amber.errors import UserError
from amber.tokens.config import Words
from amber.tokens.shards import token_dtype
from amber.tokens.vocabulary import special_ids, special_token_ids, vocab_size
from amber.tokens.words import FoundWords, WordFinder

T = TypeVar("T")

PIECE_CHARACTERS = 1 << 18
BATCHES_AHEAD = 3  # per worker
_BLANK = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Encoded:
    """The ids of a batch of documents, end to end."""

    ids: np.ndarray
    lengths: np.ndarray
    num_special: int
    """Ids of special tokens that text gave, made [UNK]."""
    words: FoundWords | None = None
    """Where words begin, if that was asked for."""


class Encoder:
    """A tokenizer for plain text: `[MASK]` in a document is read as text, not as the token."""

    def __init__(self, tokenizer: Tokenizer, words: Words = "none") -> None:
        """Take a copy of the tokenizer.

        Args:
            tokenizer: what encodes.
            words: who says where words begin.

        Raises:
            UserError: `words` is jieba, which is not installed.
        """
        self._finder = None if words == "none" else WordFinder(tokenizer, words)
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.encode_special_tokens = True
        size = vocab_size(tokenizer)
        self._dtype = token_dtype(size)
        self._unk = special_ids(tokenizer).unk
        self._is_special = np.zeros(size, dtype=bool)
        self._is_special[list(special_token_ids(tokenizer) - {self._unk})] = True

    def encode(self, texts: list[str]) -> Encoded:
        """Encode documents without [CLS] and [SEP].

        A document above 262,144 characters is cut before a blank for encoding, and joined again.
        """
        pieces: list[str] = []
        counts: list[int] = []
        for text in texts:
            cut = [text] if len(text) <= PIECE_CHARACTERS else list(_cut(text))
            pieces += cut
            counts.append(len(cut))
        if self._finder is None:
            encodings = self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
        else:  # the other one gives neither word ids nor offsets
            encodings = self._tokenizer.encode_batch(pieces, add_special_tokens=False)
        arrays = [np.array(encoding.ids, dtype=self._dtype) for encoding in encodings]
        lengths = np.array([len(array) for array in arrays], dtype=np.int64)
        if len(pieces) > len(texts):
            starts = np.cumsum([0, *counts[:-1]])
            lengths = np.add.reduceat(lengths, starts)
        ids = np.concatenate(arrays) if arrays else np.zeros(0, dtype=self._dtype)
        words = None if self._finder is None else self._finder.find(pieces, encodings, ids)
        is_special = self._is_special[ids]
        num_special = int(is_special.sum())
        if num_special:
            ids[is_special] = self._unk
        return Encoded(ids, lengths, num_special, words)


def _cut(text: str) -> Iterator[str]:
    """Cut a long text before blanks."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        low, high = start + 1, start + PIECE_CHARACTERS
        cut = max(text.rfind(" ", low, high), text.rfind("\n", low, high))
        if cut < 0:
            match = _BLANK.search(text, high)
            if match is None:
                break
            cut = match.start()
        yield text[start:cut]
        start = cut
    yield text[start:]


_ENCODER: list[Encoder] = []  # of a worker process


def _start_worker(tokenizer_json: str, words: Words) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's business
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _ENCODER.append(Encoder(Tokenizer.from_str(tokenizer_json), words))


def _encode(texts: list[str]) -> Encoded:
    return _ENCODER[0].encode(texts)


@contextmanager
def single_thread() -> Iterator[None]:
    """Keep the tokenizer library from starting threads, for the time of the block."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def encode_all(
    batches: Iterable[tuple[list[str], T]],
    tokenizer: Tokenizer,
    *,
    num_workers: int,
    words: Words = "none",
) -> Generator[tuple[Encoded, T], None, None]:
    """Encode batches of documents, each with a companion that is handed back with its result.

    Args:
        batches: (texts, companion); read only a few batches ahead.
        tokenizer: used as `Encoder` uses it.
        num_workers: processes; with 1 the work is done in this one.
        words: who says where words begin.

    Raises:
        UserError: a worker died, most often for want of memory.
    """
    if num_workers == 1:
        encoder = Encoder(tokenizer, words)
        for texts, companion in batches:
            with single_thread():
                encoded = encoder.encode(texts)
            yield encoded, companion
        return
    pool = ProcessPoolExecutor(
        num_workers,
        mp_context=get_context("spawn"),
        initializer=_start_worker,
        initargs=(tokenizer.to_str(), words),
    )
    waiting: deque[tuple[Future[Encoded], T]] = deque()
    try:
        for texts, companion in batches:
            waiting.append((pool.submit(_encode, texts), companion))
            if len(waiting) >= BATCHES_AHEAD * num_workers:
                future, done = waiting.popleft()
                yield future.result(), done
        while waiting:
            future, done = waiting.popleft()
            yield future.result(), done
    except BrokenProcessPool as error:
        raise UserError(
            "a tokenising process died, most often for want of memory: lower num_workers"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
