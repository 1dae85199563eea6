import errno
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from amber.errors import UserError
from amber.tokens.config import PrepareConfig
from amber.tokens.prepare import prepare
from amber.tokens.shards import (
    Shards,
    SplitSize,
    load_manifest,
    open_shards,
    unigram_entropy,
    verify,
)
from amber.tokens.writer import SplitWriter, check_disk, check_free, written_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    text = "\n\n".join(f"document number {n} holds words" for n in range(200))
    (folder / "a.txt").write_text(text)
    out = folder / "out"
    prepare(PrepareConfig(text=(str(folder),), out=out, vocab_size=80, num_workers=1))
    return out


def test_documents_come_back_from_several_files_and_straddle_none(tmp_path):
    rng = np.random.default_rng(0)
    lengths = np.array([3, 0, 9, 1, 4, 25, 2, 5])
    ids = rng.integers(0, 500, lengths.sum()).astype("<u2")
    writer = SplitWriter(tmp_path, "train", 500, file_bytes=20)  # 10 tokens a file
    half = lengths[:4].sum()
    writer.add(ids[:half], lengths[:4])
    writer.add(ids[half:], lengths[4:])
    writer.close()
    sizes = [(tmp_path / name).stat().st_size // 2 for name in writer.files]
    assert sizes == [3, 10, 4, 25, 7]
    whole = np.concatenate([np.fromfile(tmp_path / name, "<u2") for name in writer.files])
    assert whole.tolist() == ids.tolist()
    offsets = np.load(tmp_path / "train.offsets.npy")
    assert offsets.tolist() == [0, *np.cumsum(lengths)]


def test_large_vocabularies_are_written_in_four_bytes(tmp_path):
    for size, num_bytes in ((65536, 2), (65537, 4)):
        writer = SplitWriter(tmp_path, "train", size)
        writer.add(np.array([size - 1]), np.array([1]))
        writer.close()
        assert (tmp_path / writer.files[0]).stat().st_size == num_bytes
        assert np.fromfile(tmp_path / writer.files[0], f"<u{num_bytes}")[0] == size - 1


def test_words_come_back_whatever_the_size_of_the_pieces(data, tmp_path):
    rng = np.random.default_rng(0)
    lengths = np.array([3, 0, 9, 1, 4, 25, 2, 5])  # 49 tokens: 7 bytes of bits
    is_start = rng.random(49) < 0.5
    for split, pieces in (("train", [4, 4]), ("held_out", [1] * 8)):
        writer = SplitWriter(tmp_path, split, 500, file_bytes=20, has_words=True)
        document = token = 0
        for count in pieces:
            some = lengths[document : document + count]
            stop = token + some.sum()
            writer.add(np.zeros(some.sum(), dtype=int), some, is_start[token:stop])
            document, token = document + count, stop
        writer.close()
        size = SplitSize(num_documents=8, num_tokens=49, files=tuple(writer.files))
        sizes = {"train": size, "held_out": size}
        manifest = replace(load_manifest(data), **sizes, vocab_size=500, words="tokenizer")
        shards = Shards(tmp_path, split, manifest)
        assert (tmp_path / f"{split}.words.bin").stat().st_size == 7
        for start in range(49):
            for stop in (start, min(start + 5, 49), 49):
                found = shards.read_word_starts(start, stop)
                assert found.tolist() == is_start[start:stop].tolist()
        with pytest.raises(ValueError, match="no words of tokens 0 to 50"):
            shards.read_word_starts(0, 50)


def test_a_folder_from_before_there_were_words_has_none(data):
    path = data / "manifest.json"
    text = path.read_text()
    try:
        content = json.loads(text)
        assert content.pop("words") == "none"
        path.write_text(json.dumps(content))
        shards = open_shards(data, "train")
        assert not shards.has_words
        with pytest.raises(ValueError, match="no words"):
            shards.read_word_starts(0, 1)
    finally:
        path.write_text(text)
    assert not list(data.glob("*.words.bin"))


def test_reading_gives_tokens_by_address(data):
    shards = open_shards(data, "train")
    whole = np.fromfile(data / "train-00000.bin", "<u2")
    assert shards.num_tokens == len(whole) == shards.offsets[-1]
    for start, stop in zip(shards.offsets[:-1], shards.offsets[1:], strict=True):
        assert shards.read(int(start), int(stop)).tolist() == whole[start:stop].tolist()
    assert len(shards.read(5, 5)) == 0
    with pytest.raises(ValueError, match="do not lie in one document"):
        shards.read(0, shards.num_tokens + 1)
    again = pickle.loads(pickle.dumps(shards))
    assert len(pickle.dumps(shards)) < 1000
    assert again.read(0, 4).tolist() == whole[:4].tolist()


def test_a_missing_or_changed_file_is_named(data, tmp_path):
    with pytest.raises(UserError, match="no manifest"):
        load_manifest(tmp_path)
    assert verify(data) == load_manifest(data)
    path = data / "train-00000.bin"
    content = path.read_bytes()
    try:
        path.write_bytes(content[:-2])
        with pytest.raises(UserError, match=r"train-00000\.bin: \d+ bytes where"):
            open_shards(data, "train")
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert load_manifest(data)
        with pytest.raises(UserError, match="its content has changed"):
            verify(data)
        path.unlink()
        with pytest.raises(UserError, match="missing where"):
            load_manifest(data)
    finally:
        path.write_bytes(content)
    text = (data / "manifest.json").read_text()
    try:
        (data / "manifest.json").write_text(text[:100])
        with pytest.raises(UserError, match="damaged"):
            load_manifest(data)
    finally:
        (data / "manifest.json").write_text(text)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError()])
def test_an_interrupted_run_leaves_nothing(tmp_path, error):
    def run():
        with written_folder(tmp_path / "out", overwrite=False) as folder:
            (folder / "train-00000.bin").write_bytes(b"xx")
            raise error

    with pytest.raises(type(error)):
        run()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_of_the_user_and_leaves_nothing(tmp_path):
    def run():
        with written_folder(tmp_path / "out", overwrite=False):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UserError, match="the disk is full"):
        run()
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="MB free where about 1000000000000 MB are needed"):
        check_disk(tmp_path / "not" / "yet", 10**18)


def test_what_killed_runs_left_is_removed_and_what_others_write_is_not(tmp_path):
    (tmp_path / ".out.tmp-999999999").mkdir()
    (tmp_path / ".out.tmp-1").mkdir()
    with written_folder(tmp_path / "out", overwrite=False):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == [".out.tmp-1", "out"]


def test_only_prepared_data_is_overwritten(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    check_free(out, overwrite=False)
    (out / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="not empty"):
        check_free(out, overwrite=False)
    with pytest.raises(UserError, match="something else than prepared data"):
        check_free(out, overwrite=True)
    (out / "manifest.json").write_text("{}")
    with written_folder(out, overwrite=True) as folder:
        (folder / "new").write_text("x")
    assert [p.name for p in out.iterdir()] == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_entropy_of_equal_frequencies_is_the_logarithm_of_their_number():
    assert unigram_entropy(np.array([5, 5, 0, 5, 5])) == pytest.approx(math.log(4))
    assert unigram_entropy(np.array([7])) == pytest.approx(0.0)
