"""Texts with the places of their entities, as CLUENER has them.

`"label": {type: {mention: [[first, last], ...]}}` gives the first and the last character of each
mention. Each character that is no blank is a word.
"""

from collections.abc import Sequence
from typing import Any

from amber.errors import UserError
from amber.tasks.entities import entities
from amber.tasks.example import TaggedExample
from amber.tasks.scheme import OUTSIDE
from amber.tasks.table import Table
from amber.tasks.task import ReadFile, TaskFile

Mention = tuple[int, int, str]  # start, end (exclusive), type


def table_mentions(table: Table, file: TaskFile, *, needs_tags: bool) -> ReadFile:
    """Turn rows with a text and its entities into examples.

    Of entities that overlap the longest is kept (of equals the first), the others are counted.

    Raises:
        UserError: a span outside its text, or one that does not hold its mention.
    """
    table.require(file.text)
    if needs_tags:
        table.require(file.label)
    is_tagged = file.label in table.columns
    id_column = file.id if file.id in table.columns else None
    examples: list[TaggedExample] = []
    num_left_out = 0
    for index, (number, row) in enumerate(table.rows):
        text = table.text(number, row, file.text)
        if not text.strip():
            raise UserError(f"{table.place(number, file.text)}: no words: fill or remove the row")
        spans = tuple((i, i + 1) for i, letter in enumerate(text) if not letter.isspace())
        tags = None
        if is_tagged:
            mentions = _mentions(table, number, file.label, row.get(file.label), text)
            kept = _without_overlaps(mentions)
            num_left_out += len(mentions) - len(kept)
            tags = _tags(spans, kept)
        name = str(index) if id_column is None else table.text(number, row, id_column)
        examples.append(TaggedExample(id=name, text=text, spans=spans, tags=tags))
    note = f"{table.path}: {num_left_out} entities inside or across others left out"
    return ReadFile(
        path=table.path,
        examples=tuple(examples),
        numbers=tuple(number for number, _ in table.rows),
        column=file.label,
        unit=table.unit,
        notes=(note,) if num_left_out else (),
    )


def _mentions(table: Table, number: int, column: str, value: Any, text: str) -> list[Mention]:
    """The entities of a row, checked against its text."""
    try:
        found = [
            (kind, mention, first, last + 1)
            for kind, mentions in value.items()
            for mention, places in mentions.items()
            for first, last in places
        ]
        if not all(type(start) is type(end) is int for _, _, start, end in found):
            raise TypeError("a place is no whole number")
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(
            f"{table.place(number, column)}: not entities as in "
            '{"person": {"Ann": [[0, 2]]}}: mend the record'
        ) from error
    for kind, mention, start, end in found:
        if not mention.strip() or not 0 <= start < end <= len(text) or text[start:end] != mention:
            raise UserError(
                f"{table.place(number, column)}: {mention!r} ({kind}) is not at the characters "
                f"{start} to {end - 1} of its text, which has {len(text)}: mend the span, counted "
                "from 0 and with its last character"
            )
    return [(start, end, kind) for kind, _, start, end in found]


def _without_overlaps(mentions: Sequence[Mention]) -> list[Mention]:
    kept: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (m[0] - m[1], m[0])):
        if all(mention[1] <= other[0] or other[1] <= mention[0] for other in kept):
            kept.append(mention)
    return kept


def mentions_of(example: TaggedExample, tags: Sequence[str]) -> list[Mention]:
    """Find the entities of a tagged text by its characters."""
    return [
        (example.spans[entity.start][0], example.spans[entity.stop - 1][1], entity.type)
        for entity in entities(tags)
    ]


def as_mentions(example: TaggedExample, tags: Sequence[str]) -> dict[str, dict[str, list]]:
    """Write the entities of a tagged text as `table_mentions` reads them."""
    found: dict[str, dict[str, list]] = {}
    for start, end, kind in mentions_of(example, tags):
        places = found.setdefault(kind, {}).setdefault(example.text[start:end], [])
        places.append([start, end - 1])
    return found


def _tags(spans: Sequence[tuple[int, int]], mentions: Sequence[Mention]) -> tuple[str, ...]:
    """BIO tags of the words; the first word of an entity begins it."""
    tags = [OUTSIDE] * len(spans)
    for start, end, kind in mentions:
        inside = [index for index, (left, _) in enumerate(spans) if start <= left < end]
        tags[inside[0]] = f"B-{kind}"
        for index in inside[1:]:
            tags[index] = f"I-{kind}"
    return tuple(tags)
