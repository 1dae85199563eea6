"""`amber finetune` from the command line: what it prints, and what it returns."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

import amber.cli.finetune
from amber.cli.main import main
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.folder import save_discriminator
from amber.model.heads import RTDHead
from amber.model.init import initialize
from amber.tasks.metrics import METRICS
from amber.tokens.tokenizer import save_tokenizer, wordpiece

WORDS = ["one", "two", "three", "good", "bad"]
SHAPE = EncoderConfig(
    vocab_size=10,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    embedding_size=8,
    max_position_embeddings=16,
)


def write_model(folder: Path) -> Path:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = wordpiece([*specials, *WORDS], lowercase=True, strip_accents=True)
    save_tokenizer(tokenizer, folder / "tokenizer", model_max_length=16)
    encoder, head = Encoder(SHAPE, Embeddings(SHAPE)), RTDHead(SHAPE)
    for part in (encoder, head):
        initialize(part, SHAPE, seed=0)
    save_discriminator(
        folder / "model", encoder, head, tokenizer_dir=folder / "tokenizer", card="# tiny\n"
    )
    return folder / "model"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A command line that trains in a moment."""
    rng = random.Random(0)
    for name in ("train", "dev"):
        rows = [
            f"{' '.join(rng.choices(WORDS[:3], k=3))} {word}\t{word}"
            for word in ("good", "bad") * 8
        ]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    fixed = "--threads 1 --jobs 1 --device cpu --precision float32 --recipe.batch-size 8"
    model, out = write_model(tmp_path), tmp_path / "out"
    return ["finetune", f"{model}", "--task", "own", "--data", f"{tmp_path}", "--out", f"{out}"] + (
        fixed.split()
    )


def test_every_run_the_median_and_the_baseline_are_printed(words, capsys):
    assert main([*words, "--seeds", "3", "--limit-train", "8"]) == 0
    printed = capsys.readouterr().out
    rows = {line.split("  ")[0]: line for line in printed.splitlines()}
    for name in ("seed 0", "seed 1", "seed 2", "median", "min", "max", "standard deviation"):
        assert name in printed
    assert "50.00" in rows["baseline"]
    assert "start anew (hf head)" in printed
    assert "8 train (limited), 16 dev examples; scored by accuracy, macro_f1" in printed
    assert "what was not given is as for Tiny" in printed
    assert "trained on 8 examples only" in printed
    assert "baseline 50.00 (always '" in printed
    assert "model of the median run:" in printed


def test_json_holds_the_whole_result(words, capsys):
    assert main([*words, "--seeds", "2", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert [run["seed"] for run in result["runs"]] == [0, 1]
    assert set(result["spreads"]["dev"]) == {"accuracy", "macro_f1"}
    assert result["baselines"]["dev"]["accuracy"]["value"] == 0.5
    assert result["recipe"]["learning_rate"] == 1e-3
    assert "median" in captured.err


def test_the_settings_written_down_give_the_same_runs(words, tmp_path: Path, capsys):
    assert main(words) == 0
    capsys.readouterr()
    config = tmp_path / "out" / "config.toml"
    again = ["finetune", words[1], "--config", str(config), "--out", str(tmp_path / "b"), "--json"]
    assert main(again) == 0
    result = json.loads(capsys.readouterr().out)
    first = json.loads((tmp_path / "out" / "results.json").read_text())
    assert result["runs"][0]["epochs"] == first["runs"][0]["epochs"]
    assert main([*again[:4], "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_reused"] == 1


def test_a_collapsed_run_is_named(words, capsys, tmp_path: Path):
    rows = ["one good\tgood"] * 15 + ["one bad\tbad"]
    (tmp_path / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    assert main([*words, "--recipe.learning-rate", "0.01"]) == 0
    printed = capsys.readouterr().out
    assert "COLLAPSED: every prediction is good" in printed
    assert "seed 0 (collapsed)" in printed
    assert "seed 0 collapsed: every prediction is" in printed


def test_a_stopped_command_says_how_to_go_on(words, capsys, monkeypatch: pytest.MonkeyPatch):
    real = amber.cli.finetune.finetune

    def stopped(config, *, show):
        return replace(real(config, show=show), is_done=False, signal_number=15)

    monkeypatch.setattr(amber.cli.finetune, "finetune", stopped)
    assert main([*words, "--recipe.epochs", "1"]) == 143
    assert "the same command goes on from there" in capsys.readouterr().out


def write_shape(folder: Path) -> Path:
    folder.mkdir()
    settings = {
        "model_type": "electra",
        "vocab_size": 30522,
        "hidden_size": 256,
        "num_hidden_layers": 12,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    }
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def test_the_rates_of_both_rules_are_shown_without_a_task(tmp_path: Path, capsys):
    model = str(write_shape(tmp_path / "small"))
    assert main(["finetune", model, "--show-rates"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["embeddings", "0.05498", "1.65e-05"]
    assert lines[13].split() == ["layer", "12", "0.80000", "0.00024"]
    assert lines[14].split() == ["head", "1.00000", "0.0003"]
    official = ["--recipe.layer-decay-rule", "official"]
    assert main(["finetune", model, "--show-rates", *official, "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)["layers"]
    assert layers[0]["share"] == pytest.approx(0.04398, abs=5e-6)
    assert layers[12]["share"] == pytest.approx(0.64)
    assert main(["finetune", model, "--show-rates", "--sweep", "lists.toml"]) == 2
    assert "sweep has no effect with show_rates" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--recipe.stride", "4"], "recipe.stride has no effect for classification"),
        (["--patience", "3"], "patience 3 has no effect in 3 epochs"),
        (["--keep", "best", "--recipe.epochs", "1"], "keep best has no effect in one epoch"),
        (["--own.label", "class"], "'class'"),
        (["--score-on", "test"], "no test file"),
        (["--recipe.micro-size", "9"], "recipe.micro_size 9 has no effect"),
        (["--task", "sst3"], "task 'sst3': no task has this name"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(more, message, words, capsys, tmp_path: Path):
    assert main([*words, *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_help_names_the_papers_ten_seeds(capsys):
    assert main(["finetune", "--help"]) == 0
    assert "median of 10" in " ".join(capsys.readouterr().out.split())


def test_help_names_every_metric_of_own_data_and_shows_no_empty_default(capsys):
    assert main(["finetune", "--help", "all"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert not [name for name in METRICS if not re.search(rf"\b{name}\b", page)]
    assert main(["finetune", "--help"]) == 0
    page = capsys.readouterr().out + page
    assert "()" not in page
    assert "metrics -" in page
