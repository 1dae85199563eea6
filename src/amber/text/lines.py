"""Turn the bytes of a file into lines of text.

CRLF, CR and LF all end a line, in every reader; the last line needs no end. A byte order mark is
removed; UTF-8 is the rule, UTF-16 and UTF-32 are decoded when a byte order mark announces them.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from amber.errors import UserError
from amber.text.files import Source, read_chunks

OnBad = Literal["stop", "replace", "skip"]

MAX_LINE_BYTES = 64 << 20
WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)")


def read_lines(
    source: Source,
    *,
    on_bad: OnBad,
    counts: Counter[str],
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end).

    Args:
        source: the file.
        on_bad: what to do with a line that is not valid text: stop, put U+FFFD for its bad bytes,
        or
            leave it out.
        counts: `bad_lines_replaced` and `bad_lines_skipped` are added here.
        on_bytes: is told the bytes read from the disk.

    Raises:
        UserError: a bad line under `stop`, or a line above 64 MB.
    """
    chunks = read_chunks(source, on_bytes=on_bytes)
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= 4:
            break
    wide = next((pair for pair in WIDE_MARKS if first.startswith(pair[0])), None)
    offset: int | None = 0
    if wide is not None:
        mark, encoding = wide
        chunks = _to_utf8(first[len(mark) :], chunks, encoding)
        first, offset = b"", None
    elif first.startswith(codecs.BOM_UTF8):
        first, offset = first[3:], 3
    number = 0
    for block in _whole_lines(source, first, chunks):
        try:
            lines = block.decode("utf-8")
        except UnicodeDecodeError:
            yield from _decode_each(source, block, number, offset, on_bad, counts)
            number += sum(1 for _ in _LINE.finditer(block))
        else:
            if "\r" in lines:
                lines = lines.replace("\r\n", "\n").replace("\r", "\n")
            split = lines.split("\n")
            split.pop()
            yield from enumerate(split, number + 1)
            number += len(split)
        if offset is not None:
            offset += len(block)


def _whole_lines(source: Source, first: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the stream after line ends, never between CR and LF; end the last line."""
    carry = first
    for chunk in chunks:
        data = carry + chunk
        usable = len(data) - 1 if data.endswith(b"\r") else len(data)
        cut = max(data.rfind(b"\n", 0, usable), data.rfind(b"\r", 0, usable)) + 1
        if cut:
            yield data[:cut]
        carry = data[cut:]
        if len(carry) > MAX_LINE_BYTES:
            raise UserError(
                f"{source.path}: a line is longer than {MAX_LINE_BYTES >> 20} MB: is this text? "
                "break "
                "its lines"
            )
    if carry:
        yield carry if carry.endswith((b"\n", b"\r")) else carry + b"\n"


def _to_utf8(first: bytes, chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Recode; what cannot be read in the wide encoding becomes bytes that are not UTF-8 either."""
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    try:
        yield decoder.decode(first).encode("utf-8", "surrogatepass")
        for chunk in chunks:
            yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # half a character at the end of the file
        yield b"\xff"


def _decode_each(
    source: Source,
    block: bytes,
    number: int,
    offset: int | None,
    on_bad: OnBad,
    counts: Counter[str],
) -> Iterator[tuple[int, str]]:
    """Decode line by line, so that the bad ones are known."""
    for index, match in enumerate(_LINE.finditer(block), number + 1):
        raw = match.group(1)
        try:
            yield index, raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if on_bad == "stop":
                where = f"{source.path}, line {index}"
                if offset is not None:
                    where += f", byte {offset + match.start() + error.start}"
                kind = (
                    "UTF-8" if offset is not None else "the encoding that its first bytes announce"
                )
                raise UserError(
                    f"{where}: not valid {kind} (byte 0x{raw[error.start]:02x}): "
                    "convert the file to UTF-8, or set on_bad to replace or skip"
                ) from error
            if on_bad == "replace":
                counts["bad_lines_replaced"] += 1
                yield index, raw.decode("utf-8", "replace")
            else:
                counts["bad_lines_skipped"] += 1
