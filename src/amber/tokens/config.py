"""The settings of `amber prepare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amber.errors import UserError

Words = Literal["none", "tokenizer", "jieba"]

TRAINING_SETTINGS = ("vocab_size", "tokenizer_kind", "min_frequency", "tokenizer_sample_mb")


@dataclass(frozen=True, kw_only=True, slots=True)
class PrepareConfig:
    """Turn raw text into a tokenizer and token shards."""

    text: tuple[str, ...]
    """Files, folders and globs of .txt, .jsonl, .csv, .tsv, .parquet, as they are or compressed
    (gz, bz2, zst, xz; known by content)."""

    out: Path
    """The folder to write; it must not exist or be empty."""

    vocab_size: int | None = None
    """Tokens of the vocabulary to train, special ones included (default 30000)."""

    tokenizer: Path | None = None
    """A tokenizer to use instead of training one: vocab.txt, tokenizer.json, or a Hugging Face
    folder."""

    tokenizer_kind: Literal["wordpiece", "unigram", "bpe"] | None = None
    """What to train (default wordpiece): as BERT's, as SentencePiece's, or byte-level BPE."""

    lowercase: bool | None = None
    """Fold case (default: yes for a trained tokenizer; for a given vocab.txt, whether it holds no
    ASCII capitals)."""

    strip_accents: bool | None = None
    """Drop combining marks (default: no for a trained tokenizer; for a given vocab.txt, as
    lowercase). Harmful in scripts that write vowels as marks, such as Devanagari or Thai."""

    min_frequency: int | None = None
    """Occurrences in the tokenizer's training text below which a character or a merge is not
    learned (default 2)."""

    max_word_length: int | None = None
    """Characters above which WordPiece makes a word one [UNK] (default 100, as transformers;
    Google's code has 200)."""

    tokenizer_sample_mb: int | None = None
    """Millions of characters of the training split from which the tokenizer is trained (default
    100): the documents with the smallest hashes, whatever the order of the files."""

    separator: Literal["blank_line", "file", "line"] | None = None
    """What ends a document in .txt files (default blank_line)."""

    text_field: str | None = None
    """Column or key with the text in .jsonl, .csv, .tsv and .parquet (default text); dotted for
    nested JSON."""

    on_bad: Literal["stop", "replace", "skip"] = "stop"
    """Bytes that are not valid text, or records without text: stop with the place; replace the
    bytes (a record still stops); or skip and count."""

    unicode_form: Literal["NFC", "NFKC", "none"] = "NFC"
    """Unicode normal form of the documents and of a trained tokenizer; NFKC also folds full-width
    forms."""

    dedup: bool = True
    """Drop documents whose normalised text was there before."""

    held_out_fraction: float = 0.01
    """Share of documents, chosen by hash, that is never trained on, in (0, 0.5]; at least one
    document. 0 holds none out, but pretraining needs some."""

    words: Words = "none"
    """Store where words begin, which mask.unit word needs: as the tokenizer cuts them (a Chinese
    character is a word), or Chinese cut by jieba (pip install 'amber[zh]') and the rest as the
    tokenizer does. none costs nothing."""

    num_workers: int | None = None
    """Processes that tokenise (default: the number of cores); the output does not depend on it."""

    max_unk_fraction: float = 0.05
    """Stop when a larger share of the tokens than this is [UNK], in [0, 1]."""

    model_max_length: int = 512
    """Tokens; written into the tokenizer's files as the longest input."""

    overwrite: bool = False
    """Replace a data folder that an earlier run wrote."""

    def __post_init__(self) -> None:
        """Refuse what can be known to be wrong.

        Raises:
            UserError: a value out of its range, or a setting without effect.
        """
        if not self.text:
            raise UserError("text: no path given: name files, folders or globs")
        for name, low in (
            ("vocab_size", 6),
            ("min_frequency", 1),
            ("max_word_length", 1),
            ("tokenizer_sample_mb", 1),
            ("num_workers", 1),
            ("model_max_length", 3),
        ):
            value = getattr(self, name)
            if value is not None and value < low:
                raise UserError(f"{name} must be {low} or more, got {value}")
        if not 0 <= self.held_out_fraction <= 0.5:
            raise UserError(
                "held_out_fraction must be in (0, 0.5], or 0 for data that is not for pretraining, "
                f"got {self.held_out_fraction}"
            )
        if not 0 <= self.max_unk_fraction <= 1:
            raise UserError(f"max_unk_fraction must be in [0, 1], got {self.max_unk_fraction}")
        if self.tokenizer is not None:
            for name in TRAINING_SETTINGS:
                if getattr(self, name) is not None:
                    raise UserError(
                        f"{name} has no effect with the given tokenizer {self.tokenizer}: leave "
                        "out one of the two"
                    )
        elif self.tokenizer_kind in ("unigram", "bpe") and self.max_word_length is not None:
            raise UserError(
                f"max_word_length has no effect on a {self.tokenizer_kind} tokenizer: leave it out"
            )
