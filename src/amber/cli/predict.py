"""`amber predict`: one row of output for each row of the file."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amber.cli.bar import Bar
from amber.cli.losses import loss_words
from amber.cli.output import counted, duration, open_console, print_json, short_number
from amber.cli.score import open_output
from amber.downstream.predict import Prediction, Row, hand_in, open_prediction, predict_rows
from amber.downstream.predict_config import PredictConfig
from amber.errors import UserError
from amber.run.device import open_process
from amber.tasks.entities import entities
from amber.tasks.example import Kind

HEADINGS: dict[Kind, tuple[str, ...]] = {
    "classification": ("id", "label", "probability"),
    "multilabel": ("id", "labels", "label_probabilities"),
    "regression": ("id", "value"),
    "qa": ("id", "answer", "start", "end", "score", "no_answer_score"),
}
"""Columns of the TSV file. Tags have none: a line per word, a blank line after each sentence."""
MOST_LISTED = 6


def run(config: PredictConfig, *, is_json: bool) -> int:
    """Predict, and write the rows where they are wanted."""
    is_to_stdout = config.out is None and config.submission is None and not is_json
    console = open_console(is_json=is_json or is_to_stdout)
    prediction = open_prediction(config)
    kept: list[Row] = []
    is_kept = config.submission is not None or (is_json and config.out is None)
    is_live = not (is_to_stdout and sys.stdout.isatty())  # its lines would run into the bar
    counts, losses = Counter[str](), Counter[str]()
    with (
        open_process(config.device, config.precision or prediction.tuned.precision) as process,
        Bar(console, "rows", is_live=is_live) as bar,
    ):
        if process.num_ranks > 1:
            raise UserError("predictions are made in one process: start it without torchrun")
        with open_output(config.out, is_to_stdout=is_to_stdout) as output:
            if output is not None:
                output.write(first_line(config.out, prediction.tuned.kind))
            rows = predict_rows(
                prediction,
                process,
                batch_size=config.batch_size,
                on_count=bar.note,
                on_losses=losses.update,
            )
            for row in rows:
                note(counts, row, prediction.tuned.kind)
                if is_kept:
                    kept.append(row)
                if output is not None:
                    output.write(
                        line_of(
                            row,
                            config.out,
                            prediction.tuned.kind,
                            separator=prediction.layout.task.separator,
                        )
                    )
        handed_in = None
        if config.submission is not None:
            handed_in = hand_in(prediction, kept, config.submission)
    if is_json:
        print_json(as_dictionary(prediction, config, counts, losses, kept, handed_in))
    for line in summary(prediction, config, counts, losses, handed_in, seconds=bar.seconds):
        console.print(line, markup=False, soft_wrap=True, style="dim")
    return 0


def note(counts: Counter[str], row: Row, kind: Kind) -> None:
    """Count a row, and what was predicted."""
    counts["rows"] += 1
    counts["blank"] += row.is_blank
    if kind == "classification" and not row.is_blank:
        counts[f"label {row.value}"] += 1
    if kind == "qa":
        counts["answers"] += bool(row.value)
    if kind == "tagging":
        counts["words"] += len(row.value)
        counts["entities"] += len(entities(row.value))


def first_line(out: Path | None, kind: Kind) -> str:
    """Name the columns of a TSV file; nothing for others."""
    if out is None or out.suffix != ".tsv" or kind not in HEADINGS:
        return ""
    return "\t".join(HEADINGS[kind]) + "\n"


def line_of(row: Row, out: Path | None, kind: Kind, *, separator: str) -> str:
    """Write a row: as JSON, or with tabs between its columns and `separator` between labels."""
    if out is None or out.suffix != ".tsv":
        return json.dumps(row.fields, ensure_ascii=False) + "\n"
    if kind == "tagging":
        return "".join(f"{line}\n" for line in word_lines(row)) + "\n"
    values = (row.fields[name] for name in HEADINGS[kind])
    return "\t".join(cell(value, separator=separator) for value in values) + "\n"


def word_lines(row: Row) -> Iterator[str]:
    """Write a line for each word: the word, its place, its tag."""
    for word in row.fields["words"]:
        yield "\t".join(cell(word[name]) for name in ("word", "start", "end", "tag"))


def cell(value: Any, *, separator: str = ",") -> str:
    """Write a value; tabs and line ends in it become spaces."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return separator.join(cell(item) for item in value)
    return str(value).translate({9: " ", 10: " ", 13: " "})


def as_dictionary(
    prediction: Prediction,
    config: PredictConfig,
    counts: Counter[str],
    losses: Counter[str],
    kept: list[Row],
    handed_in: Path | None,
) -> dict[str, Any]:
    """Collect the result for programs; the rows are in the file where there is one."""
    result: dict[str, Any] = {
        "model": str(prediction.tuned.path),
        "file": prediction.input.path,
        "task": prediction.layout.task.name,
        "kind": prediction.tuned.kind,
        "labels": list(prediction.tuned.labels),
        "num_rows": counts["rows"],
        "num_blank": counts["blank"],
        "counts": dict(losses),
    }
    if handed_in is not None:
        result["submission"] = str(handed_in)
    if config.out is not None:
        return result | {"out": str(config.out)}
    return result | {"predictions": [row.fields for row in kept]}


def summary(
    prediction: Prediction,
    config: PredictConfig,
    counts: Counter[str],
    losses: Counter[str],
    handed_in: Path | None,
    *,
    seconds: float,
) -> list[str]:
    """Say what was predicted, what of it was not read, and where it is."""
    words = [f"{counted(counts['rows'], 'row')} of {prediction.input.path}"]
    labels = {n.removeprefix("label "): c for n, c in counts.items() if n.startswith("label ")}
    if labels:
        often = sorted(labels, key=lambda name: -labels[name])[:MOST_LISTED]
        more = " ..." if len(labels) > MOST_LISTED else ""
        words.append(", ".join(f"{name} ({labels[name]:,})" for name in often) + more)
    if prediction.tuned.kind == "qa":
        words.append(counted(counts["answers"], "answer"))
    if prediction.tuned.kind == "tagging":
        found = counted(counts["entities"], "entity", "entities")
        words.append(f"{found} in {counted(counts['words'], 'word')}")
    if counts["blank"]:
        words.append(f"{counts['blank']:,} without a token")
    rate = short_number(counts["rows"] / max(seconds, 1e-9))
    words.append(f"{duration(seconds)}, {rate} rows/s")
    lines = ["; ".join(words)]
    share = losses["truncated"] / max(1, counts["rows"])
    if lost := loss_words(losses, truncated_share=share):
        lines.append(f"note: {', '.join(lost)} ({prediction.tuned.length} tokens)")
    if prediction.tuned.threshold is not None:
        lines.append(
            "note: no answer is given where no_answer_score - score is above "
            f"{prediction.tuned.threshold:.3g}, the threshold of the training"
        )
    lines += [f"predictions: {config.out}"] if config.out is not None else []
    return lines + ([f"submission: {handed_in}"] if handed_in is not None else [])
