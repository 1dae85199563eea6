"""Files with one word on each line, its tag in the last column: CoNLL's layout."""

import re
from collections.abc import Sequence
from pathlib import Path

from amber.errors import UserError
from amber.tasks.content import read_lines
from amber.tasks.scheme import split_tag
from amber.tasks.tagged import tagged_examples
from amber.tasks.task import ReadFile, TaskFile

DOCUMENT_START = "-DOCSTART-"
_BLANKS = re.compile(r"[ \t]+")
_TABS = re.compile(r" *\t[ \t]*")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")
Sentence = tuple[list[int], list[str], list[str]]  # line, word and tag of each word


def read_columns(
    path: Path,
    file: TaskFile,
    *,
    joiner: str | None,
    needs_tags: bool = True,
) -> ReadFile:
    """Read a file with one word on each line and a blank line after each sentence.

    The word is the first column and the tag the last. Tabs or runs of blanks part the columns.
    Comments (lines with `#` before a sentence that do not end with a tag) and lines of
    `-DOCSTART-` are passed over and counted.

    Args:
        path: of the file.
        file: its layout.
        joiner: between words; None as in `Task.joiner`.
        needs_tags: stop at lines of one column; otherwise a file with one column is unlabelled.

    Raises:
        UserError: a line with another number of columns, or a tag that is none.
    """
    lines = read_lines(path, encoding=file.encoding)
    sentences, notes = _sentences(path, lines, needs_tags=needs_tags)
    if file.has_prefix:
        _remove_prefix(path, sentences)
    examples, tag_notes = tagged_examples(
        [words for _, words, _ in sentences],
        [tags for _, _, tags in sentences],
        path=str(path),
        place=lambda s, w: f"{path}, line {sentences[s][0][w]}, column 'tag'",
        joiner=joiner,
    )
    return ReadFile(
        path=str(path),
        examples=examples,
        numbers=tuple(numbers[0] for numbers, _, _ in sentences),
        column="tag",
        has_word_lines=True,
        notes=(*notes, *tag_notes),
    )


def _sentences(
    path: Path, lines: Sequence[str], *, needs_tags: bool
) -> tuple[list[Sentence], list[str]]:
    sentences: list[Sentence] = []
    numbers: list[int] = []
    words: list[str] = []
    tags: list[str] = []
    width = num_documents = num_comments = 0
    for number, line in enumerate([*lines, ""], 1):
        cells = _cells(line)
        is_document = cells[0] == DOCUMENT_START
        if is_document or not cells[0]:
            num_documents += is_document
            if words:
                sentences.append((numbers, words, tags))
                numbers, words, tags = [], [], []
            continue
        if not words and line.startswith("#") and len(cells) > 1 and not split_tag(cells[-1]):
            num_comments += 1
            continue
        width = width or max(len(cells), 2 if needs_tags else 1)
        if len(cells) != width:
            what = "a word and its tag" if needs_tags else "a word alone, or with its tag"
            raise UserError(
                f"{path}, line {number}, column {min(len(cells), width) + 1}: {len(cells)} "
                f"{'column' if len(cells) == 1 else 'columns'} where {width} "
                f"{'is' if width == 1 else 'are'} needed: put {what}, parted by a tab or blanks, "
                "on each line"
            )
        numbers.append(number)
        words.append(cells[0])
        if width > 1:
            tags.append(cells[-1])
    if not sentences:
        raise UserError(f"{path}: no sentence in the file: give one with words and tags")
    if width > 2 and _are_counts([words for _, words, _ in sentences]):
        raise UserError(
            f"{path}: the first column counts the words: put the word first and its tag last"
        )
    counts = {"comment lines": num_comments, f"{DOCUMENT_START} lines": num_documents}
    notes = [f"{path}: {count} {what} passed over" for what, count in counts.items() if count]
    return sentences, notes


def _are_counts(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the words of each sentence are 1, 2, 3 and so on."""
    return max(len(words) for words in sentences) > 1 and all(
        word == str(number) for words in sentences for number, word in enumerate(words, 1)
    )


def _cells(line: str) -> list[str]:
    """The columns of a line; with tabs in it, a blank belongs to a word."""
    stripped = line.strip("\ufeff \t")
    return (_TABS if "\t" in stripped else _BLANKS).split(stripped)


def _remove_prefix(path: Path, sentences: Sequence[Sentence]) -> None:
    """Take the language code off every word."""
    found = _LANGUAGE.match(sentences[0][1][0])
    if found is None:
        return
    prefix = found.group(0)
    for numbers, words, _ in sentences:
        for index, word in enumerate(words):
            if not word.startswith(prefix) or word == prefix:
                raise UserError(
                    f"{path}, line {numbers[index]}, column 1: {word!r} does not begin with "
                    f"{prefix!r} and a word, as the first line does: mend the line"
                )
            words[index] = word.removeprefix(prefix)
