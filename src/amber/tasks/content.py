"""The whole text of a task's file: decompressed, decoded and cut into lines.

CRLF, CR and LF end a line. A byte order mark is removed; UTF-16 and UTF-32 are decoded when one
announces them, everything else is UTF-8 unless another encoding is named for what is not.
"""

import codecs
import json
import re
import stat
from pathlib import Path
from typing import Any

from amber.errors import UserError
from amber.tasks.config import Encoding
from amber.text.files import ARCHIVES, MAGIC, Compression, Source, read_chunks
from amber.text.lines import WIDE_MARKS

_SURROGATE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


def read_text(path: Path, *, encoding: Encoding = "utf-8") -> str:
    """Read a file as one string, each line ended by a line feed.

    Args:
        path: as it is or compressed, by its first bytes.
        encoding: of a file that is not valid UTF-8.

    Raises:
        UserError: unreadable, empty, or not in its encoding; names the line of the first bad byte.
    """
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):  # a pipe can be read once, and is read more than once
            what = "a folder" if stat.S_ISDIR(info.st_mode) else "not a regular file"
            raise UserError(f"{path}: {what}: give a file")
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): give a readable file") from (
            error
        )
    if head.startswith(ARCHIVES):
        raise UserError(f"{path}: an archive or a spreadsheet: unpack it, or save it as TSV or CSV")
    if head.startswith(b"PAR1\x15"):
        raise UserError(f"{path}: a Parquet file by its first bytes: give it the suffix .parquet")
    compression: Compression = "none"
    for name, magic in MAGIC.items():
        if head.startswith(magic):
            compression = name
    source = Source(path=path, format="txt", compression=compression, size=info.st_size)
    text = _decode(b"".join(read_chunks(source)), path, encoding)
    if 4 * text.count("\0") > len(text):
        raise UserError(
            f"{path}: full of NUL characters, as UTF-16 without a byte order mark is: convert the "
            "file to UTF-8"
        )
    if not text.strip("\ufeff \t\r\n"):
        raise UserError(f"{path}: the file is empty: give one with examples")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path, *, encoding: Encoding = "utf-8") -> list[str]:
    """Read the lines of a file without their ends; line 1 is the first of the list."""
    lines = read_text(path, encoding=encoding).split("\n")
    return lines[:-1] if not lines[-1] else lines


def read_json(path: Path) -> Any:
    """Read a file that is one JSON value.

    Raises:
        UserError: not JSON, or not text in it; names the line and column.
    """
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}, line {error.lineno}, character {error.colno}: not JSON ({error.msg}): "
            "mend or download the file again"
        ) from error
    except RecursionError as error:
        raise UserError(f"{path}: JSON nested too deeply: is this a file of examples?") from error
    except ValueError as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}): mend the file") from error
    refuse_half_characters(text, value, where=str(path))
    return value


def refuse_half_characters(source: str, value: Any, *, where: str) -> None:
    """Stop at half of a surrogate pair, which JSON can write as an escape and no text can hold.

    Raises:
        UserError: there is one.
    """
    if not _SURROGATE.search(source):
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = str(error.object)[error.start]
        raise UserError(
            f"{where}: \\u{ord(half):x} is half a character: remove it, or write the other half too"
        ) from error


def _decode(raw: bytes, path: Path, encoding: Encoding) -> str:
    for mark, wide in WIDE_MARKS:
        if raw.startswith(mark):
            return _strict(raw[len(mark) :], path, wide)
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if encoding != "utf-8":
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return _strict(raw, path, encoding)
    return _strict(raw, path, "utf-8")


def _strict(raw: bytes, path: Path, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        before = raw[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        place = f", line {before.count(10) + 1}" if encoding in ("utf-8", "gb18030") else ""
        raise UserError(
            f"{path}{place}: not valid {encoding.upper()} (byte 0x{raw[error.start]:02x}): "
            "convert the file to UTF-8, or name its encoding"
        ) from error
