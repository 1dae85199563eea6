"""The demo: what it refuses, what it goes on with, and the whole path in small."""

import json
from pathlib import Path

import pytest

from amber.cli import demo as command
from amber.cli import demo_parts as demo
from amber.cli.demo_parts import open_demo, pretrain_settings, write_text
from amber.cli.settings import resolve
from amber.errors import UserError
from amber.run.commands import DemoConfig
from amber.run.config import PretrainConfig
from amber.run.setup import check_budget


def settings_of(config: DemoConfig) -> PretrainConfig:
    given = pretrain_settings(config, open_demo(config))
    return resolve(PretrainConfig, given, config_path=None)


def test_the_budget_is_steps_or_the_minutes_asked_for(tmp_path):
    steps = settings_of(DemoConfig(out=tmp_path))
    timed = settings_of(DemoConfig(out=tmp_path, minutes=3.0))
    check_budget(steps)
    check_budget(timed)
    assert (steps.budget.steps, steps.budget.hours) == (demo.STEPS, 0.0)
    assert (timed.budget.steps, timed.budget.hours) == (0, 0.05)


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(UserError, match="is not a demo"):
        open_demo(DemoConfig(out=tmp_path))
    with pytest.raises(UserError, match="is not a demo"):
        open_demo(DemoConfig(out=tmp_path / "thesis.doc"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_text_that_is_there_is_used_as_it_is(tmp_path):
    folder = open_demo(DemoConfig(out=tmp_path))
    folder.text.write_text("one one\n\ntwo two\n\n", encoding="utf-8")
    text = write_text(folder)
    assert text.num_documents == 2
    assert folder.text.read_text(encoding="utf-8") == "one one\n\ntwo two\n\n"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "TEXT_CHARACTERS", 40_000)
    monkeypatch.setattr(demo, "VOCAB_SIZE", 400)
    monkeypatch.setattr(demo, "HELD_OUT_FRACTION", 0.1)
    monkeypatch.setattr(demo, "STEPS", 3)
    monkeypatch.setattr(demo, "TRAIN_PER_LIBRARY", 16)
    monkeypatch.setattr(demo, "DEV_PER_LIBRARY", 8)
    monkeypatch.setattr(demo, "SEEDS", 2)
    monkeypatch.setattr(demo, "EPOCHS", 1)
    plain = demo.pretrain_settings

    def tiny(*arguments):
        shape = {"hidden_size": 16, "embedding_size": 16, "num_attention_heads": 1}
        batch = {"size": 4, "length": 32}
        return plain(*arguments) | {
            "model": shape | {"num_hidden_layers": 2, "intermediate_size": 16},
            "batch": batch,
        }

    monkeypatch.setattr(command, "pretrain_settings", tiny)


@pytest.mark.slow
def test_the_whole_path_in_small_and_that_it_is_not_overwritten(small, tmp_path, capsys):
    out = tmp_path / "demo"
    assert command.run(DemoConfig(out=out), is_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run"]["is_done"]
    for name in ("pretrained", "from_scratch"):
        assert told[name]["is_done"]
        assert len(told[name]["runs"]) == 2
        assert told[name]["num_examples"] == {"train": 48, "dev": 24}
    assert told["pretrained"]["loaded_share"] > 0.8
    assert told["from_scratch"]["loaded_share"] == 0.0
    assert told["pretrained"]["labels"] == ["numpy", "python", "torch"]
    assert told["evaluation"]["metrics"] == told["run"]["after"]
    assert len(told["inspection"]["sequences"]) >= 3
    assert told["text"]["path"] == str(out / "text.txt")
    assert (out / "run" / "discriminator" / "model.safetensors").is_file()
    with pytest.raises(UserError, match="holds a finished demo"):
        command.run(DemoConfig(out=out), is_json=False)


@pytest.mark.slow
def test_a_stopped_demo_goes_on_where_it_was(small, tmp_path, capsys, monkeypatch):
    out = tmp_path / "demo"
    config = DemoConfig(out=out)

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "prepare", interrupted)
        assert command.run(config, is_json=False) == 130
    assert "stopped: the same command goes on" in capsys.readouterr().out
    made = (out / "text.txt").stat().st_mtime_ns
    assert command.run(config, is_json=False) == 0
    assert (out / "text.txt").stat().st_mtime_ns == made
    printed = capsys.readouterr().out
    assert "from_pretrained" in printed
    assert str(Path(out, "run", "discriminator")) in printed
