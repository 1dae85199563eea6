import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from amber.cli.main import main
from amber.cli.prepare import Reading, show_manifest
from amber.tokens.config import PrepareConfig
from amber.tokens.shards import Manifest, SplitSize
from amber.tokens.vocabulary import SpecialIds

MANIFEST = Manifest(
    format_version=1,
    vocab_size=8000,
    special=SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4),
    fingerprint="a",
    tokenizer_fingerprint="b",
    unigram_entropy=6.1234,
    train=SplitSize(num_documents=90, num_tokens=12_000, files=("train-00000.bin",)),
    held_out=SplitSize(num_documents=3, num_tokens=400, files=("held_out-00000.bin",)),
    counts={
        "characters_read": 50_000,
        "documents_read": 100,
        "documents_kept": 93,
        "documents_duplicate": 7,
        "documents_empty": 0,
        "bytes_on_disk": 60_000_000,
        "tokens": 12_400,
    },
    unk_fraction=0.0123,
    unk_by_script={
        "Latin": {"tokens": 300.0, "unk": 3.0, "unk_fraction": 0.01},
        "Han": {"tokens": 100.0, "unk": 50.0, "unk_fraction": 0.5},
    },
    settings={},
    versions={},
    sources=[],
    skipped_files=["notes.pdf"],
    notes=["vocab.txt: line 3 is there twice"],
    files={},
)


def test_the_closing_table_says_what_was_kept_dropped_and_unknown(tmp_path):
    file = io.StringIO()
    config = PrepareConfig(text=("a.txt",), out=tmp_path)
    show_manifest(MANIFEST, config, Console(file=file, width=200), seconds=20.0)
    rows = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    for row in (
        "documents read 100",
        "documents kept 93",
        "documents duplicate 7",
        "tokens to train on 12,000",
        "tokens held out 400 in 3 documents",
        "vocabulary 8,000",
        "unigram entropy 6.123 nats",
        "[UNK] 1.23% of the tokens",
        "time 20s, 3.0 MB/s",
        "Latin 75.0% 1.00%",
        "Han 25.0% 50.00%",
        "note: vocab.txt: line 3 is there twice",
        "not read: notes.pdf",
    ):
        assert row in rows
    assert not any("empty" in row for row in rows)  # nothing to say about none


def test_the_closing_table_says_who_cut_the_words_and_how_well_they_fit(tmp_path):
    counts = MANIFEST.counts | {"chinese_words": 3400, "chinese_words_as_tokens": 12}
    for words, expected in (
        ("none", []),
        ("tokenizer", ["words of the tokenizer; a Chinese character is one"]),
        (
            "jieba",
            [
                "words of the tokenizer, and 3,400 of Chinese by jieba",
                "as single tokens 12 of these, crossed by a token",
            ],
        ),
    ):
        file = io.StringIO()
        manifest = replace(MANIFEST, words=words, counts=counts)
        config = PrepareConfig(text=("a.txt",), out=tmp_path)
        show_manifest(manifest, config, Console(file=file, width=200), seconds=20.0)
        rows = [" ".join(line.split()) for line in file.getvalue().splitlines()]
        assert [row for row in rows if "words" in row or "single tokens" in row] == expected


def test_the_progress_names_the_share_the_rate_and_the_rest():
    reading = Reading(Console(file=io.StringIO()))
    reading.start -= 10.0
    reading.note(50_000_000, 200_000_000, 1200, 3_400_000)
    words = reading.words()
    assert words[:2] == ["25%", "50 of 200 MB"]
    assert words[2] in ("5.0 MB/s", "4.9 MB/s")
    assert words[3:] == ["1.2k documents", "3.4M tokens", "30s left"]


@pytest.mark.slow
def test_the_whole_path_runs_stops_at_its_budget_and_tells_programs(tmp_path, capsys):
    text, data, out = (tmp_path / name for name in ("a.txt", "data", "run"))
    words = ["red", "green", "blue", "one", "two", "three", "cat", "dog"]
    lines = [" ".join(words[(i * k) % 8] for k in range(1, 30)) + f" {i}" for i in range(300)]
    text.write_text("\n\n".join(lines))
    prepare = ["prepare", str(text), "--out", str(data), "--vocab-size", "120", "--json"]
    assert main([*prepare, "--held-out-fraction", "0.1", "--num-workers", "1"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert manifest["counts"]["documents_kept"] == 300

    size = "--model.hidden-size 16 --model.embedding-size 16 --model.num-attention-heads 2 "
    size += "--model.num-hidden-layers 1 --batch.size 8 --batch.length 32 --device cpu"
    start = ["pretrain", "--data", str(data), "--out", str(out), *size.split()]
    assert main([*start, "--budget.steps", "3", "--json"]) == 0
    out_text, err_text = capsys.readouterr()
    assert json.loads(out_text)["steps"] == 3
    assert "done: 3 steps" in err_text

    assert main(["pretrain", "--out", str(out), "--resume", "--mask.fraction", "0.3"]) == 2
    assert "mask.fraction: 0.15 -> 0.3" in capsys.readouterr().err
    assert main(["pretrain", "--out", str(out), "--resume"]) == 0
