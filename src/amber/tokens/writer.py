"""Write a data folder beside its final place and rename it when all is on the disk."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from amber.errors import UserError
from amber.tokens.shards import MANIFEST_NAME, FileMark, Split, token_dtype, words_name

FILE_BYTES = 256 << 20
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_free(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that holds something.

    Raises:
        UserError: `out` is a file, or a folder with content that must not be replaced.
    """
    if not os.path.lexists(out):
        return
    if not out.is_dir():
        raise UserError(f"{out}: a file, not a folder: choose another out")
    if not any(out.iterdir()):
        return
    if not overwrite:
        raise UserError(f"{out}: not empty: choose another folder, or set overwrite")
    if not (out / MANIFEST_NAME).is_file():
        raise UserError(
            f"{out}: holds something else than prepared data, which overwrite does not touch: "
            "choose "
            "another folder"
        )


def check_disk(out: Path, num_bytes: int) -> None:
    """Refuse to start when the disk cannot hold about so many bytes.

    Raises:
        UserError: with both numbers.
    """
    folder = next(p for p in (out.absolute(), *out.absolute().parents) if p.is_dir())
    free = shutil.disk_usage(folder).free
    if free < num_bytes:
        raise UserError(
            f"{out}: {free / 1e6:.0f} MB free where about {num_bytes / 1e6:.0f} MB are needed: "
            "free "
            "some space, or choose another disk"
        )


@contextmanager
def written_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give an empty folder beside `out`, which becomes `out` at the end, or goes on an error.

    Raises:
        UserError: the target holds something, or the disk is full.
    """
    out = Path(os.path.realpath(out))
    check_free(out, overwrite=overwrite)
    partial = out.parent / f".{out.name}.tmp-{os.getpid()}"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(out)
        partial.mkdir()
        yield partial
        for path in sorted(partial.rglob("*")):
            _sync(path)
        _sync(partial)
        _put_in_place(partial, out, overwrite)
    except OSError as error:
        if error.errno in FULL_DISK:
            raise UserError(
                f"{out}: the disk is full ({error.strerror}): free some space, or choose "
                "another disk; "
                "nothing was left behind"
            ) from error
        if isinstance(error, PermissionError):
            raise UserError(
                f"{out}: cannot be written ({error.strerror}): choose another folder"
            ) from error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, out: Path, overwrite: bool) -> None:
    check_free(out, overwrite=overwrite)
    if out.is_dir() and any(out.iterdir()):
        old = out.parent / f".{out.name}.old-{os.getpid()}"
        out.rename(old)
        partial.rename(out)
        shutil.rmtree(old)
    else:
        partial.rename(out)  # an empty folder gives way
    _sync(out.parent)


def _remove_leftovers(out: Path) -> None:
    """Remove what killed runs left beside `out`."""
    for path in out.parent.glob(f".{glob_escape(out.name)}.tmp-*"):
        pid = path.name.rpartition("-")[2]
        if pid.isdigit() and not _is_running(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def glob_escape(name: str) -> str:
    """A file name as a pattern that matches only itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class SplitWriter:
    """Appends documents to the files of one split; a document lies in one file."""

    def __init__(
        self,
        folder: Path,
        split: Split,
        vocab_size: int,
        *,
        file_bytes: int = FILE_BYTES,
        has_words: bool = False,
    ) -> None:
        self._folder = folder
        self._split = split
        self._dtype = token_dtype(vocab_size)
        self._file_tokens = max(1, file_bytes // self._dtype.itemsize)
        self._lengths: list[np.ndarray] = []
        self._file: Any = None
        self._num_in_file = 0
        self._words: Any = (folder / words_name(split)).open("wb") if has_words else None
        self._pending = np.zeros(0, dtype=bool)  # fewer than 8 bits that do not fill a byte
        self.files: list[str] = []
        self.num_documents = 0
        self.num_tokens = 0

    def add(
        self, ids: np.ndarray, lengths: np.ndarray, is_word_start: np.ndarray | None = None
    ) -> None:
        """Append documents, given as their ids end to end and their lengths in tokens.

        Args:
            ids: of all documents.
            lengths: of each document.
            is_word_start: one for each id, if the data has words.
        """
        if self._words is not None:
            assert is_word_start is not None
            self._add_words(is_word_start)
        lengths = lengths.astype(np.int64)
        ends = np.cumsum(lengths)
        done = 0
        while done < len(lengths):
            base = int(ends[done - 1]) if done else 0
            room = self._file_tokens - self._num_in_file
            last = int(np.searchsorted(ends, base + room, side="right"))
            if last <= done:  # no room, or less than none after a long document
                if self._num_in_file:
                    self._close_file()
                    continue
                last = done + 1  # a document longer than a file gets one of its own
            if self._file is None:
                self.files.append(f"{self._split}-{len(self.files):05d}.bin")
                self._file = (self._folder / self.files[-1]).open("wb")
            piece = ids[base : int(ends[last - 1])]
            self._file.write(piece.astype(self._dtype, copy=False).tobytes())
            self._num_in_file += len(piece)
            done = last
        self._lengths.append(lengths)
        self.num_documents += len(lengths)
        self.num_tokens += int(lengths.sum())

    def _add_words(self, is_word_start: np.ndarray) -> None:
        bits = np.concatenate([self._pending, is_word_start])
        whole = len(bits) // 8 * 8
        self._words.write(np.packbits(bits[:whole], bitorder="little").tobytes())
        self._pending = bits[whole:]

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._num_in_file = None, 0

    def close(self) -> None:
        """Close the last files and write the offsets."""
        if self._words is not None:
            self._words.write(np.packbits(self._pending, bitorder="little").tobytes())
        self.abandon()
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *self._lengths])
        np.save(self._folder / f"{self._split}.offsets.npy", np.cumsum(lengths))

    def abandon(self) -> None:
        """Close the files that are open, after an error."""
        self._close_file()
        if self._words is not None:
            self._words.close()
            self._words = None


def mark_files(folder: Path) -> dict[str, FileMark]:
    """Size and checksum of every file below the folder, by its relative name."""
    marks = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        marks[path.relative_to(folder).as_posix()] = FileMark(
            size=path.stat().st_size, sha256=sha256
        )
    return marks
