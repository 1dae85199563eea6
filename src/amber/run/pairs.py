"""Read minimal pairs: two sentences of which one is acceptable, by paradigm and phenomenon.

The layouts of BLiMP (Warstadt et al. 2020) and ZhoBLiMP (Liu et al. 2024): JSON lines with
`sentence_good`, `sentence_bad`, `UID` for the paradigm (else the name of the file) and
`linguistics_term` or `phenomenon`.
"""

import json
import lzma
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from amber.errors import UserError
from amber.text.files import find_sources, read_chunks

GOOD, BAD, PARADIGM = "sentence_good", "sentence_bad", "UID"
PHENOMENON = ("linguistics_term", "phenomenon")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences, and where they stand."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str
    """Empty where the record names none."""

    place: str
    """File and line."""


def read_pairs(path: Path, *, limit: int | None = None) -> list[Pair]:
    """Read a JSONL file, the JSONL files in a folder, or those in a tar archive.

    Args:
        path: what to read; each may be compressed.
        limit: of pairs of each paradigm: the first ones.

    Raises:
        UserError: it cannot be read, a record is not such a pair, or there is none.
    """
    pairs: list[Pair] = []
    counts: Counter[str] = Counter()
    for name, content in _files(path):
        stem = PurePosixPath(name).name.partition(".")[0]
        for pair in _parse(content, name, stem):
            counts[pair.paradigm] += 1
            if limit is None or counts[pair.paradigm] <= limit:
                pairs.append(pair)
    if not pairs:
        raise UserError(f"{path}: holds no pairs: give JSON lines with {GOOD} and {BAD}")
    return pairs


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each JSONL file, sorted by name."""
    if path.is_file() and tarfile.is_tarfile(path):
        yield from _members(path)
        return
    for source in find_sources([path]).sources:
        if source.format == "jsonl":
            yield str(source.path), b"".join(read_chunks(source))


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the JSONL files of an archive."""
    try:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda each: each.name):
                name = PurePosixPath(member.name).name
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None and name.endswith(".jsonl") and not name.startswith("."):
                    yield f"{path}: {member.name}", file.read()
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise UserError(
            f"{path}: the archive is damaged or cut off ({error}): copy or download it again"
        ) from error


def _parse(content: bytes, name: str, stem: str) -> Iterator[Pair]:
    """Yield the pairs of a file; blank lines are passed over."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name}, line {line}: not valid UTF-8: convert the file") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: not a JSON record ({error}): mend the record") from error
        if not isinstance(record, dict):
            raise UserError(f"{place}: a JSON record that is no object: mend the record")
        yield Pair(
            good=_sentence(record, GOOD, place),
            bad=_sentence(record, BAD, place),
            paradigm=str(record.get(PARADIGM, stem)),
            phenomenon=str(next((record[key] for key in PHENOMENON if key in record), "")),
            place=place,
        )


def _sentence(record: dict[str, Any], key: str, place: str) -> str:
    """Return a sentence of a record.

    Raises:
        UserError: it is not there, or is no text.
    """
    if key not in record:
        have = ", ".join(list(record)[:8]) or "nothing"
        raise UserError(f"{place}: no key {key} in the record (it has: {have}): add it")
    value = record[key]
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{place}: {key} is {json.dumps(value)[:40]}: give a sentence")
    return value
