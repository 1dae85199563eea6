import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from transformers import AutoTokenizer

from amber.errors import UserError
from amber.tokens import encode as encode_module
from amber.tokens.config import PrepareConfig
from amber.tokens.encode import Encoder
from amber.tokens.prepare import prepare
from amber.tokens.shards import open_shards
from amber.tokens.tokenizer import load_tokenizer
from amber.tokens.train import train_tokenizer

WORDS = ["the", "a", "cat", "dog", "house", "sees", "finds", "under", "over", "red", "green"]
WORDS += ["[MASK]", "[SEP]", "12", "caf\u00e9"]
HAN = "\u8bed\u8a00\u6a21\u578b"  # two words of two characters
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_text(num_documents):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 12)) + f" {n}" for n in range(num_documents)]


@pytest.fixture
def config(tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(make_text(300)))
    return PrepareConfig(
        text=(str(tmp_path / "text"),), out=tmp_path / "out", vocab_size=120, num_workers=1
    )


def files_of(folder):
    names = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return {str(n): (folder / n).read_bytes() for n in names if n.name != "manifest.json"}


@pytest.mark.slow
def test_the_number_of_processes_changes_no_byte(config, tmp_path):
    one = prepare(config)
    three = prepare(replace(config, out=tmp_path / "three", num_workers=3))
    assert files_of(tmp_path / "out") == files_of(tmp_path / "three")
    assert one.fingerprint == three.fingerprint


@pytest.mark.slow
@pytest.mark.skipif(find_spec("jieba") is None, reason="jieba is an extra")
def test_the_number_of_processes_changes_no_word(config, tmp_path):
    chinese = [f"{text} {HAN}{n}" for n, text in enumerate(make_text(300))]
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(chinese))
    config = replace(config, words="jieba")
    one = prepare(config)
    three = prepare(replace(config, out=tmp_path / "three", num_workers=3))
    assert files_of(tmp_path / "out") == files_of(tmp_path / "three")
    assert one.fingerprint == three.fingerprint
    assert one.counts["chinese_words"] == 300 * 2
    assert "jieba" in one.versions


def test_words_are_stored_beside_the_same_tokens(config, tmp_path):
    without = prepare(config)
    manifest = prepare(replace(config, out=tmp_path / "words", words="tokenizer"))
    assert (without.words, manifest.words) == ("none", "tokenizer")
    assert without.tokenizer_fingerprint == manifest.tokenizer_fingerprint
    assert without.fingerprint != manifest.fingerprint
    before, after = files_of(tmp_path / "out"), files_of(tmp_path / "words")
    assert before.items() < after.items()
    assert set(after) - set(before) == {"train.words.bin", "held_out.words.bin"}
    assert set(manifest.files) == set(after)
    tokenizer = load_tokenizer(tmp_path / "words" / "tokenizer")
    for split in ("train", "held_out"):
        shards = open_shards(tmp_path / "words", split)
        for start, stop in zip(shards.offsets[:-1], shards.offsets[1:], strict=True):
            ids = shards.read(int(start), int(stop))
            is_start = shards.read_word_starts(int(start), int(stop))
            pieces = [tokenizer.id_to_token(row) for row in ids]
            assert is_start.tolist() == [not piece.startswith("##") for piece in pieces]


def test_jieba_without_chinese_is_noted(config):
    pytest.importorskip("jieba")
    manifest = prepare(replace(config, words="jieba"))
    assert manifest.counts["chinese_words"] == 0
    assert manifest.notes == ["words: there is no Chinese in the text, so jieba changed nothing"]


def test_the_shards_hold_every_document_and_no_special_token(config):
    manifest = prepare(config)
    tokenizer = AutoTokenizer.from_pretrained(config.out / "tokenizer")
    found = []
    for split in ("train", "held_out"):
        shards = open_shards(config.out, split)
        for start, stop in zip(shards.offsets[:-1], shards.offsets[1:], strict=True):
            ids = shards.read(int(start), int(stop))
            assert ids.min() > 4
            found.append(tokenizer.decode(ids).replace(" ", ""))
    assert sorted(found) == sorted(t.lower().replace(" ", "") for t in make_text(300))
    assert manifest.counts["documents_kept"] == 300
    assert manifest.held_out.num_documents >= 1
    counts = np.load(config.out / "token_counts.npy")
    assert counts.dtype == np.int64
    assert counts.sum() == manifest.train.num_tokens == open_shards(config.out, "train").num_tokens
    assert len(counts) == manifest.vocab_size


def test_the_tokenizer_and_the_splits_do_not_depend_on_the_files(config, tmp_path):
    first = prepare(config)
    (tmp_path / "other").mkdir()
    documents = make_text(300)[::-1]
    for n in range(3):
        (tmp_path / "other" / f"{n}.txt").write_text("\n\n".join(documents[n::3]))
    text = (str(tmp_path / "other"),)
    second = prepare(replace(config, text=text, out=tmp_path / "out2"))
    assert first.tokenizer_fingerprint == second.tokenizer_fingerprint
    assert first.held_out.num_tokens == second.held_out.num_tokens
    assert first.fingerprint != second.fingerprint  # the order of the documents is another


def test_marks_and_line_ends_do_not_change_the_data(config, tmp_path):
    plain = prepare(config)
    text = "\ufeff" + "\r\n\r\n".join(make_text(300))
    (tmp_path / "text" / "a.txt").write_bytes(text.encode())
    marked = prepare(replace(config, out=tmp_path / "marked"))
    assert plain.fingerprint == marked.fingerprint


def test_what_was_dropped_is_counted(config, tmp_path):
    content = [*make_text(50), "cat\x00dog", "cat\x00dog  ", "\x01\x02", "\u200d"]
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(content))
    (tmp_path / "text" / ".hidden.txt").write_text("x")
    manifest = prepare(config)
    assert manifest.counts["documents_read"] == 54
    assert manifest.counts["documents_duplicate"] == 1
    assert manifest.counts["documents_empty"] == 1
    assert manifest.counts["documents_without_tokens"] == 1  # a joiner alone: BERT's cleaning
    assert manifest.counts["documents_kept"] == 51
    assert manifest.counts["controls_removed"] == 4
    assert "hidden" in manifest.skipped_files[0]


def test_a_given_vocabulary_is_used_and_too_much_unk_is_refused(config, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    pieces = [*SPECIALS, *"[]", *"0123456789", *(f"##{n}" for n in range(10)), *WORDS[:11]]
    pieces += ["mask", "sep", "cafe"]
    vocabulary.write_text("\n".join(pieces) + "\n\n")
    given = replace(config, tokenizer=vocabulary, vocab_size=None)
    manifest = prepare(given)
    assert manifest.vocab_size == len(pieces)
    assert manifest.unk_fraction == 0.0
    assert len(manifest.notes) == 1
    vocabulary.write_text("\n".join(pieces[:-4]))
    with pytest.raises(UserError, match=r"of the tokens in a sample .*\[UNK\], most of them Latin"):
        prepare(replace(given, out=tmp_path / "second"))
    assert not (tmp_path / "second").exists()
    allowed = prepare(replace(given, out=tmp_path / "third", max_unk_fraction=0.5))
    assert allowed.unk_fraction > 0.05


def test_a_single_document_cannot_be_split(config, tmp_path):
    (tmp_path / "text" / "a.txt").write_text("only one\ndocument")
    with pytest.raises(UserError, match="nothing can be held out: put .*separator to line$"):
        prepare(replace(config, vocab_size=60))
    manifest = prepare(replace(config, vocab_size=60, held_out_fraction=0.0))
    assert manifest.train.num_documents == 1
    assert manifest.held_out.num_documents == 0


def test_no_text_is_an_error_and_leaves_nothing(config, tmp_path):
    (tmp_path / "text" / "a.txt").write_text(" \n\n\x00\n")
    with pytest.raises(UserError, match="no text to train"):
        prepare(config)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["text"]


def test_settings_without_effect_are_refused(config, tmp_path):
    with pytest.raises(UserError, match="vocab_size has no effect with the given tokenizer"):
        replace(config, tokenizer=tmp_path / "vocab.txt")
    with pytest.raises(UserError, match="max_word_length has no effect on a bpe"):
        replace(config, tokenizer_kind="bpe", max_word_length=10)
    with pytest.raises(UserError, match="text_field has no effect"):
        prepare(replace(config, text_field="body"))
    with pytest.raises(UserError, match="num_workers must be 1 or more"):
        replace(config, num_workers=0)
    with pytest.raises(UserError, match=r"held_out_fraction must be in \(0, 0.5\], or 0"):
        replace(config, held_out_fraction=0.9)
    (tmp_path / "text" / "a.txt").rename(tmp_path / "text" / "a.tsv")
    with pytest.raises(UserError, match="separator has no effect"):
        prepare(replace(config, separator="line"))


def test_progress_ends_at_its_total(config):
    seen = []
    prepare(config, on_progress=lambda *numbers: seen.append(numbers))
    done, total, documents, tokens = seen[-1]
    assert done == total
    assert documents == 300
    assert tokens > 0


def test_long_documents_are_encoded_in_parts_to_the_same_ids(tmp_path, monkeypatch):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join([*SPECIALS, *WORDS[:11]]))
    tokenizer = load_tokenizer(vocabulary)
    texts = ["cat dog " * 5 + "\nred", "x" * 40, "", "green cat"]
    whole = Encoder(tokenizer).encode(texts)
    monkeypatch.setattr(encode_module, "PIECE_CHARACTERS", 10)
    parts = Encoder(tokenizer).encode(texts)
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.lengths.tolist() == whole.lengths.tolist() == [11, 1, 0, 2]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_long_documents_are_encoded_in_parts_to_the_same_words(monkeypatch, kind):
    tokenizer = train_tokenizer(make_text(30), kind=kind, vocab_size=300)
    texts = [f"catdog {HAN} sees, redgreen " * 5, "", "greencat x", HAN * 9]
    whole = Encoder(tokenizer, "tokenizer").encode(texts)
    monkeypatch.setattr(encode_module, "PIECE_CHARACTERS", 10)
    parts = Encoder(tokenizer, "tokenizer").encode(texts)
    assert parts.ids.tolist() == whole.ids.tolist()
    assert parts.words.is_start.tolist() == whole.words.is_start.tolist()
    assert len(whole.ids) == len(whole.words.is_start)
    assert 0 < whole.words.is_start.sum() < len(whole.ids)


def test_the_cores_are_counted_where_the_system_has_no_affinity(config, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)  # not known either: one process
    assert prepare(replace(config, num_workers=None)).train.num_documents > 0


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(make_text(100_000)))
    script = (
        "from pathlib import Path\n"
        "from amber.tokens.config import PrepareConfig\n"
        "from amber.tokens.prepare import prepare\n"
        "if __name__ == '__main__':\n"
        f"    prepare(PrepareConfig(text=({str(tmp_path / 'a.txt')!r},), vocab_size=200,\n"
        f"            out=Path({str(tmp_path / 'out')!r}), num_workers=2))\n"
    )
    (tmp_path / "run.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py")], stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".out.tmp-*/train-*.bin")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert b"KeyboardInterrupt" in errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "run.py"]
