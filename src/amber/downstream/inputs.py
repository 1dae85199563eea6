"""The examples that a fine-tuned model is asked about, in the layout of its task or as own data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from amber.config import update
from amber.downstream.tuned_model import TunedModel
from amber.errors import UserError
from amber.tasks.columns import read_columns
from amber.tasks.config import DataColumns, OwnData
from amber.tasks.content import read_lines
from amber.tasks.example import Example, QAExample, TaggedExample, TextExample
from amber.tasks.load import choose_file, find_folder
from amber.tasks.mentions import table_mentions
from amber.tasks.named import find_task
from amber.tasks.own import STEMS, files_called, own_rows, own_task
from amber.tasks.plain_words import is_plain, is_sentences, plain_sentences, table_sentences
from amber.tasks.squad import Question, squad_questions, table_questions
from amber.tasks.table import Table, format_of, read_table
from amber.tasks.task import Task, TaskFile
from amber.tasks.texts import read_texts

UNREAD: Final = "\0"
"""Name of a column that no file has: what it stands for is not read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataLayout:
    """How the data of a model is laid out."""

    task: Task
    own: OwnData | None
    """Columns of own data; None where the files are those of a named task."""

    named: frozenset[str] = frozenset()
    """Settings of own data that were given for these files, beside those of the training."""

    @property
    def is_paired(self) -> bool:
        """Two texts make an example."""
        if self.own is not None:
            return self.own.pair is not None
        return any(file.pair or file.reader == "csl" for file in layouts_of(self.task))


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskInput:
    """What was read."""

    examples: tuple[Example, ...]
    """One for each row, unlabelled."""

    path: str
    """The file."""

    split: str
    """Of the task: by the name of the file, or as asked for."""


def layout_for(tuned: TunedModel, *, task: str | None, columns: DataColumns) -> DataLayout:
    """Find out how the data of a model is laid out.

    Args:
        tuned: the model.
        task: in place of that of its training; `own` for own data.
        columns: in place of those of its training; with them a file is own data.

    Raises:
        UserError: the task is of another kind than the model, or a column is without effect.
    """
    trained = find_layout(tuned, tuned.task or "own", {})
    layout = trained
    if task is not None or columns.given():
        layout = find_layout(tuned, task or tuned.task or "own", columns.given())
    if tuned.task is not None and layout.is_paired != trained.is_paired:
        raise UserError(
            f"{tuned.path} was trained on pairs of texts: name the second text with --own.pair"
            if trained.is_paired
            else f"{tuned.path} was trained on single texts: it cannot read pairs"
        )
    return layout


def find_layout(tuned: TunedModel, name: str, changes: dict[str, Any]) -> DataLayout:
    """Find the layout of a task, or of own data with some columns changed."""
    if name != "own" and not name.startswith("hub:"):
        found = find_task(name)
        if found.kind != tuned.kind:
            raise UserError(
                f"task {found.name} is for {found.kind}, but {tuned.path} was fine-tuned for "
                f"{tuned.kind}: name another task, or own"
            )
        if not changes:
            joiner = tuned.details.get("joiner") if found.joiner is None else found.joiner
            return DataLayout(task=replace(found, joiner=joiner), own=None)
    own = OwnData(kind=tuned.kind)
    if "own" in tuned.details and name == tuned.task:
        own = update(OwnData(), tuned.details["own"], where=f"{tuned.path}/config.json")
    if own.joiner is None:
        own = replace(own, joiner=tuned.details.get("joiner"))
    own = replace(own, **changes)
    return DataLayout(task=own_task(own), own=own, named=frozenset(changes))


def read_input(layout: DataLayout, path: Path, *, split: str | None) -> TaskInput:
    """Read the rows of a file, or of one file of a folder; labels are not read.

    Args:
        layout: of the file.
        path: a file, or a folder of the task or with it.
        split: which file of the folder; None is test.

    Raises:
        UserError: a bad file, or none of that split.
    """
    refuse_other_paths(path)
    layout = layout_of_file(layout, path)
    task, own = layout.task, layout.own
    if own is not None:
        if path.is_dir():
            path = own_split(path, split or "test")
        return TaskInput(
            examples=read_own_rows(path, own, layout), path=str(path), split=split or "test"
        )
    if path.is_dir():
        path, file = split_file(task, path, split or "test")
        found = split or "test"
    elif (known := known_file(task, path)) is not None:
        found, file = known[0] if split is None else split, known[1]
    elif is_plain(path) and task.kind in ("classification", "multilabel", "regression"):
        refuse_pairs(path, is_pair=layout.is_paired)
        return TaskInput(examples=plain_lines(path), path=str(path), split=split or "test")
    else:
        found, file = split or "test", fitting_file(task, path)
    return TaskInput(examples=read_task_rows(path, file, task), path=str(path), split=found)


def layout_of_file(layout: DataLayout, path: Path) -> DataLayout:
    """Read as own data what no named task has: tables of words or questions, text for a tagger."""
    if layout.own is not None:
        return layout
    task, name = layout.task, format_of(path)
    is_squad = name == "jsonl" and task.kind == "qa" and ".json" in path.suffixes
    readers = {file.reader for file in layouts_of(task)}
    is_table = path.is_file() and name != "tsv" and not is_squad and "mentions" not in readers
    is_text = (
        task.kind == "tagging"
        and known_file(task, path) is None
        and is_sentences(path, encoding=layouts_of(task)[0].encoding, joiner=task.joiner)
    )
    if not readers <= {"squad", "columns", "mentions"} or not (is_table or is_text):
        return layout
    return replace(layout, own=OwnData(kind=task.kind, joiner=task.joiner))


def refuse_other_paths(path: Path) -> None:
    """Stop where there is neither a file nor a folder.

    Raises:
        UserError: nothing is there, or a pipe, which can be read once only.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder: give a file with texts")
    if not path.is_file() and not path.is_dir():
        raise UserError(f"{path}: not a regular file: write what it gives into a file first")


def layouts_of(task: Task) -> tuple[TaskFile, ...]:
    """List the layouts of all files of a task, those of its test files first."""
    order = sorted(task.files, key=lambda split: not split.startswith("test"))
    return tuple(file for split in order for file in task.files[split])


def split_file(task: Task, folder: Path, split: str) -> tuple[Path, TaskFile]:
    """Find the file of a split in a task's folder.

    Raises:
        UserError: it is not there.
    """
    if split not in task.files:
        raise UserError(f"split is {split}: the files of {task.name} are {', '.join(task.files)}")
    there = find_folder(task, folder)
    files = task.files.get(split, ())
    chosen = choose_file(there, files) if there is not None else None
    if there is None or chosen is None:
        names = ", ".join(dict.fromkeys(file.name for file in files))
        raise UserError(
            f"{there or folder}: no {split} file of {task.name} (looked for {names}): give a file, "
            "or another --split"
        )
    return there / chosen.name, chosen


def known_file(task: Task, path: Path) -> tuple[str, TaskFile] | None:
    """Tell by the name of a file which split of a task it is; None when no split is called so."""
    for split, files in task.files.items():
        same = [replace(f, name=path.name) for f in files if Path(f.name).name == path.name]
        chosen = choose_file(path.parent, same)
        if chosen is not None:
            return split, chosen
    return None


def fitting_file(task: Task, path: Path) -> TaskFile:
    """Take the first layout of a task whose columns a file of another name has."""
    chosen = choose_file(path.parent, [replace(f, name=path.name) for f in layouts_of(task)])
    assert chosen is not None  # the file is there, and every task has a layout
    return chosen


def own_split(folder: Path, split: str) -> Path:
    """Find the file of a split of own data.

    Raises:
        UserError: none is called so, or several.
    """
    found = files_called(folder, split)
    if len(found) != 1:
        what = f"{len(found)} files" if found else "no file"
        names = " or ".join(STEMS.get(split, (split,)))
        raise UserError(
            f"{folder}: {what} called {names}: give the file itself, or another --split"
        )
    return found[0]


def read_task_rows(path: Path, file: TaskFile, task: Task) -> tuple[Example, ...]:
    """Read a file of a named task, every row of it."""
    task = replace(task, no_label=None)
    reader = "table" if file.reader.startswith("msr") else file.reader
    file = replace(file, label=UNREAD, skips_short=False, keeps_blank=True, reader=reader)
    if reader == "squad":
        return unanswered(squad_questions(path))
    if reader == "columns":
        return unlabelled(read_columns(path, file, joiner=task.joiner, needs_tags=False).examples)
    if reader == "mentions":
        table = read_table(path, encoding=file.encoding)
        return table_mentions(table, file, needs_tags=False).examples
    return unlabelled(read_texts(path, file, task, needs_label=False).examples)


def read_own_rows(path: Path, own: OwnData, layout: DataLayout) -> tuple[Example, ...]:
    """Read a file of own data, every row of it."""
    kind, suffix = own.kind, format_of(path)
    if kind == "qa" and suffix == "jsonl" and ".json" in path.suffixes:
        return unanswered(squad_questions(path))
    if kind == "tagging" and is_sentences(path, encoding=own.encoding, joiner=own.joiner):
        return plain_sentences(read_lines(path, encoding=own.encoding), joiner=own.joiner)
    if kind == "tagging" and suffix == "tsv":
        file = TaskFile(name=path.name, reader="columns", encoding=own.encoding)
        return unlabelled(read_columns(path, file, joiner=own.joiner, needs_tags=False).examples)
    is_text = kind not in ("tagging", "qa") and is_plain(path) and not layout.named - {"encoding"}
    if is_text and not has_header(path, own):
        refuse_pairs(path, is_pair=layout.is_paired)
        return plain_lines(path, own)
    table = read_table(path, has_header=own.header, encoding=own.encoding, keeps_blank=True)
    if own.id is not None and own.id not in table.columns:
        if "id" in layout.named:
            table.require(own.id)
        own = replace(own, id=None)
    if kind == "qa":
        return table_rows(table, own)
    if kind == "tagging" and own.words not in table.columns and own.text in table.columns:
        return table_sentences(table, text=own.text, id_column=own.id, joiner=own.joiner)
    hidden = {"label": UNREAD} | ({"tags": UNREAD} if kind == "tagging" else {})
    return own_rows(table, replace(own, **hidden), layout.task, split="test").examples


def table_rows(table: Table, own: OwnData) -> tuple[Example, ...]:
    """Read questions from a table, repeated ones too."""
    return unanswered(
        table_questions(
            table, question=own.question, context=own.context, answers=UNREAD, id_column=own.id
        )
    )


def unanswered(questions: Iterable[Question]) -> tuple[Example, ...]:
    """Turn questions into examples without answers, repeated ones too."""
    return tuple(
        QAExample(id=q.id, question=q.question, context=q.context, is_labelled=False)
        for q in questions
    )


def plain_lines(path: Path, own: OwnData | None = None) -> tuple[Example, ...]:
    """Read one text per line; blank lines count."""
    encoding = "utf-8" if own is None else own.encoding
    lines = read_lines(path, encoding=encoding)
    return tuple(TextExample(id=str(number), text=line) for number, line in enumerate(lines))


def has_header(path: Path, own: OwnData) -> bool:
    """Whether the first line names the columns of the texts, parted by tabs."""
    names = read_lines(path, encoding=own.encoding)[0].split("\t")
    columns = {own.text} | ({own.pair} if own.pair else set())
    return own.header and len(names) > 1 and columns <= {name.strip() for name in names}


def refuse_pairs(path: Path, *, is_pair: bool) -> None:
    """Stop where one text per line is not enough.

    Raises:
        UserError: the model reads pairs.
    """
    if is_pair:
        raise UserError(
            f"{path}: a line of plain text is one sentence, but the model reads pairs: give a TSV "
            "file with a column for each"
        )


def unlabelled(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Take off labels that stand between the texts (TREC), and tags beside the words."""
    return tuple(
        replace(each, label=None)
        if isinstance(each, TextExample)
        else replace(each, tags=None)
        if isinstance(each, TaggedExample)
        else each
        for each in examples
    )
