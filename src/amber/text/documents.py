"""Read the raw documents of one file, whatever its format, as a stream.

A record that holds no text (a missing key, null, a number, a list, an empty string, a line that is
not JSON) is never turned into a string: it stops the reading with its line number or, under
`on_bad=skip`, is counted as `bad_records_skipped`. `replace` concerns bytes only, so there such a
record stops too.
"""

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from amber.errors import UserError
from amber.text.files import Source, read_chunks
from amber.text.lines import OnBad, read_lines

Separator = Literal["blank_line", "file", "line"]
Lines = Iterator[tuple[int, str]]

MAX_DOCUMENT_CHARACTERS = 256 << 20
PARQUET_ROWS = 256


def read_documents(
    source: Source,
    *,
    separator: Separator = "blank_line",
    text_field: str = "text",
    on_bad: OnBad = "stop",
    counts: Counter[str],
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[str]:
    """Yield the documents of a file in order, as they stand there.

    Args:
        source: the file.
        separator: what ends a document in `.txt`: a blank line, the end of the file, or each line.
        text_field: the column, or for `.jsonl` the key, dotted for nested objects (`a.b`).
        on_bad: what to do with what cannot be read as text.
        counts: what was replaced or skipped is added here.
        on_bytes: is told the bytes read from the disk.

    Raises:
        UserError: names the file and the line (for parquet the row).
    """
    if source.format == "parquet":
        yield from _parquet(source, text_field, on_bad, counts, on_bytes)
        return
    lines = read_lines(source, on_bad=on_bad, counts=counts, on_bytes=on_bytes)
    if source.format == "txt":
        yield from _text(source, lines, separator)
    elif source.format == "jsonl":
        yield from _json_lines(source, lines, text_field, on_bad, counts)
    elif source.format == "tsv":
        rows = ((number, line.split("\t")) for number, line in lines)
        yield from _table(source, rows, text_field, on_bad, counts)
    else:
        yield from _table(source, _csv_rows(source, lines), text_field, on_bad, counts)


def _text(source: Source, lines: Lines, separator: Separator) -> Iterator[str]:
    if separator == "line":
        for _, line in lines:
            if line and not line.isspace():
                yield line
        return
    held: list[str] = []
    size = 0
    for number, line in lines:
        if line.strip("\ufeff \t") and not line.isspace():
            held.append(line)
            size += len(line) + 1
            if size > MAX_DOCUMENT_CHARACTERS:
                raise UserError(
                    f"{source.path}, line {number}: a document longer than "
                    f"{MAX_DOCUMENT_CHARACTERS >> 20} million characters: put blank lines between "
                    "documents, or set separator to line"
                )
        elif separator == "blank_line" and held:
            yield "\n".join(held)
            held, size = [], 0
    if held:
        yield "\n".join(held)


def _bad_record(
    source: Source, place: str, reason: str, on_bad: OnBad, counts: Counter[str]
) -> None:
    """Count the record, or stop at it."""
    if on_bad != "skip":
        raise UserError(f"{source.path}, {place}: {reason}: mend the record, or set on_bad to skip")
    counts["bad_records_skipped"] += 1


def _json_lines(
    source: Source, lines: Lines, text_field: str, on_bad: OnBad, counts: Counter[str]
) -> Iterator[str]:
    blank: list[int] = []  # blank lines at the end of the file are no fault, others are
    for number, line in lines:
        line = line.strip("\ufeff \t")
        if not line:
            blank.append(number)
            continue
        for place in blank:
            _bad_record(source, f"line {place}", "blank line between records", on_bad, counts)
        blank.clear()
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = f"not a JSON record ({error})"
            _bad_record(source, f"line {number}", reason, on_bad, counts)
            continue
        value, reason = _field(record, text_field)
        if reason is not None:
            _bad_record(source, f"line {number}", reason, on_bad, counts)
        elif value is not None:
            yield value


def _field(record: Any, text_field: str) -> tuple[str | None, str | None]:
    """The text of a JSON record, or the reason why there is none."""
    if not isinstance(record, dict):
        return None, f"a JSON {_json_kind(record)} where an object is needed"
    value: Any = record
    if text_field in record:
        value = record[text_field]
    else:
        for key in text_field.split("."):
            if not isinstance(value, dict) or key not in value:
                have = ", ".join(list(record)[:8])
                return None, f"no key '{text_field}' in the record (it has: {have})"
            value = value[key]
    if not isinstance(value, str):
        return None, f"the value of '{text_field}' is {_json_kind(value)}, not a string"
    if not value:
        return None, f"the value of '{text_field}' is an empty string"
    return value, None


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a string"


def _csv_rows(source: Source, lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Rows by the usual quoting rules, each with the number of its first line."""
    csv.field_size_limit(MAX_DOCUMENT_CHARACTERS)
    number = 0

    def with_ends() -> Iterator[str]:
        nonlocal number
        for number, line in lines:  # noqa: B007 (the row's last line is what is wanted)
            yield line + "\n"

    reader = csv.reader(with_ends(), strict=True)
    while True:
        start = number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{source.path}, line {start}: not a row of CSV ({error}): close or double the "
                "quotes in it, or save the file as .tsv, where quotes are literal"
            ) from error
        yield start, row


def _table(
    source: Source,
    rows: Iterator[tuple[int, list[str]]],
    text_field: str,
    on_bad: OnBad,
    counts: Counter[str],
) -> Iterator[str]:
    """The text column of a table whose first line names the columns."""
    _, header = next(rows, (1, []))
    header = [name.strip() for name in header]
    if header.count(text_field) != 1:
        if not any(header):
            raise UserError(f"{source.path}, line 1: no header: put the names of the columns there")
        raise UserError(
            f"{source.path}, line 1: {header.count(text_field)} columns are named '{text_field}' "
            f"(the columns are: {', '.join(header)}): set text_field"
        )
    column = header.index(text_field)
    blank: list[int] = []
    for number, row in rows:
        if not any(row):
            blank.append(number)
            continue
        for place in blank:
            _bad_record(source, f"line {place}", "blank line between rows", on_bad, counts)
        blank.clear()
        if len(row) < len(header) or any(row[len(header) :]):
            reason = f"{len(row)} columns where the header has {len(header)}"
            _bad_record(source, f"line {number}", reason, on_bad, counts)
        elif not row[column]:
            reason = f"nothing in the column '{text_field}'"
            _bad_record(source, f"line {number}", reason, on_bad, counts)
        else:
            yield row[column]


def _parquet(
    source: Source,
    text_field: str,
    on_bad: OnBad,
    counts: Counter[str],
    on_bytes: Callable[[int], None] | None,
) -> Iterator[str]:
    with tempfile.TemporaryFile() as whole:
        if source.compression != "none":  # parquet is read from its end: it must lie unpacked
            for chunk in read_chunks(source):
                whole.write(chunk)
            whole.seek(0)
        try:
            file = pq.ParquetFile(source.path if source.compression == "none" else whole)
            names = file.schema_arrow.names
            if text_field not in names:
                raise UserError(
                    f"{source.path}: no column '{text_field}' (the columns are: "
                    f"{', '.join(names)}): set text_field"
                )
            kind = file.schema_arrow.field(text_field).type
            value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not (
                pa.types.is_string(value_kind)
                or pa.types.is_large_string(value_kind)
                or pa.types.is_string_view(value_kind)
            ):
                raise UserError(
                    f"{source.path}: column '{text_field}' holds {kind}, not strings: choose "
                    "another "
                    "text_field"
                )
            row = 0
            done = 0
            for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=[text_field]):
                for value in batch.column(0).to_pylist():
                    row += 1
                    if value:
                        yield value
                    else:
                        reason = "null" if value is None else "an empty string"
                        reason = f"the value of '{text_field}' is {reason}"
                        _bad_record(source, f"row {row}", reason, on_bad, counts)
                if on_bytes is not None:
                    now = source.size * row // max(1, file.metadata.num_rows)
                    on_bytes(now - done)
                    done = now
        except (pa.ArrowException, OSError) as error:
            first = str(error).splitlines()[0]
            raise UserError(f"{source.path}: not a readable parquet file ({first})") from error
