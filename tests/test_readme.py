"""Every command of the README runs, on a little text and with a budget of two steps."""

import random
import re
import shlex
from pathlib import Path

import pytest

from amber.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[1]
READMES = ("README.md", "README.zh.md")


def commands(readme: str) -> list[list[str]]:
    """The words after `.venv/bin/amber` of each such line."""
    lines = (ROOT / readme).read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("    .venv/bin/amber ")]


def write_text(folder: Path) -> None:
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(1, 6))) for _ in range(200)]
    documents = [" ".join(rng.choices(words, k=60)) for _ in range(60)]
    folder.mkdir()
    (folder / "a.txt").write_text("\n\n".join(documents))


def write_labels(folder: Path) -> None:
    folder.mkdir()
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("text\tlabel\nabc def\tgood\nghi\tbad\nabc\tgood\n")
    (folder / "new.tsv").write_text("text\nabc\nghi\ndef\n")


@pytest.mark.parametrize("readme", READMES)
def test_the_commands_of_the_readme_run(
    readme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "my_texts")
    write_labels(tmp_path / "my_labels")
    used = commands(readme)
    named = {"prepare", "pretrain", "evaluate", "inspect", "finetune", "predict"}
    assert {words[0] for words in used} == named
    for words in used:
        text = shlex.join(words).replace("--budget.hours 1", "--budget.steps 2")
        small = {
            "prepare": ["--num-workers", "1"],
            "pretrain": ["--batch.size", "2", "--evaluation.examples", "2"],
            "finetune": ["--jobs", "1"],
        }
        code = main([*shlex.split(text), *small.get(words[0], [])])
        assert code == 0, capsys.readouterr().err
    assert len((tmp_path / "predicted.tsv").read_text().splitlines()) == 1 + 3


def test_both_readmes_have_the_same_commands_and_name_every_command():
    assert commands(READMES[0]) == commands(READMES[1])
    for readme in READMES:
        text = (ROOT / readme).read_text(encoding="utf-8")
        for name in COMMANDS:
            assert re.search(rf"\b{name}\b", text), f"{readme} does not mention {name}"
