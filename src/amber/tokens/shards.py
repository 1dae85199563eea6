"""The data folder: its manifest, and its tokens as memory-mapped files.

manifest.json            counts, settings, versions, checksums; written last
tokenizer/               the Hugging Face files
train-00000.bin ...      token ids, little-endian uint16, or uint32 above 65536 rows
train.offsets.npy        int64, num_documents + 1: where documents begin and end, in tokens
train.words.bin          one bit a token, the lowest first: whether a word begins (where asked for)
held_out-00000.bin ...   the same for the part that is never trained on
held_out.offsets.npy
token_counts.npy         int64 per row of the vocabulary, over the train split
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from amber.errors import UserError
from amber.tokens.config import Words
from amber.tokens.vocabulary import SpecialIds

Split = Literal["train", "held_out"]
SPLITS: tuple[Split, ...] = ("train", "held_out")
FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitSize:
    """What one split holds."""

    num_documents: int
    num_tokens: int
    files: tuple[str, ...]
    """Names of its .bin files, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileMark:
    """By which a written file is known."""

    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a data folder holds and how it was made."""

    format_version: int
    vocab_size: int
    """Rows: the largest id + 1."""
    special: SpecialIds
    fingerprint: str
    """SHA-256 over the tokenizer and all tokens; equal for equal data, wherever and whenever
    made."""
    tokenizer_fingerprint: str
    unigram_entropy: float
    """Of the train split's tokens, in nats: the loss of a model that knows only frequencies."""
    train: SplitSize
    held_out: SplitSize
    counts: dict[str, int]
    """Documents read, kept and dropped by reason; characters; controls removed."""
    unk_fraction: float
    """Over all tokens of both splits."""
    unk_by_script: dict[str, dict[str, int | float]]
    """On a sample."""
    settings: dict[str, Any]
    versions: dict[str, str]
    sources: list[dict[str, Any]]
    skipped_files: list[str]
    notes: list[str]
    files: dict[str, FileMark]
    """Every written file but the manifest."""
    words: Words = "none"
    """Who says where words begin."""


def load_manifest(data_dir: Path) -> Manifest:
    """Read the manifest and check that every file is there in its full size.

    Raises:
        UserError: no manifest (not a data folder, or an unfinished one), or files missing or cut
            off.
    """
    path = data_dir / MANIFEST_NAME
    if not path.is_file():
        raise UserError(
            f"{data_dir}: no {MANIFEST_NAME} here: give a folder that amber prepare wrote"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format_version"] != FORMAT_VERSION:
            raise UserError(
                f"{path}: format {content['format_version']}, but this version reads "
                f"{FORMAT_VERSION}: "
                "run amber prepare again"
            )
        content["special"] = SpecialIds(**content["special"])
        for split in SPLITS:
            size = content[split]
            content[split] = SplitSize(**{**size, "files": tuple(size["files"])})
        content.setdefault("words", "none")  # of a folder from before there were words
        content["files"] = {name: FileMark(**mark) for name, mark in content["files"].items()}
        manifest = Manifest(**{field.name: content[field.name] for field in fields(Manifest)})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: damaged ({error!r}): run amber prepare again") from error
    for name, mark in manifest.files.items():
        file = data_dir / name
        size = file.stat().st_size if file.is_file() else None
        if size != mark.size:
            found = "missing" if size is None else f"{size} bytes"
            raise UserError(
                f"{file}: {found} where the manifest says {mark.size} bytes: run amber prepare "
                "again"
            )
    return manifest


def verify(data_dir: Path) -> Manifest:
    """Compare the checksum of every file with the manifest; reads all data.

    Raises:
        UserError: names the first file that differs.
    """
    manifest = load_manifest(data_dir)
    for name, mark in manifest.files.items():
        with (data_dir / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != mark.sha256:
            raise UserError(f"{data_dir / name}: its content has changed: run amber prepare again")
    return manifest


def manifest_json(manifest: Manifest) -> str:
    """The text of manifest.json."""
    return json.dumps(asdict(manifest), indent=2, ensure_ascii=False) + "\n"


def token_dtype(vocab_size: int) -> np.dtype:
    """The type of the ids on disk."""
    return np.dtype("<u2" if vocab_size <= 65536 else "<u4")


def unigram_entropy(token_counts: np.ndarray) -> float:
    """Entropy of the frequencies, in nats."""
    used = token_counts[token_counts > 0].astype(np.float64)
    if not len(used):
        return 0.0
    total = used.sum()
    return float(math.log(total) - (used * np.log(used)).sum() / total)


class Shards:
    """The tokens of one split, addressed as if its files were one array.

    Sent to another process, it is opened there anew instead of being copied.
    """

    def __init__(self, data_dir: Path, split: Split, manifest: Manifest) -> None:
        self.data_dir = data_dir
        self.split: Split = split
        dtype = token_dtype(manifest.vocab_size)
        size: SplitSize = getattr(manifest, split)
        self.offsets = np.load(data_dir / f"{split}.offsets.npy", mmap_mode="r")
        self._files = [np.memmap(data_dir / name, dtype=dtype, mode="r") for name in size.files]
        self._starts = np.cumsum([0, *(len(file) for file in self._files)])
        if int(self.offsets[-1]) != self._starts[-1] or len(self.offsets) != size.num_documents + 1:
            raise UserError(
                f"{data_dir}: the offsets of {split} do not fit: run amber prepare again"
            )
        self.has_words = manifest.words != "none"
        """Whether the data says where words begin."""
        self._word_bits = np.zeros(0, dtype=np.uint8)
        if self.has_words and self.num_tokens:
            self._word_bits = np.memmap(data_dir / words_name(split), dtype=np.uint8, mode="r")

    def __reduce__(self) -> tuple[Any, ...]:
        return open_shards, (self.data_dir, self.split)

    @property
    def num_documents(self) -> int:
        """Documents in the split."""
        return len(self.offsets) - 1

    @property
    def num_tokens(self) -> int:
        """Tokens in the split."""
        return int(self._starts[-1])

    def read(self, start: int, stop: int) -> np.ndarray:
        """The tokens at addresses `start` to `stop`, which lie in one document; a view, not a copy.

        Raises:
            ValueError: the addresses are not within one file, so not within one document.
        """
        if start == stop:
            return np.zeros(0, dtype=token_dtype(65536))
        index = int(np.searchsorted(self._starts, start, side="right")) - 1
        if not 0 <= start < stop <= self.num_tokens or stop > self._starts[index + 1]:
            raise ValueError(f"tokens {start} to {stop} do not lie in one document of {self.split}")
        base = int(self._starts[index])
        return self._files[index][start - base : stop - base]

    def read_word_starts(self, start: int, stop: int) -> np.ndarray:
        """Whether a word begins at each of the tokens `start` to `stop`, as booleans.

        Raises:
            ValueError: the data has no words, or not so many tokens.
        """
        if not self.has_words or not 0 <= start <= stop <= self.num_tokens:
            raise ValueError(f"no words of tokens {start} to {stop} of {self.split}")
        first = start // 8
        bits = np.unpackbits(self._word_bits[first : -(-stop // 8)], bitorder="little")
        return bits[start - 8 * first : stop - 8 * first].astype(bool)


def words_name(split: Split) -> str:
    """The name of the file that says where the words of a split begin."""
    return f"{split}.words.bin"


def open_shards(data_dir: Path, split: Split) -> Shards:
    """Open one split of a data folder, after the checks of `load_manifest`."""
    return Shards(data_dir, split, load_manifest(data_dir))
