"""Documents to the files of both splits, by way of the worker processes."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from amber.text.corpus import Document
from amber.tokens.config import Words
from amber.tokens.encode import encode_all
from amber.tokens.shards import SPLITS, Split, SplitSize
from amber.tokens.vocabulary import special_ids, vocab_size
from amber.tokens.writer import SplitWriter

OnProgress = Callable[[int, int, int, int], None]
BATCH_CHARACTERS = 1 << 20
BATCH_DOCUMENTS = 8192


class Progress:
    """Adds up what was done and reports it."""

    def __init__(self, on_progress: OnProgress | None, total_bytes: int) -> None:
        self._on_progress = on_progress
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self.documents = 0
        self.tokens = 0

    def add_bytes(self, num_bytes: int) -> None:
        """Count bytes read from the disk."""
        self._done_bytes += num_bytes

    def report(self) -> None:
        """Pass the present numbers on."""
        if self._on_progress is not None:
            done = min(self._done_bytes, self._total_bytes)
            self._on_progress(done, self._total_bytes, self.documents, self.tokens)


def _batches(documents: Iterator[Document]) -> Iterator[tuple[list[str], np.ndarray]]:
    """Group documents to about 1 MB; the companion says which are held out."""
    texts: list[str] = []
    flags: list[bool] = []
    size = 0
    for document in documents:
        texts.append(document.text)
        flags.append(document.is_held_out)
        size += len(document.text)
        if size >= BATCH_CHARACTERS or len(texts) >= BATCH_DOCUMENTS:
            yield texts, np.array(flags)
            texts, flags, size = [], [], 0
    if texts:
        yield texts, np.array(flags)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokenised:
    """What the second reading gave."""

    sizes: dict[Split, SplitSize]
    token_counts: np.ndarray
    """Of the train split."""
    num_empty: int
    num_special: int
    unk_fraction: float
    num_chinese: int
    """Words of Chinese; 0 when words were not asked for."""
    num_split: int
    """Those of them that became single tokens."""


def tokenise(
    documents: Iterator[Document],
    tokenizer: Tokenizer,
    folder: Path,
    *,
    num_workers: int,
    progress: Progress,
    words: Words = "none",
) -> Tokenised:
    """Encode the documents in `num_workers` processes and write the files of both splits.

    Documents without a token are left out.
    """
    num_rows = vocab_size(tokenizer)
    unk = special_ids(tokenizer).unk
    num_empty = num_special = num_chinese = num_split = 0
    token_counts = {split: np.zeros(num_rows, dtype=np.int64) for split in SPLITS}
    writers: dict[Split, SplitWriter] = {
        split: SplitWriter(folder, split, num_rows, has_words=words != "none") for split in SPLITS
    }
    results = encode_all(_batches(documents), tokenizer, num_workers=num_workers, words=words)
    try:
        with closing(results):
            for encoded, held_out in results:
                num_empty += int((encoded.lengths == 0).sum())
                num_special += encoded.num_special
                found = encoded.words
                if found is not None:
                    num_chinese += found.num_chinese
                    num_split += found.num_split
                token_is_held_out = np.repeat(held_out, encoded.lengths)
                for split in SPLITS:
                    flag = split == "held_out"
                    is_here = token_is_held_out == flag
                    ids = encoded.ids[is_here]
                    is_word_start = None if found is None else found.is_start[is_here]
                    chosen = (held_out == flag) & (encoded.lengths > 0)
                    writers[split].add(ids, encoded.lengths[chosen], is_word_start)
                    token_counts[split] += np.bincount(ids, minlength=num_rows)
                progress.documents += len(encoded.lengths)
                progress.tokens += len(encoded.ids)
                progress.report()
        for writer in writers.values():
            writer.close()
    finally:
        for writer in writers.values():
            writer.abandon()
    num_tokens = sum(writer.num_tokens for writer in writers.values())
    num_unk = sum(int(c[unk]) for c in token_counts.values())
    sizes: dict[Split, SplitSize] = {
        split: SplitSize(
            num_documents=w.num_documents, num_tokens=w.num_tokens, files=tuple(w.files)
        )
        for split, w in writers.items()
    }
    return Tokenised(
        sizes=sizes,
        token_counts=token_counts["train"],
        num_empty=num_empty,
        num_special=num_special,
        unk_fraction=num_unk / max(1, num_tokens),
        num_chinese=num_chinese,
        num_split=num_split,
    )
