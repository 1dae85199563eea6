"""What is written is whole, and a resumed run's file has no lines of a lost future."""

import json
import math
from pathlib import Path

import pytest

from amber.errors import UserError
from amber.run import log as log_module
from amber.run.log import Event, Kind, Log


def event(step: int, kind: Kind = "train", **values: float) -> Event:
    """An event with values."""
    return Event(kind=kind, step=step, progress=step / 100, values=values)


def open_log(folder: Path, step: int = 0, *, tensorboard: bool = False) -> tuple[Log, list[Event]]:
    """A log and what it shows."""
    shown: list[Event] = []
    return Log(folder, tensorboard=tensorboard, step=step, show=shown.append), shown


def lines(folder: Path) -> list[dict]:
    """The lines of the file."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_metrics_are_written_at_once_and_everything_is_shown(tmp_path: Path):
    log, shown = open_log(tmp_path)
    events = [event(0, "start"), event(5, loss=1 / 3), event(5, "held_out", auc=0.5)]
    for one in [*events, event(5, "checkpoint"), event(5, "warning"), event(9, "end")]:
        log.write(one)
    assert lines(tmp_path) == [  # before the file is closed
        {"step": 5, "kind": "train", "progress": 0.05, "loss": 0.3333333},
        {"step": 5, "kind": "held_out", "progress": 0.05, "auc": 0.5},
    ]
    log.close()
    assert [one.kind for one in shown[:3]] == ["start", "train", "held_out"]
    assert len(shown) == 6


def test_lines_after_the_resumed_step_are_removed(tmp_path: Path):
    log, _ = open_log(tmp_path)
    for step in (10, 20, 30):
        log.write(event(step, loss=float(step)))
    log.close()
    log, _ = open_log(tmp_path, step=20)
    assert [line["step"] for line in lines(tmp_path)] == [10, 20]
    log.write(event(30, loss=-1.0))
    log.close()
    assert [(line["step"], line["loss"]) for line in lines(tmp_path)] == [
        (10, 10.0),
        (20, 20.0),
        (30, -1.0),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl"]


@pytest.mark.parametrize(
    "tail",
    [
        b'{"step": 10, "kind": "tr',
        b'{"step"',
        b"10",
        b"[]",
        b"\x00\x00\x00",
        b"\xff\xfe",
        b'{"a": 1}',
    ],
)
def test_half_a_line_is_removed(tmp_path: Path, tail: bytes):
    log, _ = open_log(tmp_path)
    log.write(event(10, loss=1.0))
    log.close()
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(tail)
    log, _ = open_log(tmp_path, step=10)
    log.write(event(11, loss=2.0))
    log.close()
    assert [line["step"] for line in lines(tmp_path)] == [10, 11]


def test_a_new_run_starts_an_empty_file(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 3, "kind": "train"}\n')
    log, _ = open_log(tmp_path, step=0)
    log.close()
    assert lines(tmp_path) == []


def test_seven_digits_are_kept(tmp_path: Path):
    log, _ = open_log(tmp_path)
    log.write(event(1, a=math.pi, b=1.23456789e-9, c=123456789.0, d=0.0))
    log.close()
    found = lines(tmp_path)[0]
    assert (found["a"], found["b"], found["c"], found["d"]) == (
        3.141593,
        1.234568e-9,
        123456800.0,
        0.0,
    )


def test_tensorboard_gets_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written = []

    class Board:
        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def close(self) -> None:
            written.append("closed")

    monkeypatch.setattr(log_module, "_open_board", lambda folder, step: Board())
    log, _ = open_log(tmp_path, tensorboard=True)
    log.write(event(4, loss=0.5))
    log.write(event(4, "checkpoint"))
    log.close()
    assert written == [("train/loss", 0.5, 4), "closed"]


def test_missing_tensorboard_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match="pip install tensorboard"):
        open_log(tmp_path, tensorboard=True)
