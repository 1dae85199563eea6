"""What `amber score` writes, and where."""

import json

import pytest
from small_runs import SmallRun, train_small

from amber.cli import score as command
from amber.errors import UserError
from amber.run.commands import ScoreConfig

LINES = ["the cat sees a dog", "", "a\tcat", "the big tree and the small house " * 4]


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("command_score") / "pair")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("command_score") / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_one_line_of_three_columns_for_each_line_of_the_text(pair, text, capsys):
    assert command.run(ScoreConfig(model=pair.out, file=text), is_json=False) == 0
    out, err = capsys.readouterr()
    rows = [line.split("\t") for line in out.removesuffix("\n").split("\n")]
    assert [row[1:] for row in rows] == [
        ["5", LINES[0]],
        ["0", ""],
        ["2", "a cat"],
        ["28", LINES[3]],
    ]
    assert rows[1][0] == ""
    assert all(float(rows[i][0]) < 0 for i in (0, 2, 3))
    assert err.startswith("4 lines by rtd (log P(original), nats); 1 without a token; 1 cut into")


def test_one_object_has_the_rows_and_their_sums(pair, text, capsys):
    assert command.run(ScoreConfig(model=pair.out, file=text, by="pll"), is_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    rows = told["sentences"]
    assert [row["sentence"] for row in rows] == LINES
    assert rows[1] == {"score": None, "num_tokens": 0, "mean": None, "sentence": ""}
    assert rows[0]["mean"] == rows[0]["score"] / 5
    assert told["score"] == pytest.approx(sum(row["score"] or 0.0 for row in rows), rel=1e-12)
    assert told["mean"] == told["score"] / 35
    counts = [told[f"num_{name}"] for name in ("lines", "scored", "cut", "tokens")]
    assert counts == [4, 3, 1, 35]
    assert told["by"] == "pll"


def test_a_file_holds_what_stdout_would(pair, text, tmp_path, capsys):
    command.run(ScoreConfig(model=pair.out, file=text), is_json=False)
    expected = capsys.readouterr().out
    out = tmp_path / "new" / "scores.tsv"
    command.run(ScoreConfig(model=pair.out, file=text, out=out), is_json=True)
    assert out.read_text() == expected
    told = json.loads(capsys.readouterr().out)
    assert told["out"] == str(out)
    assert "sentences" not in told
    assert [path.name for path in out.parent.iterdir()] == ["scores.tsv"]


def test_what_fails_leaves_the_file_as_it_was(pair, text, tmp_path):
    out = tmp_path / "scores.tsv"
    out.write_text("before")
    with pytest.raises(UserError, match="length is 2"):
        command.run(ScoreConfig(model=pair.out, file=text, out=out, length=2), is_json=False)
    assert out.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["scores.tsv"]


def test_only_the_first_process_writes(pair, text, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    with command.open_output(tmp_path / "a.tsv", is_to_stdout=False) as output:
        assert output is None
    assert list(tmp_path.iterdir()) == []
