"""`amber score`: one line per sentence: score, number of tokens, the sentence."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from amber.cli.bar import Bar
from amber.cli.output import duration, open_console, print_json, short_number
from amber.errors import UserError
from amber.run.commands import ScoreConfig
from amber.run.device import open_process
from amber.run.folders import open_model
from amber.run.score import NAMES, Scorer, open_scorer
from amber.run.sentences import Sentence, score_lines


@dataclass
class Totals:
    """What was scored so far."""

    num_lines: int = 0
    num_scored: int = 0
    num_cut: int = 0
    num_tokens: int = 0
    score: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, sentence: Sentence, *, is_kept: bool) -> None:
        """Count a sentence; keep its row too."""
        score = sentence.score
        self.num_lines += 1
        self.num_scored += score.value is not None
        self.num_cut += len(score.windows) > 1
        self.num_tokens += score.num_tokens
        self.score += score.value or 0.0
        if is_kept:
            mean = None if score.value is None else score.value / score.num_tokens
            self.rows.append(
                {
                    "score": score.value,
                    "num_tokens": score.num_tokens,
                    "mean": mean,
                    "sentence": sentence.text,
                }
            )


def run(config: ScoreConfig, *, is_json: bool) -> int:
    """Score the sentences and write them where they are wanted."""
    is_to_stdout = config.out is None and not is_json
    console = open_console(is_json=is_json or is_to_stdout)
    opened = open_model(config.model)
    precision = config.precision or opened.trained_with.precision
    is_live = not (is_to_stdout and sys.stdout.isatty())  # its lines would run into the bar
    totals = Totals()
    with (
        open_process(config.device, precision) as process,
        open_output(config.out, is_to_stdout=is_to_stdout) as output,
        Bar(console, "sentences", is_live=is_live) as bar,
    ):
        scorer = open_scorer(opened, process, by=config.by, length=config.length)
        sentences = score_lines(scorer, config, on_count=bar.note)
        for sentence in counted(sentences, totals, is_kept=is_json and config.out is None):
            if output is not None:
                output.write(line_of(sentence))
    if is_json:
        print_json(as_dictionary(scorer, config, totals))
    console.print(
        summary(scorer, totals, seconds=bar.seconds), markup=False, soft_wrap=True, style="dim"
    )
    return 0


def counted(sentences: Iterable[Sentence], totals: Totals, *, is_kept: bool) -> Iterator[Sentence]:
    """Hand on sentences and add them up."""
    for sentence in sentences:
        totals.add(sentence, is_kept=is_kept)
        yield sentence


@contextmanager
def open_output(path: Path | None, *, is_to_stdout: bool) -> Iterator[TextIO | None]:
    """Open what the lines are written to; a file gets its name when it is complete.

    Only the first of several processes writes.

    Raises:
        UserError: nothing can be written there.
    """
    if path is not None and path.is_dir():
        raise UserError(f"out is {path}, a folder: name a file")
    if os.environ.get("RANK", "0") != "0" or (path is None and not is_to_stdout):
        yield None
    elif path is None:
        yield sys.stdout
    else:
        part = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = part.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UserError(f"out is {path}: cannot be written ({error.strerror})") from error
        try:
            with file:
                yield file
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def line_of(sentence: Sentence) -> str:
    """Write a line of the output; the sentence's own tabs become spaces."""
    score = sentence.score
    value = "" if score.value is None else f"{score.value:.4f}"
    return f"{value}\t{score.num_tokens}\t{sentence.text.replace(chr(9), ' ')}\n"


def as_dictionary(scorer: Scorer, config: ScoreConfig, totals: Totals) -> dict[str, Any]:
    """Collect the result for programs; the rows are in the file where there is one."""
    result: dict[str, Any] = {
        "model": str(scorer.opened.path),
        "file": str(config.file),
        "by": scorer.by,
        "length": scorer.length,
        "num_lines": totals.num_lines,
        "num_scored": totals.num_scored,
        "num_cut": totals.num_cut,
        "num_tokens": totals.num_tokens,
        "score": totals.score,
        "mean": totals.score / totals.num_tokens if totals.num_tokens else None,
    }
    return result | ({"sentences": totals.rows} if config.out is None else {"out": str(config.out)})


def summary(scorer: Scorer, totals: Totals, *, seconds: float) -> str:
    """Say in a line what was scored, and by what."""
    words = [f"{totals.num_lines:,} lines by {scorer.by} ({NAMES[scorer.by]}, nats)"]
    if totals.num_scored < totals.num_lines:
        words.append(f"{totals.num_lines - totals.num_scored:,} without a token")
    if totals.num_cut:
        words.append(f"{totals.num_cut:,} cut into windows of {scorer.length} tokens")
    if totals.num_tokens:
        words.append(f"{totals.score / totals.num_tokens:.4f} per token")
    rate = short_number(totals.num_lines / max(seconds, 1e-9))
    words.append(f"{duration(seconds)}, {rate} sentences/s")
    return "; ".join(words)
