"""Tables of examples: TSV, CSV, JSON Lines and Parquet as rows of named columns.

In TSV a quote is a character like any other; in CSV the usual quoting rules hold. A cell is never
taken as missing because of what it says: NA, null, nan and None are text. Only JSON and Parquet
have values without text (None).
"""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from amber.config import suggest
from amber.errors import UserError
from amber.tasks.content import Encoding, read_lines, refuse_half_characters
from amber.text.files import COMPRESSED_SUFFIXES

TableFormat = Literal["tsv", "csv", "jsonl", "parquet"]
Row = dict[str, Any]

FORMATS: dict[str, TableFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}

MARKS_ADVICE = "part the columns by tabs in a .tsv file, by commas in a .csv file"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The rows of one file."""

    path: str
    """How messages name it."""
    columns: tuple[str, ...]
    """Without a header, the numbers from 1."""
    rows: tuple[tuple[int, Row], ...]
    """With the line (Parquet: the row) of each, from 1."""
    unit: Literal["line", "row"] = "line"
    num_short: int = 0
    """Rows left out because columns were missing, where that is allowed."""

    def place(self, number: int, column: str | None = None) -> str:
        """Name a row, or one of its cells, for a message."""
        cell = f", column {column!r}" if column is not None else ""
        return f"{self.path}, {self.unit} {number}{cell}"

    def require(self, column: str) -> None:
        """Stop when there is no such column.

        Raises:
            UserError: names the nearest column.
        """
        if self.columns.count(column) == 1:
            return
        if column in self.columns:
            raise UserError(
                f"{self.path}: {self.columns.count(column)} columns are named {column!r}: "
                "rename all but one"
            )
        advice = (
            "name it in the settings own.* of own data; with own.header false columns have numbers "
            "from 1"
        )
        if _holds_marks(self.columns):
            advice = MARKS_ADVICE
        raise UserError(
            f"{self.path}: no column {column!r}{suggest(column, list(self.columns))}: {advice}"
        )

    def text(self, number: int, row: Row, column: str) -> str:
        """The text in a cell.

        Raises:
            UserError: nothing there, or something else than text or a number.
        """
        value = row.get(column)
        if isinstance(value, str):
            return value
        is_nan = isinstance(value, float) and math.isnan(value)  # as pandas writes nothing
        is_missing = value is None or is_nan
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if is_number and not is_missing:
            return str(value)
        kind = "no value" if is_missing else f"a {type(value).__name__}"
        raise UserError(f"{self.place(number, column)}: {kind} where text is needed: put text")


def format_of(path: Path) -> TableFormat:
    """The format by the name, a suffix of compression set aside; TSV when it says nothing."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return FORMATS.get(suffixes[-1], "tsv") if suffixes else "tsv"


def read_table(
    path: Path,
    *,
    table_format: TableFormat | None = None,
    has_header: bool = True,
    encoding: Encoding = "utf-8",
    is_ragged: bool = False,
    skips_short: bool = False,
    keeps_blank: bool = False,
) -> Table:
    """Read a table, whole.

    Args:
        path: the file.
        table_format: None takes it from the name.
        has_header: the first line of TSV and CSV names the columns.
        encoding: of a file that is not valid UTF-8.
        is_ragged: a row may have more columns than the first one.
        skips_short: leave out and count rows with too few columns, instead of stopping.
        keeps_blank: a row whose cells are all empty is a row, not a blank line.

    Raises:
        UserError: unreadable, empty, or a bad row; names file and line.
    """
    kind = table_format or format_of(path)
    if kind == "parquet":
        return _parquet(path)
    lines = read_lines(path, encoding=encoding)
    if kind == "jsonl":
        return _json_lines(path, lines)
    cells = (
        ((number, line.split("\t")) for number, line in enumerate(lines, 1))
        if kind == "tsv"
        else _csv_cells(path, lines)
    )
    return _table(
        path,
        cells,
        has_header=has_header,
        is_ragged=is_ragged,
        skips_short=skips_short,
        keeps_blank=keeps_blank,
    )


def _table(
    path: Path,
    cells: Iterator[tuple[int, list[str]]],
    *,
    has_header: bool,
    is_ragged: bool,
    skips_short: bool,
    keeps_blank: bool,
) -> Table:
    columns: list[str] = []
    rows: list[tuple[int, Row]] = []
    blank: int | None = None
    num_short = 0
    for number, found in cells:
        is_row = keeps_blank and columns and len(found) >= len(columns)
        if not is_row and not any(cell.strip() for cell in found):
            blank = number
            continue
        if not columns:
            columns = _columns(found, has_header)
            blank = None
            if has_header:
                continue
        if blank is not None:
            raise UserError(
                f"{path}, line {blank}: a blank line between rows: remove it, or fill it"
            )
        if len(found) < len(columns):
            if skips_short:
                num_short += 1
                continue
            raise UserError(
                f"{path}, line {number}: {_count(len(found))} where {len(columns)} are needed "
                f"(column {columns[len(found)]!r} is missing): mend the row"
            )
        if any(cell.strip() for cell in found[len(columns) :]) and not is_ragged:
            advice = MARKS_ADVICE if _holds_marks(columns) else "remove what is too much"
            raise UserError(
                f"{path}, line {number}, column {len(columns) + 1}: {_count(len(found))} where "
                f"{len(columns)} {'is' if len(columns) == 1 else 'are'} expected: {advice}"
            )
        rows.append((number, dict(zip(columns, found, strict=False))))
    if not rows:
        raise UserError(f"{path}: the file has no rows after its header: give one with examples")
    return Table(path=str(path), columns=tuple(columns), rows=tuple(rows), num_short=num_short)


def _columns(first: Sequence[str], has_header: bool) -> list[str]:
    """The names of the columns; a tab at the end of the line makes none."""
    names = [name.strip() for name in first]
    while not names[-1]:
        names.pop()
    return names if has_header else [str(number) for number in range(1, len(names) + 1)]


def _holds_marks(columns: Sequence[str]) -> bool:
    """Whether the only column holds what parts columns in files of another kind."""
    return len(columns) == 1 and any(mark in columns[0] for mark in ",;\t")


def _count(number: int) -> str:
    return f"{number} column" if number == 1 else f"{number} columns"


def _csv_cells(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows by the usual quoting rules, each with the number of its first line."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            found = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{path}, line {start}: not a row of CSV ({error}): close or double the quotes "
                "in it, or save the file as .tsv, where quotes are literal"
            ) from error
        yield start, found


def _json_lines(path: Path, lines: Sequence[str]) -> Table:
    rows: list[tuple[int, Row]] = []
    columns: dict[str, None] = {}
    blank: int | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip("\ufeff \t"):
            blank = number
            continue
        if blank is not None and rows:
            raise UserError(f"{path}, line {blank}: a blank line between records: remove it")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{path}, line {number}: not a JSON record ({error}): put one object on each line"
            ) from error
        if not isinstance(record, dict):
            raise UserError(
                f"{path}, line {number}: a JSON {type(record).__name__} where an object is "
                "needed: put one object on each line"
            )
        refuse_half_characters(line, record, where=f"{path}, line {number}")
        rows.append((number, record))
        columns |= dict.fromkeys(record)
    return Table(path=str(path), columns=tuple(columns), rows=tuple(rows))


def _parquet(path: Path) -> Table:
    try:
        table = pq.ParquetFile(path).read()
        columns = [_values(column) for column in table.columns]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path}: not a readable Parquet file ({first}): give another") from error
    names = tuple(table.column_names)
    rows = tuple(
        (number, dict(zip(names, cells, strict=True)))
        for number, cells in enumerate(zip(*columns, strict=True), 1)
    )
    if not rows:
        raise UserError(f"{path}: the file has no rows: give one with examples")
    return Table(path=str(path), columns=names, rows=rows, unit="row")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times that Python has no value for stay as they are."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError):
        return list(column)
