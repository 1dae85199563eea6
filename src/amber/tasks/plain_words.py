"""Plain text for a tagger: which parts of a sentence are its words."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from amber.tasks.answers import HAN
from amber.tasks.config import Encoding
from amber.tasks.content import read_lines
from amber.tasks.example import TaggedExample
from amber.tasks.scheme import split_tag
from amber.tasks.table import Table
from amber.text.files import COMPRESSED_SUFFIXES

COLUMN_SHARE: Final = 0.8
"""So many lines of a file of columns have as many of them, and so many of these end in a tag."""


def is_by_character(text: str, joiner: str | None) -> bool:
    """Whether each character is a word: as in the training, else for texts that are mostly Han."""
    letters = "".join(text.split())
    return joiner == "" if joiner is not None else 2 * len(HAN.findall(letters)) > len(letters)


def word_spans(text: str, *, by_character: bool) -> tuple[tuple[int, int], ...]:
    """Find the words of a text.

    Args:
        text: of one sentence.
        by_character: each character that is no blank is a word. Otherwise words end at blanks, and
            punctuation before and after them is a word for each mark.
    """
    if by_character:
        return tuple((i, i + 1) for i, letter in enumerate(text) if not letter.isspace())
    spans: list[tuple[int, int]] = []
    start = 0
    for index, letter in enumerate((*text, " ")):
        if letter.isspace():
            spans += _without_marks(text, start, index)
            start = index + 1
    return tuple(spans)


def _without_marks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a run without blanks into the marks before, the word, and the marks after."""
    left, right = start, end
    while left < right and unicodedata.category(text[left])[0] == "P" and text[left] not in "@#":
        left += 1
    while right > left and unicodedata.category(text[right - 1])[0] == "P":
        right -= 1
    before = [(i, i + 1) for i in range(start, left)]
    word = [(left, right)] if left < right else []
    return [*before, *word, *((i, i + 1) for i in range(right, end))]


def plain_sentences(texts: Sequence[str], *, joiner: str | None) -> tuple[TaggedExample, ...]:
    """Turn texts into sentences without tags, their ids the numbers from 0.

    Args:
        texts: one each; an empty one has no word.
        joiner: between the words of the training; None where that is not known.
    """
    by_character = is_by_character("".join(texts[:1000]), joiner)
    return tuple(
        TaggedExample(
            id=str(number), text=text, spans=word_spans(text, by_character=by_character), tags=None
        )
        for number, text in enumerate(texts)
    )


def looks_like_columns(lines: Sequence[str], *, joiner: str | None) -> bool:
    """Whether lines are words, each with its tag or alone, and not sentences.

    Args:
        lines: of a file.
        joiner: as for `plain_sentences`: where characters are words, a longer line is a sentence.
    """
    rows = [cells for line in lines if (cells := line.split())]
    widths = Counter(len(cells) for cells in rows)
    if not rows:
        return False
    width, count = widths.most_common(1)[0]
    num_fitting = sum(split_tag(row[-1]) is not None for row in rows if len(row) == width)
    if width == 1 and is_by_character("".join(lines[:1000]), joiner):
        num_fitting = sum(len(row[0]) == 1 for row in rows)
    elif width == 1:
        num_fitting = count
    return count >= COLUMN_SHARE * len(rows) and num_fitting >= COLUMN_SHARE * count


def table_sentences(
    table: Table, *, text: str, id_column: str | None, joiner: str | None
) -> tuple[TaggedExample, ...]:
    """Turn the texts of a table into sentences without tags; see `plain_sentences`."""
    texts = [table.text(number, row, text) for number, row in table.rows]
    found = plain_sentences(texts, joiner=joiner)
    if id_column is None:
        return found
    names = [table.text(number, row, id_column) for number, row in table.rows]
    return tuple(replace(each, id=name) for each, name in zip(found, names, strict=True))


def is_sentences(path: Path, *, encoding: Encoding, joiner: str | None) -> bool:
    """Whether a file is plain text by its name, and not words in columns."""
    is_text = path.is_file() and is_plain(path)
    return is_text and not looks_like_columns(read_lines(path, encoding=encoding), joiner=joiner)


def is_plain(path: Path) -> bool:
    """Whether a file is plain text by its name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1:] == [".txt"]
