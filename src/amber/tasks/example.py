"""The examples of every kind of task; text stays as it is in the file, labels are names."""

import hashlib
from dataclasses import dataclass
from typing import Literal

Kind = Literal["classification", "multilabel", "regression", "tagging", "qa"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextExample:
    """One text or pair of texts: classification, multi-label and regression."""

    id: str
    text: str
    pair: str | None = None
    label: str | float | tuple[str, ...] | None = None
    """A name, a number (regression) or several names (multi-label); None is unlabelled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedExample:
    """One sentence whose words carry tags."""

    id: str
    text: str
    """The original text; of files that hold only words, the words joined by one blank (by nothing
    where each word is a character)."""
    spans: tuple[tuple[int, int], ...]
    """Start and end of each word in `text`, in characters, the end exclusive."""
    tags: tuple[str, ...] | None = None
    """BIO (IOB2), whatever the file's scheme; None is unlabelled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A part of the context that answers the question."""

    text: str
    """Equals `context[start : start + len(text)]`."""
    start: int
    """In characters from the start of the context."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QAExample:
    """A question about a context."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    """Empty: no answer in the context, unlabelled, or none that stands where the file says."""
    is_labelled: bool = True
    gold_texts: tuple[str, ...] = ()
    """The answers as the file has them, what a score compares with: some files hold answers that
    are no part of the context, or stand elsewhere. Empty and labelled: no answer is right."""


Example = TextExample | TaggedExample | QAExample


def place_of(example: Example) -> float:
    """Return a number in [0, 1) that depends on the text alone, of questions on the context."""
    if isinstance(example, TextExample):
        key = f"{example.text}\n{example.pair or ''}"
    else:
        key = example.text if isinstance(example, TaggedExample) else example.context
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
