"""Predictions in the layout that a leaderboard takes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amber.errors import UserError
from amber.tasks.task import Task

Prediction = str | float | Mapping[str, Any]
"""A label, a number, an answer, or the entities of a text as `as_mentions` gives them."""

STSB_RANGE = (0.0, 5.0)


def write_submission(
    task: Task, predictions: Mapping[str, Prediction], folder: Path, *, split: str = "test"
) -> Path:
    """Write predictions for a leaderboard, under the file name that it expects.

    GLUE takes a TSV file with the columns `index` and `prediction`, CLUE one JSON record with `id`
    and `label` on each line, SQuAD and CMRC 2018 one JSON object from ids to answers.

    Args:
        task: the task.
        predictions: by the id of the example, in the order of the test file.
        folder: is made if it is not there.
        split: of the task's `submission_files`.

    Returns:
        The path of the file.

    Raises:
        UserError: no leaderboard takes this split, or a prediction is not one of the labels.
    """
    name = task.submission_files.get(split)
    if task.submission is None or name is None:
        there = ", ".join(task.submission_files) or "no split"
        raise UserError(
            f"task {task.name}: no leaderboard's layout for {split!r} (there is one for {there}): "
            "use the plain file of predictions"
        )
    if task.labels is not None:
        for key, value in predictions.items():
            if isinstance(value, Mapping) or value not in task.labels:
                raise UserError(
                    f"task {task.name}, example {key}: {value!r} is not one of the labels "
                    f"{', '.join(task.labels[:20])}: predict with a model of this task"
                )
    if task.submission == "glue":
        rows = [f"{key}\t{_glue_value(task, value)}" for key, value in predictions.items()]
        text = "\n".join(["index\tprediction", *rows]) + "\n"
    elif task.submission == "clue":
        text = "".join(_clue_line(task, key, value) + "\n" for key, value in predictions.items())
    else:
        text = json.dumps(dict(predictions), ensure_ascii=False, indent=1) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _glue_value(task: Task, value: Prediction) -> str:
    if task.kind != "regression" or isinstance(value, Mapping):
        return str(value)
    low, high = STSB_RANGE
    return f"{min(max(float(value), low), high):.3f}"


def _clue_line(task: Task, key: str, value: Prediction) -> str:
    """One record; TNEWS takes the number of the class beside its name."""
    codes = {name: code for code, name in task.spellings.items()}
    record: dict[str, Any] = {"id": int(key) if key.isdecimal() else key}
    if isinstance(value, str) and value in codes:
        record |= {"label": codes[value], "label_desc": value}
    else:
        record["label"] = value
    return json.dumps(record, ensure_ascii=False)
