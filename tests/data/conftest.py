"""A real split on disk whose token at address n is n + 10: a row shows where it came from."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from amber.data.loader import Source, open_source
from amber.tokens.shards import Manifest, Shards, SplitSize
from amber.tokens.vocabulary import SpecialIds
from amber.tokens.writer import SplitWriter

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4)


def write_split(folder: Path, lengths: list[int], *, has_words: bool = False) -> Shards:
    """Write documents of these lengths into files of about 1000 tokens; even ones start a word."""
    vocab_size = sum(lengths) + 10
    writer = SplitWriter(folder, "train", vocab_size, file_bytes=2000, has_words=has_words)
    ids = np.arange(10, vocab_size)
    writer.add(ids, np.array(lengths, dtype=np.int64), ids % 2 == 0)
    writer.close()
    size = SplitSize(num_documents=len(lengths), num_tokens=sum(lengths), files=tuple(writer.files))
    manifest = Manifest(
        format_version=1,
        vocab_size=vocab_size,
        special=SPECIAL,
        fingerprint="",
        tokenizer_fingerprint="",
        unigram_entropy=0.0,
        train=size,
        held_out=size,
        counts={},
        unk_fraction=0.0,
        unk_by_script={},
        settings={},
        versions={},
        sources=[],
        skipped_files=[],
        notes=[],
        files={},
        words="tokenizer" if has_words else "none",
    )
    return Shards(folder, "train", manifest)


@pytest.fixture
def make_source(tmp_path: Path) -> Callable[..., Source]:
    """Return a function: lengths of documents -> a source."""
    made = []

    def make(
        lengths: list[int],
        *,
        length: int = 32,
        pair_fraction: float = 0.0,
        seed: int = 0,
        multiple: int = 8,
        with_words: bool = False,
    ) -> Source:
        folder = tmp_path / f"split-{len(made)}"
        folder.mkdir()
        made.append(folder)
        return open_source(
            write_split(folder, lengths, has_words=with_words),
            SPECIAL,
            length=length,
            pair_fraction=pair_fraction,
            seed=seed,
            multiple=multiple,
            with_words=with_words,
        )

    return make
