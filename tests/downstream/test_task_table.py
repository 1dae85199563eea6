"""Several tasks in one command: what is there is run, what is not is named."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from toy_tasks import RECIPE, sentence, toy_config, write_model

from amber.cli import finetune as command
from amber.downstream.config import FinetuneConfig
from amber.downstream.results import find_model
from amber.downstream.scoring import Baseline
from amber.downstream.statistics import spread
from amber.downstream.table import TaskRow, average_of, finetune_tasks
from amber.errors import UserError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    folder = tmp_path / "glue"
    for name in ("CoLA", "WNLI", "AX"):
        (folder / name).mkdir(parents=True)
    for split, count in (("train", 8), ("dev", 4)):
        words = [("bad", "good")[i % 2] for i in range(count)]
        texts = [(i % 2, " ".join(sentence(Random(i), word))) for i, word in enumerate(words)]
        lines = [f"x\t{label}\t\t{text}" for label, text in texts]
        (folder / "CoLA" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
        lines = [f"{i}\tred\t{text}\t{label}" for i, (label, text) in enumerate(texts)]
        header = "index\tsentence1\tsentence2\tlabel"
        (folder / "WNLI" / f"{split}.tsv").write_text("\n".join([header, *lines]) + "\n")
    (folder / "AX" / "AX.tsv").write_text("index\tsentence1\tsentence2\n0\tone\ttwo\n")
    return folder


def group_config(glue: Path, model: Path, **changes) -> FinetuneConfig:
    settings = {"task": "glue", "recipe": replace(RECIPE, epochs=2), "out": glue.parent / "out"}
    return toy_config(glue, model, **settings | changes)


def row(task: str, median: float, floor: float) -> TaskRow:
    return TaskRow(
        task=task,
        metric="accuracy",
        split="dev",
        spread=spread([median]),
        baseline=Baseline(value=floor, guess="always '0'"),
        num_collapsed=0,
        seconds=1.0,
    )


def test_what_is_there_is_run_and_what_is_not_is_named(glue: Path, model: Path):
    skipped: list[str] = []
    table = finetune_tasks(
        group_config(glue, model), on_skip=lambda task, reason: skipped.append(task)
    )
    assert [row.task for row in table.rows] == ["cola", "wnli"]
    assert skipped == list(table.skipped)
    assert table.skipped["ax"].startswith("no train file in ")
    assert table.skipped["sst2"] == "no folder SST-2 or SST2 or SST with its files"
    assert [row.metric for row in table.rows] == ["mcc", "accuracy"]
    for line, result in zip(table.rows, table.results, strict=True):
        assert line.spread == result.spreads["dev"][line.metric]
        assert line.seconds == sum(run.seconds for run in result.runs)
        assert find_model(glue.parent / "out" / line.task).name == result.median_model
    assert table.average is not None
    assert table.average.tasks == ("cola",)  # WNLI is not in the paper's average
    assert table.average.value == table.rows[0].spread.median
    again = finetune_tasks(group_config(glue, model))
    assert [result.num_reused for result in again.results] == [1, 1]
    assert again.rows == table.rows


def test_settings_without_effect_on_a_task_are_left_out_there(glue: Path, model: Path):
    folder = glue / "MRPC"
    folder.mkdir()
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"{i % 2}\t1\t2\tone {word}\ttwo" for i, word in enumerate(["bad", "good"] * 5)]
    for split in ("train", "dev"):
        (folder / f"{split}.tsv").write_text("\n".join([header, *rows]) + "\n")
    recipe = replace(RECIPE, epochs=2, both_orders=False)
    table = finetune_tasks(group_config(glue, model, recipe=recipe, limit_train=9))
    num_trained = {result.task: result.num_sequences for result in table.results}
    assert num_trained == {"cola": 8, "mrpc": 9, "wnli": 8}  # CoLA and WNLI have eight
    with pytest.raises(UserError, match="recipe.stride has no effect on any task of glue"):
        finetune_tasks(group_config(glue, model, recipe=replace(recipe, stride=8)))


def test_the_average_is_that_of_the_paper():
    names = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")
    rows = tuple(row(name, 0.1 * i, 0.5) for i, name in enumerate(names))
    average = average_of("glue", (*rows, row("wnli", 99.0, 99.0)))
    assert average is not None
    assert average.value == pytest.approx(0.35)
    assert average.baseline == 0.5
    assert (average.tasks, average.missing) == (names, ())
    part = average_of("glue", rows[:2])
    assert part is not None
    assert (part.tasks, part.missing) == (names[:2], names[2:])
    assert average_of("glue", (row("wnli", 0.5, 0.5),)) is None
    clue = average_of("clue", (row("tnews", 0.5, 0.1), row("csl", 0.7, 0.5)))
    assert clue is not None
    assert clue.value == pytest.approx(0.6)
    assert clue.missing == ("afqmc", "iflytek", "ocnli", "cluewsc")


def test_a_bad_file_stops_all_of_it_before_anything_is_trained(glue: Path, model: Path):
    (glue / "WNLI" / "dev.tsv").write_text("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t7\n")
    with pytest.raises(UserError, match=r"WNLI/dev\.tsv, line 2, column 'label': label '7'"):
        finetune_tasks(group_config(glue, model))
    assert not (glue.parent / "out").exists()
    with pytest.raises(UserError, match="no folder of a task of glue to train on: give the folder"):
        finetune_tasks(group_config(glue / "CoLA", model))
    with pytest.raises(UserError, match="dev_fraction has no effect on glue"):
        finetune_tasks(group_config(glue, model, dev_fraction=0.1))


def test_the_command_prints_one_table_and_one_object(
    glue: Path, model: Path, capsys: pytest.CaptureFixture[str]
):
    assert command.run(group_config(glue, model), is_json=True) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told == json.loads((glue.parent / "out" / "table.json").read_text())
    assert [row["task"] for row in told["rows"]] == ["cola", "wnli"]
    lines = err.splitlines()
    [cola] = [line for line in lines if line.startswith("cola ")]
    median = told["rows"][0]["spread"]["median"]
    words = cola.split()
    assert words[words.index("dev") :][:4] == ["dev", "mcc", "1", f"{100 * median:.2f}"]
    [average] = [line for line in lines if line.startswith("average of the medians")]
    assert average.endswith("over 1 tasks: cola")
    assert "skipped: sst2, mrpc, stsb, qqp, mnli, qnli, rte, ax" in lines
