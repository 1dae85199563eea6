"""The lines of a file keep their order and their number."""

import gzip
from pathlib import Path

import pytest
import torch
from small_runs import SmallRun, train_small

from amber.errors import UserError
from amber.run import sentences
from amber.run.commands import ScoreConfig
from amber.run.device import Process
from amber.run.folders import open_model
from amber.run.score import Scorer, open_scorer
from amber.run.sentences import open_sentences, read_sentences, score_lines

CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("sentences") / "pair")


def scorer_of(run: SmallRun, process: Process = CPU) -> Scorer:
    return open_scorer(open_model(run.out), process, by=None, length=None)


def lines_of(path: Path, on_bad="stop") -> list[str]:
    return list(read_sentences(open_sentences(path), on_bad=on_bad))


def test_every_line_is_read_blank_ones_too(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\r\n\n \ntwo\n\n"))
    assert lines_of(path) == ["one", "", " ", "two", ""]


def test_a_bad_line_that_is_skipped_stays_as_a_blank_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\none\n\xff\n\xff\ntwo\n\xff\n")
    assert lines_of(path, on_bad="skip") == ["", "one", "", "", "two", ""]
    assert lines_of(path, on_bad="replace")[2] == "\ufffd"
    with pytest.raises(UserError, match="line 1"):
        lines_of(path)


def test_chunks_change_neither_order_nor_count(pair, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    texts = ["a cat", "", "the dog sees", "one", "a cat"]
    path.write_text("\n".join(texts))
    config = ScoreConfig(model=pair.out, file=path)
    whole = list(score_lines(scorer_of(pair), config))
    assert [sentence.text for sentence in whole] == texts
    monkeypatch.setattr(sentences, "CHUNK", 2)
    told = []
    parts = list(score_lines(scorer_of(pair), config, on_count=lambda *each: told.append(each)))
    for one, other in zip(whole, parts, strict=True):
        assert one.score.value == pytest.approx(other.score.value, abs=1e-6)
    assert told[-1] == (5.0, 5)


def test_stdin_is_read_once_and_by_one_process_only(pair, tmp_path, monkeypatch):
    (tmp_path / "stdin").write_text("a cat\n")
    monkeypatch.setattr(sentences, "STDIN", tmp_path / "stdin")
    config = ScoreConfig(model=pair.out, file=Path("-"))
    told = []
    (only,) = score_lines(scorer_of(pair), config, on_count=lambda *each: told.append(each))
    assert only.text == "a cat"
    assert told == [(0.0, None), (1.0, None)]
    two = Process(rank=0, num_ranks=2, device=CPU.device, dtype=CPU.dtype)
    with pytest.raises(UserError, match="several processes"):
        next(score_lines(scorer_of(pair, two), config))


def test_folders_and_other_kinds_of_files_are_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}")
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "a.jsonl", "give one .txt file"),
        (tmp_path / "b.txt", "no such file"),
    ):
        with pytest.raises(UserError, match=message):
            open_sentences(path)


def test_the_text_itself_is_not_written_over(tmp_path):
    with pytest.raises(UserError, match="the text itself"):
        ScoreConfig(model=tmp_path, file=tmp_path / "a.txt", out=tmp_path / "b" / ".." / "a.txt")
