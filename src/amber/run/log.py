"""What a run writes down: metrics.jsonl, TensorBoard, and events for whoever shows them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amber.errors import UserError

Kind = Literal["start", "train", "held_out", "checkpoint", "warning", "end"]


Values = Mapping[str, int | float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened in a run, for the screen."""

    kind: Kind
    step: int
    progress: float
    """Share of the budget used up."""

    values: Values
    text: str = ""


Show = Callable[[Event], None]


class Log:
    """The files of one run; only the first process has one."""

    def __init__(self, folder: Path, *, tensorboard: bool, step: int, show: Show) -> None:
        """Open the files; lines after `step`, left by a run that was cut off, are removed.

        Raises:
            UserError: TensorBoard is asked for and not installed.
        """
        self.show = show
        self.board = _open_board(folder / "tensorboard", step) if tensorboard else None
        self.path = folder / "metrics.jsonl"
        _cut(self.path, step)
        self.file = self.path.open("a", buffering=1, encoding="utf-8")

    def write(self, event: Event) -> None:
        """Write an event down and show it."""
        if event.kind in ("train", "held_out"):
            record: dict[str, Any] = {"step": event.step, "kind": event.kind}
            record["progress"] = round(event.progress, 6)
            record |= {name: _rounded(value) for name, value in event.values.items()}
            self.file.write(json.dumps(record) + "\n")
            if self.board:
                for name, value in event.values.items():
                    self.board.add_scalar(f"{event.kind}/{name}", value, event.step)
        self.show(event)

    def close(self) -> None:
        """Close the files."""
        self.file.close()
        if self.board:
            self.board.close()


def _rounded(value: int | float) -> int | float:
    """Keep seven significant digits: the file is for reading, too."""
    return value if isinstance(value, int) else float(f"{value:.7g}")


def _cut(path: Path, step: int) -> None:
    """Remove the lines after a step, and half a line, by way of a second file."""
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    kept = [line + "\n" for line in lines if _is_up_to(line, step)]
    beside = path.with_name(f".{path.name}.unfinished")
    beside.write_text("".join(kept), encoding="utf-8")
    beside.replace(path)


def _is_up_to(line: str, step: int) -> bool:
    """Whether a line is whole and belongs to a step that the run has kept."""
    try:
        return json.loads(line)["step"] <= step
    except (json.JSONDecodeError, KeyError, TypeError):
        return False


def _open_board(folder: Path, step: int) -> Any:
    """Open a TensorBoard writer, which is an extra."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            "log.tensorboard needs the package tensorboard: pip install tensorboard"
        ) from error
    return SummaryWriter(str(folder), purge_step=step)
