"""The settings of a user's own data: files and columns; nothing here imports torch or pyarrow."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from amber.errors import UserError
from amber.tasks.example import Kind

Encoding = Literal["utf-8", "cp1252", "latin-1", "gb18030"]
_COLUMNS = ("text", "pair", "label", "words", "tags", "context", "question", "answers")
_USED: dict[Kind, tuple[str, ...]] = {
    "classification": ("text", "pair", "label"),
    "multilabel": ("text", "pair", "label"),
    "regression": ("text", "pair", "label"),
    "tagging": ("text", "label", "words", "tags"),
    "qa": ("context", "question", "answers"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnData:
    """Own files: TSV (no quoting), CSV, JSON Lines, Parquet; columns of words; SQuAD's JSON."""

    kind: Kind = "classification"
    """What is predicted: one label, several, a number, a tag for each word, or an answer."""

    train: Path | None = None
    """File to train on."""

    dev: Path | None = None
    """File to score on, and to choose by where something is chosen."""

    test: Path | None = None
    """File that --score-on test scores; without that its labels may be missing."""

    folder: Path | None = None
    """Folder with files called train, dev (or valid, validation, val) and test: .tsv, .csv, .jsonl
    or .parquet, plain or compressed, columns of words, or SQuAD's .json."""

    dev_fraction: float = 0.0
    """Share of the train file that becomes dev where there is no dev file; the same text (or
    context) is never on both sides."""

    text: str = "text"
    """Column of the text."""

    pair: str | None = None
    """Column of the second text."""

    label: str = "label"
    """Column of the label; several labels are parted by `separator`, or are a list."""

    id: str | None = None
    """Column of the id; without one rows are numbered from 0."""

    words: str = "words"
    """Column of the list of words (tagging)."""

    tags: str = "tags"
    """Column of the list of tags (tagging)."""

    context: str = "context"
    """Column of the context (questions)."""

    question: str = "question"
    """Column of the question."""

    answers: str = "answers"
    """Column of the answers: one text, or SQuAD's record with texts and places."""

    labels: tuple[str, ...] = ()
    """All labels, in the order of their numbers; without them those of train, sorted."""

    separator: str = ","
    """Between the labels of a multi-label cell."""

    joiner: str | None = None
    """Between the words of tagged files; unset: one blank, or nothing for files of characters."""

    header: bool = True
    """The first line of TSV and CSV names the columns; otherwise they are numbered from 1."""

    encoding: Encoding = "utf-8"
    """Of files that are not valid UTF-8."""

    metrics: tuple[str, ...] = ()
    """Scores; the first one counts (default: the first two of the kind, of tags all three).
    classification: accuracy, macro_f1, mcc, f1 (of the second of two labels); multilabel: micro_f1,
    accuracy; regression: spearman, pearson, mse; tagging: entity_f1, entity_precision,
    entity_recall; qa: answer_f1, exact_match, or by characters, for Chinese, cmrc_f1,
    cmrc_exact_match."""

    epochs: int = 3
    """Passes over the train file, as --recipe.epochs."""

    def __post_init__(self) -> None:
        if self.folder is not None and (self.train or self.dev or self.test):
            raise UserError("folder and train, dev or test: give the folder or the files, not both")
        if not 0.0 <= self.dev_fraction < 1.0:
            raise UserError(f"dev_fraction {self.dev_fraction} must be at least 0 and below 1")
        if self.epochs < 1:
            raise UserError(f"own.epochs must be above 0, got {self.epochs}")
        if self.dev_fraction and self.dev is not None:
            raise UserError("dev_fraction has no effect with a dev file: leave one of them out")
        default = {field.name: field.default for field in fields(self)}
        idle = [
            name
            for name in _COLUMNS
            if getattr(self, name) != default[name] and name not in _USED[self.kind]
        ]
        if idle:
            raise UserError(f"{idle[0]} has no effect with kind {self.kind!r}: leave it out")
        if self.separator != default["separator"] and self.kind != "multilabel":
            raise UserError("separator has no effect without kind 'multilabel': leave it out")
        if self.labels and self.kind in ("regression", "qa"):
            raise UserError(f"labels have no effect with kind {self.kind!r}: leave them out")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataColumns:
    """Columns of own data, where they differ from those that the model was trained on."""

    text: str | None = None
    """Column of the text."""

    pair: str | None = None
    """Column of the second text."""

    label: str | None = None
    """Column of the label."""

    id: str | None = None
    """Column of the id."""

    words: str | None = None
    """Column of the list of words (tagging)."""

    tags: str | None = None
    """Column of the list of tags (tagging)."""

    context: str | None = None
    """Column of the context (questions)."""

    question: str | None = None
    """Column of the question."""

    answers: str | None = None
    """Column of the answers."""

    separator: str | None = None
    """Between the labels of a multi-label cell."""

    joiner: str | None = None
    """Between the words of tagged files."""

    header: bool | None = None
    """The first line of TSV and CSV names the columns."""

    encoding: Encoding | None = None
    """Of files that are not valid UTF-8."""

    def given(self) -> dict[str, Any]:
        """Return what was given, by name."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: value for name, value in values.items() if value is not None}
