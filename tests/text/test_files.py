import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest
import zstandard

from amber.errors import UserError
from amber.text.files import find_sources, read_chunks

TEXT = b"one\n\ntwo\n" * 1000
PACK = {
    "none": lambda data: data,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def content(path: Path) -> bytes:
    (source,) = find_sources([path]).sources
    return b"".join(read_chunks(source))


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.zst"])
def test_compression_is_known_by_content_and_not_by_name(tmp_path, kind, name):
    (tmp_path / name).write_bytes(PACK[kind](TEXT))
    assert content(tmp_path / name) == TEXT


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_several_members_are_read_one_after_the_other(tmp_path, kind):
    (tmp_path / "a.txt").write_bytes(PACK[kind](b"one\n") + PACK[kind](b"two\n"))
    assert content(tmp_path / "a.txt") == b"one\ntwo\n"


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_a_cut_off_file_is_an_error_that_names_it(tmp_path, kind):
    (tmp_path / "a.txt").write_bytes(PACK[kind](os.urandom(5000))[:-30])
    with pytest.raises(UserError, match=r"a\.txt: .*damaged or cut off"):
        content(tmp_path / "a.txt")


def test_zstd_windows_above_the_library_limit_are_read(tmp_path):
    settings = zstandard.ZstdCompressionParameters.from_level(1, window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    (tmp_path / "a.txt").write_bytes(packer.compress(TEXT) + packer.flush())
    assert content(tmp_path / "a.txt") == TEXT


def test_a_folder_is_read_in_sorted_order_and_the_rest_is_listed(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("z.txt", "b/a.jsonl", ".hidden.txt", ".DS_Store", "image.png", ".git/x.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    (tmp_path / "again.txt").symlink_to(tmp_path / "z.txt")
    found = find_sources([tmp_path])
    names = [source.path.name for source in found.sources]
    assert names in (["again.txt", "a.jsonl"], ["a.jsonl", "z.txt"])
    skipped = " ".join(found.skipped)
    for part in (".hidden.txt", ".DS_Store", "image.png", ".git", "loop", "self.txt", "twice"):
        assert part in skipped


def test_the_order_does_not_depend_on_the_order_of_the_arguments(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.txt").write_text("x")
    paths = [str(tmp_path / f"{name}.txt") for name in "bca"]
    globbed = find_sources([str(tmp_path / "*.txt")])
    assert find_sources(paths).sources == globbed.sources == find_sources([tmp_path]).sources
    assert [s.path.name for s in globbed.sources] == ["a.txt", "b.txt", "c.txt"]


def test_nothing_found_and_wrong_kinds_are_errors(tmp_path):
    (tmp_path / "a.dat").write_text("x")
    (tmp_path / "a.txt").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(UserError, match="no such file"):
        find_sources([tmp_path / "none*.txt"])
    with pytest.raises(UserError, match=r"a\.dat: not a kind"):
        find_sources([tmp_path / "a.dat"])
    with pytest.raises(UserError, match="archive"):
        find_sources([tmp_path / "a.txt"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no text found"):
        find_sources([tmp_path / "empty"])


def test_an_unreadable_file_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # chmod does not stop the superuser
    with pytest.raises(UserError, match=r"a\.txt: cannot be read \(Permission denied\)"):
        find_sources([tmp_path])
