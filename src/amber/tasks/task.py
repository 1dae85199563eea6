"""What a task is: its files and how to read them, its labels, its scores. A record, no class tree.

A new task is one more `Task` in a table of `named.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from amber.tasks.content import Encoding
from amber.tasks.example import Example, Kind

Reader = Literal[
    "table",
    "tabs",
    "msr_train",
    "msr_dev",
    "trec",
    "csl",
    "cluewsc",
    "columns",
    "mentions",
    "squad",
]
"""`table`: by the name of the file. `tabs`: TSV whatever its name."""
Submission = Literal["glue", "clue", "squad"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFile:
    """One file that may hold a split, and where its columns are."""

    name: str
    """Relative to the task's folder."""
    reader: Reader = "table"
    text: str = "text"
    """Column of the text. Without a header columns are numbered from 1."""
    joined: str | None = None
    """Column that continues the text, after one blank."""
    pair: str | None = None
    """Column of the second text."""
    label: str = "label"
    """Column of the label; it may be missing in test files only."""
    id: str | None = None
    """Column of the id; None numbers the rows from 0."""
    has_header: bool = True
    is_ragged: bool = False
    """Rows may have more columns than the first one."""
    skips_short: bool = False
    """Rows with too few columns are left out and counted."""
    keeps_blank: bool = False
    """Rows whose cells are all empty count; otherwise they are blank lines."""
    encoding: Encoding = "utf-8"
    """Of a file that is not valid UTF-8."""
    has_prefix: bool = False
    """Each word starts with the code of its language, as in `en:word`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task."""

    name: str
    kind: Kind
    folders: tuple[str, ...] = ()
    """Usual names of its folder."""
    files: Mapping[str, tuple[TaskFile, ...]] = field(default_factory=dict)
    """Per split (train, dev, test; for MNLI also dev_mismatched, test_mismatched and ax) the files
    that may hold it; the first one that is there and has the columns is read."""
    labels: tuple[str, ...] | None = None
    """In the order of their numbers; None takes those of train, sorted."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Label as some files write it -> its name in `labels`."""
    no_label: str | None = None
    """Label of rows on which the annotators did not agree: left out and counted."""
    separator: str = ","
    """Between the labels of a multi-label cell."""
    joiner: str | None = None
    """Between the words of a tagged sentence; None: one blank, or nothing where nearly every word
    of the first file is one character."""
    metrics: tuple[str, ...] = ("accuracy",)
    """The first one is the score of the task."""
    epochs: int = 3
    """Of the paper: 10 for RTE and STS-B, 2 for SQuAD, else 3 (Clark et al. 2020, appendix B)."""
    is_unordered: bool = False
    """The pair means the same in both orders: the official code trains on both."""
    submission: Submission | None = None
    """Layout that the leaderboard takes."""
    submission_files: Mapping[str, str] = field(default_factory=dict)
    """Per split the name that the leaderboard expects."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskData:
    """The examples of a task."""

    splits: dict[str, tuple[Example, ...]]
    """Splits whose file is missing are missing here."""
    labels: tuple[str, ...]
    """In the order of their numbers; empty for regression and questions."""
    notes: tuple[str, ...] = ()
    """What was skipped or repaired, with counts."""
    files: dict[str, str] = field(default_factory=dict)
    """Which file each split was read from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFile:
    """The examples of one file, with what messages need to name a place in it."""

    path: str
    examples: tuple[Example, ...]
    numbers: tuple[int, ...]
    """Line of each example, of a tagged sentence the line of its first word."""
    column: str = "label"
    """Where the labels are."""
    unit: Literal["line", "row"] = "line"
    has_word_lines: bool = False
    """Each word of a tagged sentence has its own line."""
    notes: tuple[str, ...] = ()
