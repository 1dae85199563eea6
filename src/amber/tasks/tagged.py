"""Words and tags -> examples with words as parts of a text, and BIO tags."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from amber.errors import UserError
from amber.tasks.example import Example, TaggedExample
from amber.tasks.scheme import OUTSIDE, detect_scheme, split_tag, to_bio
from amber.tasks.table import Table
from amber.tasks.task import ReadFile

CHARACTER_SHARE = 0.9
"""Above this share of words of one character, words are joined without blanks."""


def tagged_examples(
    words: Sequence[Sequence[str]],
    tags: Sequence[Sequence[str]],
    *,
    path: str,
    place: Callable[[int, int], str],
    joiner: str | None,
) -> tuple[tuple[TaggedExample, ...], tuple[str, ...]]:
    """Turn the sentences of a file into examples, their ids the numbers from 0.

    Args:
        words: of each sentence.
        tags: of each sentence, in any scheme of `scheme.py`; all empty where the file has none.
        path: how messages name the file.
        place: names the place of a word for a message, from the numbers of sentence and word.
        joiner: between words; None takes one blank, or nothing where nearly every word is one
            character.

    Returns:
        The examples, and what was converted or repaired.

    Raises:
        UserError: a tag that is none, or letters that belong to no one scheme.
    """
    tags = [[unicodedata.normalize("NFC", tag) for tag in these] for these in tags]
    bio, notes = _as_bio(tags, place, path)
    if joiner is None:
        lengths = [len(word) for these in words for word in these]
        joiner = "" if lengths.count(1) > CHARACTER_SHARE * len(lengths) else " "
    examples = []
    for index, (these, these_tags) in enumerate(zip(words, bio, strict=True)):
        spans: list[tuple[int, int]] = []
        start = 0
        for word in these:
            spans.append((start, start + len(word)))
            start += len(word) + len(joiner)
        examples.append(
            TaggedExample(
                id=str(index), text=joiner.join(these), spans=tuple(spans), tags=these_tags
            )
        )
    return tuple(examples), notes


def joiner_of(examples: Sequence[Example]) -> str | None:
    """Return what is between all words of tagged sentences; None where there is no one answer.

    Where every word is one character there is nothing between them, whatever blanks the text has.
    """
    found, is_by_character = set[str](), True
    for example in examples:
        if isinstance(example, TaggedExample):
            ends = pairwise(example.spans)
            found.update(example.text[left[1] : right[0]] for left, right in ends)
            is_by_character &= all(end - start == 1 for start, end in example.spans)
    if found and is_by_character:
        return ""
    return found.pop() if len(found) == 1 else None


def _as_bio(
    sentences: Sequence[Sequence[str]], place: Callable[[int, int], str], path: str
) -> tuple[list[tuple[str, ...] | None], tuple[str, ...]]:
    """The tags of all sentences as BIO, and what was found in them; None for untagged files."""
    if not any(sentences):
        return [None] * len(sentences), ()
    for index, tags in enumerate(sentences):
        for position, tag in enumerate(tags):
            if split_tag(tag) is None:
                raise UserError(
                    f"{place(index, position)}: {tag!r} is no tag: write O, or a letter of BIO, "
                    "BIOES, BMES or BILOU with '-' and a type, as in B-PER"
                )
    scheme = detect_scheme(sentences)
    if scheme is None:
        letters = Counter(tag[0] for tags in sentences for tag in tags if tag != OUTSIDE)
        rarest = min(letters, key=lambda letter: letters[letter])
        first = next(
            place(index, position)
            for index, tags in enumerate(sentences)
            for position, tag in enumerate(tags)
            if tag[0] == rarest
        )
        raise UserError(
            f"{first}: {rarest}- and the other letters of the tags ({', '.join(sorted(letters))}) "
            "belong to no one scheme: use BIO, IOB1, BIOES, BMES or BILOU throughout"
        )
    bio: list[tuple[str, ...] | None] = []
    broken: list[str] = []
    for index, tags in enumerate(sentences):
        result, wrong = to_bio(tags, scheme)
        bio.append(result)
        broken += [place(index, position) for position in wrong]
    notes = [] if scheme == "BIO" else [f"{path}: tags converted from {scheme} to BIO"]
    if broken:
        first = broken[0].removeprefix(f"{path}, ")
        notes.append(
            f"{path}: {len(broken)} tags break the scheme {scheme} and were read as conlleval "
            f"does, the first at {first}"
        )
    return bio, tuple(notes)


def table_words(
    table: Table,
    *,
    words: str,
    tags: str,
    names: Sequence[str] | None,
    joiner: str | None,
    needs_tags: bool,
) -> ReadFile:
    """Read rows that hold a list of words and a list of tags, or both parted by blanks.

    Args:
        table: the rows.
        words: column of the words.
        tags: column of their tags.
        names: names of tags that are numbers from 0.
        joiner: as in `tagged_examples`.
        needs_tags: stop when there are no tags.

    Raises:
        UserError: not a list of words, or another number of tags than of words.
    """
    table.require(words)
    if needs_tags:
        table.require(tags)
    is_tagged = tags in table.columns
    all_words: list[list[str]] = []
    all_tags: list[list[str]] = []
    for number, row in table.rows:
        these = _list(table, number, words, row.get(words), None)
        if not these:
            raise UserError(f"{table.place(number, words)}: no words: fill or remove the row")
        these_tags = _list(table, number, tags, row.get(tags), names) if is_tagged else []
        if is_tagged and len(these_tags) != len(these):
            raise UserError(
                f"{table.place(number, tags)}: {len(these_tags)} tags for {len(these)} words: "
                "give each word one tag"
            )
        all_words.append(these)
        all_tags.append(these_tags)
    examples, notes = tagged_examples(
        all_words,
        all_tags,
        path=table.path,
        place=lambda s, w: f"{table.place(table.rows[s][0], tags)}, word {w + 1}",
        joiner=joiner,
    )
    return ReadFile(
        path=table.path,
        examples=examples,
        numbers=tuple(number for number, _ in table.rows),
        column=tags,
        unit=table.unit,
        notes=notes,
    )


def _list(
    table: Table, number: int, column: str, value: Any, names: Sequence[str] | None
) -> list[str]:
    items: Any = value.split() if isinstance(value, str) else value
    if not isinstance(items, list):
        raise UserError(
            f"{table.place(number, column)}: {value!r} where a list is needed: give a list of "
            "texts, or one text parted by blanks"
        )
    result: list[str] = []
    for item in items:
        is_number = isinstance(item, int) and not isinstance(item, bool)
        if is_number and names is not None and 0 <= item < len(names):
            result.append(names[item])
        elif isinstance(item, str) and item.strip():
            result.append(item)
        else:
            raise UserError(
                f"{table.place(number, column)}: {item!r} where a text is needed: give texts, or "
                "for tags that are numbers the list of labels"
            )
    return result
