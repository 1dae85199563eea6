"""Score the lines of a file, in their order: what `amber score` does."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from amber.errors import UserError
from amber.run.commands import ScoreConfig
from amber.run.score import OnCount, Score, Scorer, score_texts
from amber.text.files import Source, find_sources
from amber.text.lines import OnBad, read_lines

CHUNK = 4096
STDIN = Path("/dev/stdin")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line and its score."""

    text: str
    score: Score


def open_sentences(path: Path) -> Source:
    """Find a file with one sentence per line; - is stdin.

    Raises:
        UserError: there is no such file, or it is of another kind.
    """
    if path == Path("-"):
        return Source(path=STDIN, format="txt", compression="none", size=0)
    if path.is_dir():
        raise UserError(f"{path}: is a folder: give one file with a sentence per line")
    source, *others = find_sources([path]).sources
    if others or source.format != "txt":
        raise UserError(f"{path}: give one .txt file with a sentence per line")
    return source


def read_sentences(source: Source, *, on_bad: OnBad) -> Iterator[str]:
    """Yield every line, blank ones too; a bad one that is to be skipped as a blank one.

    Raises:
        UserError: the file cannot be read, or a line under `stop`.
    """
    counts: Counter[str] = Counter()
    done = 0
    for number, line in read_lines(source, on_bad=on_bad, counts=counts):
        yield from [""] * (number - done - 1)
        yield line
        done = number
        counts.clear()
    yield from [""] * counts["bad_lines_skipped"]  # after the last good one


def score_lines(
    scorer: Scorer, config: ScoreConfig, *, on_count: OnCount = lambda done, total: None
) -> Iterator[Sentence]:
    """Yield each line with its score, some thousands at a time.

    Args:
        scorer: the model.
        config: which file, and what to do with bad lines.
        on_count: is called now and then.

    Raises:
        UserError: the file cannot be read.
    """
    source = open_sentences(config.file)
    total = None
    if source.path != STDIN:  # which can be read once only
        total = sum(1 for _ in read_sentences(source, on_bad=config.on_bad))
    elif scorer.process.num_ranks > 1:
        raise UserError("- is stdin, which several processes cannot share: give a file")
    lines, done = read_sentences(source, on_bad=config.on_bad), 0
    while texts := list(islice(lines, CHUNK)):

        def note(share: float, before: int = done, size: int = len(texts)) -> None:
            on_count(before + share * size, total)

        scores = score_texts(scorer, texts, on_progress=note)
        yield from map(Sentence, texts, scores)
        done += len(texts)
