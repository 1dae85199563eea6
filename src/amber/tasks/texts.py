"""Rows of a table -> examples with a text, or a pair of texts, and a label."""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from amber.errors import UserError
from amber.tasks.content import read_lines
from amber.tasks.example import Kind, TextExample
from amber.tasks.table import Row, Table, read_table
from amber.tasks.task import ReadFile, Task, TaskFile

MSR_IDS = "dev_ids.tsv"
"""The pairs of MRPC's original train file that are GLUE's dev set."""
LARGEST = 1e30
"""Number that can be learned; float32 ends at 3e38, and scores are added up and scaled."""
_WHOLE = re.compile(r"[+-]?\d+\.0+")
_TREC = re.compile(r"([A-Za-z]+):\S+\s+(\S.*)")


def read_texts(path: Path, file: TaskFile, task: Task, *, needs_label: bool) -> ReadFile:
    """Read the examples of one file.

    Args:
        path: of the file.
        file: its layout.
        task: gives the kind of label, and the rules for labels.
        needs_label: stop when there is no label; otherwise a file without labels is unlabelled.

    Raises:
        UserError: a bad row, or a column that is not there.
    """
    if file.reader == "trec":
        return _trec(path, file)
    table = read_table(
        path,
        table_format="tsv" if file.reader == "tabs" else None,
        has_header=file.has_header,
        encoding=file.encoding,
        is_ragged=file.is_ragged,
        skips_short=file.skips_short,
        keeps_blank=file.keeps_blank,
    )
    if file.reader in ("msr_train", "msr_dev"):
        table = _msr_part(table, path.parent / MSR_IDS, is_dev=file.reader == "msr_dev")
    return table_texts(table, file, task, needs_label=needs_label)


def table_texts(table: Table, file: TaskFile, task: Task, *, needs_label: bool) -> ReadFile:
    """Turn the rows of a table into examples; see `read_texts`."""
    text_of = _text_reader(table, file)
    is_labelled = _is_labelled(table, file.label, task.kind, needs_label=needs_label)
    id_column = file.id if file.id in table.columns else None
    examples: list[TextExample] = []
    numbers: list[int] = []
    num_unagreed = num_empty = 0
    for index, (number, row) in enumerate(table.rows):
        text, pair = text_of(number, row)
        label = _label(table, number, row, file.label, task) if is_labelled else None
        if task.no_label is not None and label == task.no_label:
            num_unagreed += 1
            continue
        num_empty += not text.strip() or (pair is not None and not pair.strip())
        name = str(index) if id_column is None else table.text(number, row, id_column)
        examples.append(TextExample(id=name, text=text, pair=pair, label=label))
        numbers.append(number)
    notes = []
    if table.num_short:
        notes.append(f"{table.path}: {_rows(table.num_short)} with too few columns left out")
    if num_unagreed:
        notes.append(f"{table.path}: {_rows(num_unagreed)} labelled {task.no_label!r} left out")
    if num_empty:
        notes.append(f"{table.path}: {_rows(num_empty)} with an empty text")
    return ReadFile(
        path=table.path,
        examples=tuple(examples),
        numbers=tuple(numbers),
        column=file.label,
        unit=table.unit,
        notes=tuple(notes),
    )


def _rows(number: int) -> str:
    return f"{number:,} {'row' if number == 1 else 'rows'}"


def label_name(value: Any) -> str | None:
    """The name of a label; None where there is no text, number or truth value.

    Blanks around it do not count, an accent is part of its letter (NFC), a truth value is `true` or
    `false`, and a whole number written with a decimal point (`1.0`) is that whole number (`1`): the
    same label in files that were saved in different ways has one name.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str | int | float | Decimal):
        name = unicodedata.normalize("NFC", str(value).strip())
        return name.split(".")[0] if _WHOLE.fullmatch(name) else name
    return None


def _text_reader(table: Table, file: TaskFile) -> Callable[[int, Row], tuple[str, str | None]]:
    """Check the columns of the texts; return what reads a row."""
    if file.reader == "csl":
        return _csl(table)
    if file.reader == "cluewsc":
        return _cluewsc(table)
    for column in (file.text, file.joined, file.pair):
        if column is not None:
            table.require(column)

    def read(number: int, row: Row) -> tuple[str, str | None]:
        text = table.text(number, row, file.text)
        if file.joined is not None:
            text = f"{text} {table.text(number, row, file.joined)}"
        return text, None if file.pair is None else table.text(number, row, file.pair)

    return read


def _is_labelled(table: Table, column: str, kind: Kind, *, needs_label: bool) -> bool:
    """Whether the rows carry labels: where none is needed, an empty column has none."""
    if needs_label:
        table.require(column)
        return True
    if column not in table.columns:
        return False
    table.require(column)
    empty = (None, "", [])
    return kind == "multilabel" or any(row.get(column) not in empty for _, row in table.rows)


def _label(
    table: Table, number: int, row: Row, column: str, task: Task
) -> str | float | tuple[str, ...]:
    value = row.get(column)
    if task.kind == "multilabel":
        return _labels(table, number, value, column, task)
    name = label_name(value)
    if not name:
        if value is not None and not isinstance(value, str | float):
            raise UserError(
                f"{table.place(number, column)}: a {type(value).__name__} where a label is needed: "
                "write a text or a number"
            )
        found = "nothing" if value is None or name == "" else repr(value)
        raise UserError(
            f"{table.place(number, column)}: {found} where a label is needed: label the row or "
            "remove it"
        )
    if task.kind != "regression":
        return task.spellings.get(name, name)
    try:
        score = math.nan if isinstance(value, bool) or "_" in name else float(name)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(
            f"{table.place(number, column)}: {value!r} is not a number to compute with: write "
            "a finite number with a decimal point"
        )
    if abs(score) > LARGEST:
        raise UserError(
            f"{table.place(number, column)}: {value!r} is too large to learn: divide all numbers"
        )
    return score


def _labels(table: Table, number: int, value: Any, column: str, task: Task) -> tuple[str, ...]:
    """The names in a multi-label cell, each once; an empty cell has none."""
    parts = value.split(task.separator) if isinstance(value, str) else value
    names = [label_name(part) for part in parts] if isinstance(parts, Sequence) else [None]
    if isinstance(value, str):
        names = [name for name in names if name]
    if not all(names):
        raise UserError(
            f"{table.place(number, column)}: {value!r} where labels are needed: write names "
            f"separated by {task.separator!r}, or a list of names"
        )
    return tuple(dict.fromkeys(task.spellings.get(str(name), str(name)) for name in names))


def _csl(table: Table) -> Callable[[int, Row], tuple[str, str | None]]:
    """CSL: the keywords, and the abstract that they are said to be of."""
    table.require("keyword")
    table.require("abst")

    def read(number: int, row: Row) -> tuple[str, str | None]:
        words = row.get("keyword")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise UserError(
                f"{table.place(number, 'keyword')}: {words!r} where a list of words is needed: "
                "mend the record"
            )
        return " ".join(words), table.text(number, row, "abst")

    return read


def _cluewsc(table: Table) -> Callable[[int, Row], tuple[str, str | None]]:
    """CLUEWSC: the text with `_` around the noun and `[ ]` around the pronoun, as in CLUE."""
    table.require("target")
    table.require("text")

    def read(number: int, row: Row) -> tuple[str, str | None]:
        text, target = table.text(number, row, "text"), row.get("target")
        marks: list[tuple[int, int, str]] = []
        for span, opening, closing in (("span1", "_", "_"), ("span2", "[", "]")):
            words = target.get(f"{span}_text") if isinstance(target, dict) else None
            start = target.get(f"{span}_index") if isinstance(target, dict) else None
            if (
                not isinstance(words, str)
                or not isinstance(start, int)
                or start < 0
                or text[start : start + len(words)] != words
            ):
                raise UserError(
                    f"{table.place(number, 'target')}: {words!r} is not at character {start} of "
                    "the text: mend the record"
                )
            marks += [(start, 1, opening), (start + len(words), 0, closing)]
        for place, _, mark in sorted(marks, reverse=True):
            text = text[:place] + mark + text[place:]
        return text, None

    return read


def _trec(path: Path, file: TaskFile) -> ReadFile:
    """TREC: `COARSE:fine text` on each line; the label is the coarse class."""
    examples: list[TextExample] = []
    numbers: list[int] = []
    for number, line in enumerate(read_lines(path, encoding=file.encoding), 1):
        if not line.strip():
            if file.keeps_blank:
                examples.append(TextExample(id=str(len(examples)), text="", label=None))
                numbers.append(number)
            continue
        found = _TREC.fullmatch(line.strip())
        if found is None:
            raise UserError(
                f"{path}, line {number}, column 1: {line[:30]!r} does not begin with a class as in "
                "'NUM:dist How far ...': mend the line"
            )
        examples.append(
            TextExample(id=str(len(examples)), text=found.group(2), label=found.group(1))
        )
        numbers.append(number)
    return ReadFile(path=str(path), examples=tuple(examples), numbers=tuple(numbers), column="1")


def _msr_part(table: Table, ids_path: Path, *, is_dev: bool) -> Table:
    """The rows of MRPC's original train file that GLUE puts into train, or into dev."""
    dev: set[tuple[str, ...]] = set()
    if ids_path.exists():
        dev = {tuple(line.split("\t")[:2]) for line in read_lines(ids_path)}
    rows = tuple(
        (number, row)
        for number, row in table.rows
        if ((row.get("#1 ID"), row.get("#2 ID")) in dev) == is_dev
    )
    return Table(path=table.path, columns=table.columns, rows=rows)
