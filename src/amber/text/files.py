"""Find the files of a corpus and read their bytes, decompressed by content and not by name."""

import bz2
import glob
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import zstandard

from amber.errors import UserError

Format = Literal["txt", "jsonl", "csv", "tsv", "parquet"]
Compression = Literal["none", "gz", "bz2", "zst", "xz"]

FORMATS: dict[str, Format] = {
    ".txt": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
COMPRESSED_SUFFIXES = {".gz", ".bz2", ".zst", ".xz"}
MAGIC: dict[Compression, bytes] = {
    "gz": b"\x1f\x8b",
    "bz2": b"BZh",
    "zst": b"\x28\xb5\x2f\xfd",
    "xz": b"\xfd7zXZ\x00",
}
ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf")
"""How files of several files begin, and spreadsheets (.xlsx, .ods)."""
READ_BYTES = 1024  # small, because 1 kB of repetitive compressed text can hold 40 MB
CHUNK_BYTES = 1 << 20
ZSTD_MAX_WINDOW = 1 << 31  # files made with `zstd --long=31` or less


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One file of the corpus."""

    path: Path
    format: Format
    compression: Compression
    size: int
    """Bytes on disk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFiles:
    """What the paths led to."""

    sources: tuple[Source, ...]
    """In sorted order of their paths."""
    skipped: tuple[str, ...]
    """`path: reason` for everything in a folder or glob that was passed over."""


def find_sources(paths: Sequence[str | Path]) -> FoundFiles:
    """List the files behind files, folders and globs, each once and in sorted order.

    A folder is searched to the bottom; in it (and in a glob) hidden names, links in a circle and
    names of other kinds are passed over and listed. A file that is named itself must be of a known
    kind.

    Raises:
        UserError: nothing there, not readable, or not a kind of file that can be read.
    """
    named: list[Path] = []
    inside: list[Path] = []
    skipped: list[str] = []
    for item in paths:
        path = Path(item)
        if os.path.lexists(path):
            targets, is_named = [path], True
        else:
            targets, is_named = (
                [Path(p) for p in sorted(glob.glob(str(item), recursive=True))],
                False,
            )
            if not targets:
                raise UserError(f"{item}: no such file or folder, and no file matches it as a glob")
        for target in targets:
            if target.is_dir():
                inside += _walk(target, skipped)
            else:
                (named if is_named else inside).append(target)
    sources: dict[str, Source] = {}
    for path in sorted(set(named)) + sorted(set(inside) - set(named)):
        source = _identify(path, path in set(named), skipped)
        if source is None:
            continue
        if os.path.realpath(path) in sources:
            skipped.append(f"{path}: the same file is named twice")
        else:
            sources[os.path.realpath(path)] = source
    if not sources:
        names = ", ".join(str(p) for p in paths) or "no path"
        raise UserError(
            f"{names}: no text found ({len(skipped)} files skipped): give files, folders or "
            "globs of "
            f"{', '.join(FORMATS)}, as they are or compressed with gz, bz2, zst or xz"
        )
    ordered = sorted(sources.values(), key=lambda s: s.path.as_posix())
    return FoundFiles(sources=tuple(ordered), skipped=tuple(sorted(skipped)))


def _walk(folder: Path, skipped: list[str]) -> list[Path]:
    """List every file below a folder, each folder entered once."""
    found: list[Path] = []
    entered: set[tuple[int, int]] = set()

    def fail(error: OSError) -> None:
        raise UserError(
            f"{error.filename}: cannot be read ({error.strerror}): change its permissions"
        )

    for here, folders, names in os.walk(folder, followlinks=True, onerror=fail):
        status = os.stat(here)
        if (status.st_dev, status.st_ino) in entered:
            skipped.append(f"{here}: a link to a folder that is read already")
            folders.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        hidden = [name for name in folders if name.startswith(".")]
        skipped += [f"{Path(here, name)}: hidden" for name in hidden]
        folders[:] = sorted(set(folders) - set(hidden))
        found += [Path(here, name) for name in names]
    return found


def file_format(path: Path) -> Format | None:
    """The format by the name, a suffix of compression set aside; None when it is not known."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _identify(path: Path, is_named: bool, skipped: list[str]) -> Source | None:
    """Look at one file's name, kind and first bytes; None when it is skipped."""
    reason = None
    if path.name.startswith(".") and not is_named:
        reason = "hidden"
    else:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            reason = f"a link that leads nowhere ({error.strerror})"
        else:
            if not stat.S_ISREG(mode):
                reason = "not a regular file"
            elif file_format(path) is None:
                reason = "not a kind of file that holds text here"
    if reason is not None:
        if is_named:
            raise UserError(
                f"{path}: {reason}: give one of {', '.join(FORMATS)}, or rename the file"
            )
        skipped.append(f"{path}: {reason}")
        return None
    try:
        with path.open("rb") as file:
            head = file.read(8)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}): change its permissions"
        ) from error
    compression = _compression(head)
    if head.startswith(ARCHIVES):
        raise UserError(f"{path}: an archive of files: unpack it and give the files in it")
    name_format = file_format(path)
    assert name_format is not None
    format_: Format = "parquet" if head.startswith(b"PAR1") else name_format
    return Source(path=path, format=format_, compression=compression, size=size)


def _compression(head: bytes) -> Compression:
    for name, magic in MAGIC.items():
        if head.startswith(magic):
            return name
    return "none"


def read_chunks(
    source: Source, *, on_bytes: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yield the decompressed content in pieces of about 1 MB, in bounded memory.

    Args:
        source: the file.
        on_bytes: is told the number of bytes read from the disk, piece by piece.

    Raises:
        UserError: the file cannot be read, is damaged or cut off.
    """
    try:
        blocks = _blocks(source, on_bytes)
        if source.compression == "none":
            yield from blocks
            return
        pieces: list[bytes] = []
        size = 0
        for data in _decompress(blocks, source.compression):
            pieces.append(data)
            size += len(data)
            if size >= CHUNK_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
        yield b"".join(pieces)
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError) as error:
        raise _damaged(source, error) from error
    except OSError as error:
        if error.errno is None:  # how bz2 reports bad content
            raise _damaged(source, error) from error
        raise UserError(f"{source.path}: cannot be read ({error.strerror})") from error


def _damaged(source: Source, error: Exception) -> UserError:
    return UserError(
        f"{source.path}: the {source.compression} data is damaged or cut off ({error}): "
        "copy or download the file again"
    )


def _blocks(source: Source, on_bytes: Callable[[int], None] | None) -> Iterator[bytes]:
    size = CHUNK_BYTES if source.compression == "none" else READ_BYTES
    with source.path.open("rb") as file:
        while block := file.read(size):
            if on_bytes is not None:
                on_bytes(len(block))
            yield block


def _decompress(blocks: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    """Decompress a stream of one or several members; a member without its end is an EOFError."""
    member: Any = None
    for block in blocks:
        rest = block
        while rest:
            if member is None:
                if not rest.strip(b"\0"):  # padding between or after members
                    break
                member = _decompressor(compression)
            yield member.decompress(rest)
            if not member.eof:
                break
            rest, member = member.unused_data, None
    if member is not None:
        raise EOFError("the end is missing")


def _decompressor(compression: Compression) -> Any:
    if compression == "gz":
        return zlib.decompressobj(wbits=31)
    if compression == "bz2":
        return bz2.BZ2Decompressor()
    if compression == "xz":
        return lzma.LZMADecompressor()
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_MAX_WINDOW).decompressobj()
