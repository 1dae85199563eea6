"""What `amber predict` writes, and where."""

import json
from collections import Counter
from pathlib import Path

import pytest
from toy_tasks import questions, tagged, write_lines, write_model
from tuned_models import tune

from amber.cli import evaluate as evaluation
from amber.cli import predict as command
from amber.downstream.predict import Row
from amber.downstream.predict_config import PredictConfig
from amber.errors import UserError
from amber.run.commands import EvaluateConfig
from amber.tasks.columns import read_columns
from amber.tasks.task import TaskFile

LINES = ["good one", "", "bad\ttwo", "good one"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    return tune(tmp_path / "m", model, "classification")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_stdout_and_files_and_the_object_say_the_same(folder: Path, text: Path, tmp_path, capsys):
    assert command.run(PredictConfig(model=folder, file=text), is_json=False) == 0
    out, err = capsys.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["id"] for row in rows] == ["0", "1", "2", "3"]
    assert rows[1] == {"id": "1", "label": None, "probability": None, "probabilities": None}
    assert err.startswith(f"4 rows of {text}; ")
    assert "; 1 without a token; " in err
    command.run(PredictConfig(model=folder, file=text), is_json=True)
    assert json.loads(capsys.readouterr().out)["predictions"] == rows
    path = tmp_path / "new" / "a.jsonl"
    command.run(PredictConfig(model=folder, file=text, out=path), is_json=True)
    assert path.read_text() == out
    assert json.loads(capsys.readouterr().out)["out"] == str(path)
    table = tmp_path / "new" / "a.tsv"
    command.run(PredictConfig(model=folder, file=text, out=table), is_json=False)
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    assert lines[0] == ["id", "label", "probability"]
    assert lines[2] == ["1", "", ""]
    assert lines[1][:2] == ["0", rows[0]["label"]]
    assert float(lines[1][2]) == pytest.approx(rows[0]["probability"], rel=1e-5)
    assert len(lines) == 5
    assert {each.name for each in (tmp_path / "new").iterdir()} == {"a.jsonl", "a.tsv"}


def test_tags_are_written_in_columns_that_can_be_read_again(model: Path, tmp_path: Path, capsys):
    folder = tune(tmp_path / "m", model, "tagging")
    records = tagged(count=4)
    path, out = write_lines(tmp_path / "a.jsonl", records), tmp_path / "a.tsv"
    command.run(PredictConfig(model=folder, file=path, out=out), is_json=False)
    first = out.read_text().splitlines()[0].split("\t")
    assert first[:3] == [records[0]["words"][0], "0", str(len(records[0]["words"][0]))]
    again = read_columns(out, TaskFile(name="a.tsv", reader="columns"), joiner=None).examples
    assert [each.text.split() for each in again] == [record["words"] for record in records]


def test_labels_are_parted_as_in_the_training(
    model: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    labels, own = ("red, dark", "round"), {"kind": "multilabel", "separator": "|"}
    folder = tune(tmp_path / "m", model, "multilabel", labels=labels, own=own)
    fields = {"id": "0", "labels": list(labels), "label_probabilities": [0.75, 0.5]}
    row = Row(id="0", value=labels, fields=fields, is_blank=False)
    monkeypatch.setattr(command, "predict_rows", lambda *_args, **_settings: iter([row]))
    out = tmp_path / "a.tsv"
    command.run(PredictConfig(model=folder, file=text, out=out), is_json=False)
    assert out.read_text().splitlines()[1] == "0\tred, dark|round\t0.75|0.5"


def test_what_was_not_read_is_told(model: Path, tmp_path: Path, capsys):
    folder = tune(tmp_path / "m", model, "classification", length=4)
    path = tmp_path / "a.txt"
    path.write_text("good\ngood one\ngood one is good\nbad bad bad\nbad\nbad\nbad\nbad\n")
    command.run(PredictConfig(model=folder, file=path), is_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["counts"] == {"truncated": 2}
    assert "note: 25.0% of the examples cut to the length (4 tokens)\n" in err
    path.write_text("good\n")
    command.run(PredictConfig(model=folder, file=path), is_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out)["counts"] == {}
    assert err.startswith(f"1 row of {path}; ")
    assert "note" not in err


def test_the_threshold_of_no_answer_is_told(model: Path, tmp_path: Path, capsys):
    path = write_lines(tmp_path / "a.jsonl", questions(count=3))
    for threshold, is_told in ((0.25, True), (None, False)):
        folder = tune(tmp_path / str(threshold), model, "qa", threshold=threshold)
        command.run(PredictConfig(model=folder, file=path), is_json=True)
        err = capsys.readouterr().err
        assert ("note: no answer is given where no_answer_score - score is above 0.25" in err) == (
            is_told
        )


def test_a_place_where_no_file_can_be_is_named(folder: Path, text: Path, tmp_path: Path):
    for out in (text / "a.tsv", tmp_path / "folder.tsv"):
        (tmp_path / "folder.tsv").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=f"out is {out}"):
            command.run(PredictConfig(model=folder, file=text, out=out), is_json=False)


def test_entities_are_counted_as_they_are_scored():
    counts: Counter[str] = Counter()
    tags = ("I-PER", "O", "B-PER", "I-PER", "I-LOC")
    row = Row(id="0", value=tags, fields={}, is_blank=False)
    command.note(counts, row, "tagging")
    assert counts == {"rows": 1, "blank": 0, "words": 5, "entities": 3}


def test_an_unfinished_output_leaves_no_file(
    folder: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*arguments, **settings):
        yield from list(real(*arguments, **settings))[:2]
        raise KeyboardInterrupt

    real = command.predict_rows
    monkeypatch.setattr(command, "predict_rows", interrupted)
    out, sub = tmp_path / "new" / "a.jsonl", tmp_path / "sub"
    with pytest.raises(KeyboardInterrupt):
        command.run(PredictConfig(model=folder, file=text, out=out), is_json=False)
    assert not list((tmp_path / "new").iterdir())
    assert not sub.exists()


def test_evaluate_prints_the_scores_of_a_fine_tuned_model(folder: Path, tmp_path: Path, capsys):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ngood one\tpositive\nbad\tnegative\nbad two\tnegative\n")
    assert evaluation.run(EvaluateConfig(model=folder, data=path), is_json=True) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    score = told["scores"]["file"]["accuracy"]
    assert told["baselines"]["file"]["accuracy"]["value"] == pytest.approx(2 / 3)
    [line] = [line for line in err.splitlines() if line.startswith("file accuracy")]
    assert line.split() == ["file", "accuracy", f"{100 * score:.2f}", "66.67"]


def test_evaluate_prints_each_label_and_the_mistakes(model: Path, tmp_path: Path, capsys):
    labels = tuple(f"l{number:02}" for number in range(23))
    folder = tune(tmp_path / "m", model, "classification", labels=labels)
    path = tmp_path / "a.tsv"
    rows = [f"good {'one ' * (n % 3)}\t{labels[n % 23]}" for n in range(45)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    evaluation.run(EvaluateConfig(model=folder, data=path), is_json=True)
    out, err = capsys.readouterr()
    told = json.loads(out)
    every = {each["label"]: each for each in told["by_label"]["file"]}
    assert len(every) == 23
    assert sum(each["num_gold"] for each in every.values()) == 45
    lines = [line.split() for line in err.splitlines()]
    start = lines.index(["label", "examples", "predicted", "precision", "recall", "F1"])
    table = lines[start + 1 : start + 21]
    assert [line[0] for line in table] == [f"l{number:02}" for number in range(20)]
    for name, num_gold, num_predicted, precision, *_ in table:
        assert (int(num_gold), int(num_predicted)) == (
            every[name]["num_gold"],
            every[name]["num_predicted"],
        )
        assert float(precision) == pytest.approx(100 * every[name]["precision"], abs=0.005)
    assert "file: 3 rarer labels left out above; --json has all" in err
    worst = told["mistakes"]["file"][0]
    wrong = sum(each["count"] for each in told["mistakes"]["file"])
    assert (
        f"file: {wrong} mistakes, most often {worst['gold']} taken for {worst['predicted']} "
        f"({worst['count']})" in err
    )


def test_evaluate_writes_each_example_where_it_is_told(folder: Path, tmp_path: Path, capsys):
    path, out = tmp_path / "a.tsv", tmp_path / "new" / "b.jsonl"
    path.write_text("text\tlabel\ngood one\tpositive\nbad\tnegative\n")
    assert evaluation.run(EvaluateConfig(model=folder, data=path, out=out), is_json=False) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["text"], line["gold"]) for line in lines] == [
        ("good one", "positive"),
        ("bad", "negative"),
    ]
    assert f"each example: {out}\n" in capsys.readouterr().out
    with pytest.raises(UserError, match="name a .jsonl file"):
        EvaluateConfig(model=folder, data=path, out=tmp_path / "b.csv")
    for data in (out, out.parent):  # a file of a folder would be overwritten, too
        with pytest.raises(UserError, match="a file of the data"):
            EvaluateConfig(model=folder, data=data, out=out)
    EvaluateConfig(model=folder, data=out.parent, out=out.with_name("c.jsonl"))
