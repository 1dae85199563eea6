"""A user's own data: how its files and columns become a task."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amber.errors import UserError
from amber.tasks.columns import read_columns
from amber.tasks.config import OwnData
from amber.tasks.example import Example, Kind, place_of
from amber.tasks.labels import finish_task
from amber.tasks.mentions import table_mentions
from amber.tasks.squad import check_questions, read_squad, table_questions
from amber.tasks.table import Table, format_of, read_table
from amber.tasks.tagged import joiner_of, table_words
from amber.tasks.task import ReadFile, Task, TaskData, TaskFile
from amber.tasks.texts import label_name, table_texts

STEMS = {
    "train": ("train", "training"),
    "dev": ("dev", "valid", "validation", "val"),
    "test": ("test",),
}
METRICS: dict[Kind, tuple[str, ...]] = {
    "classification": ("accuracy", "macro_f1"),
    "multilabel": ("micro_f1", "accuracy"),
    "regression": ("spearman", "pearson"),
    "tagging": ("entity_f1", "entity_precision", "entity_recall"),
    "qa": ("answer_f1", "exact_match"),
}


def own_task(own: OwnData) -> Task:
    """The record of the task that own data make."""
    labels = tuple(label_name(label) or "" for label in own.labels)
    if not all(labels):
        raise UserError("own.labels: one of them is empty: leave it out")
    if own.kind == "tagging" and labels and "O" not in labels:
        raise UserError("labels must hold the tag O, and B- and I- of each type")
    return Task(
        name="own",
        kind=own.kind,
        labels=labels or None,
        separator=own.separator,
        joiner=own.joiner,
        metrics=own.metrics or METRICS[own.kind],
        epochs=own.epochs,
    )


def load_own(own: OwnData, *, labels: Sequence[str] | None = None) -> tuple[Task, TaskData]:
    """Read own data.

    Args:
        own: the files and columns.
        labels: in place of those of `own`: those of a trained model.

    Raises:
        UserError: a file that is not there or bad; names file, line and column.
    """
    task = own_task(own)
    paths = _paths(own)
    files: dict[str, ReadFile] = {}
    for split, path in paths.items():
        files[split] = read_own(path, own, task, split=split)
        own = with_joiner(own, files[split].examples)
    if own.dev_fraction and "dev" in files:
        raise UserError(
            f"dev_fraction has no effect with the dev file {paths['dev']}: leave it out"
        )
    if own.dev_fraction and "train" in files:
        files["train"], files["dev"] = _divide(files["train"], own.dev_fraction)
    return task, finish_task(task, files, labels=labels)


def with_joiner(own: OwnData, examples: Sequence[Example]) -> OwnData:
    """Join the words of the files that follow as those of the first one were joined."""
    if own.kind != "tagging" or own.joiner is not None:
        return own
    return replace(own, joiner=joiner_of(examples))


def _paths(own: OwnData) -> dict[str, Path]:
    """The file of each split that was named, or is in the folder."""
    if own.folder is None:
        named = {"train": own.train, "dev": own.dev, "test": own.test}
        paths = {split: path for split, path in named.items() if path is not None}
        if not paths:
            raise UserError(
                "no data: name a train, dev or test file, or a folder with them (--data)"
            )
        return paths
    if not own.folder.is_dir():
        raise UserError(f"{own.folder}: no such folder: give the folder with the files")
    paths = {}
    for split in STEMS:
        found = files_called(own.folder, split)
        if len(found) > 1:
            raise UserError(
                f"{own.folder}: {', '.join(path.name for path in found)} could all be the {split} "
                "file: name the files one by one"
            )
        if found:
            paths[split] = found[0]
    if not paths:
        raise UserError(
            f"{own.folder}: no file called train, dev, valid, validation or test: rename the "
            "files, or name them one by one"
        )
    return paths


def files_called(folder: Path, split: str) -> list[Path]:
    """List the files of a folder whose names say that they are this split."""
    stems = STEMS.get(split, (split,))
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name.split(".")[0].casefold() in stems
    ]


def read_own(path: Path, own: OwnData, task: Task, *, split: str) -> ReadFile:
    """Read one file; only `test` may lack labels."""
    needs_label = split != "test"
    suffix = format_of(path)
    if own.kind == "qa" and suffix == "jsonl" and ".json" in path.suffixes:
        return read_squad(path, is_train=split == "train")
    if own.kind == "tagging" and suffix == "tsv":
        file = TaskFile(name=path.name, reader="columns", encoding=own.encoding)
        return read_columns(path, file, joiner=own.joiner, needs_tags=needs_label)
    table = read_table(path, has_header=own.header, encoding=own.encoding)
    return own_rows(table, own, task, split=split)


def own_rows(table: Table, own: OwnData, task: Task, *, split: str) -> ReadFile:
    """Turn the rows of a table into examples."""
    needs_label = split != "test"
    file = TaskFile(name="", text=own.text, pair=own.pair, label=own.label, id=own.id)
    if own.id is not None:
        table.require(own.id)
    if own.kind == "qa":
        if needs_label:
            table.require(own.answers)
        questions = table_questions(
            table,
            question=own.question,
            context=own.context,
            answers=own.answers,
            id_column=own.id,
        )
        return check_questions(table.path, questions, is_train=split == "train")
    if own.kind == "tagging":
        if own.words not in table.columns and own.text in table.columns:
            return table_mentions(table, file, needs_tags=needs_label)
        return table_words(
            table,
            words=own.words,
            tags=own.tags,
            names=own.labels or None,
            joiner=own.joiner,
            needs_tags=needs_label,
        )
    return table_texts(table, file, task, needs_label=needs_label)


def _divide(file: ReadFile, fraction: float) -> tuple[ReadFile, ReadFile]:
    """Cut a file in two by the hash of each text or context."""
    in_dev = [place_of(example) < fraction for example in file.examples]
    parts = []
    for side in (False, True):
        chosen = [index for index, value in enumerate(in_dev) if value == side]
        parts.append(
            replace(
                file,
                examples=tuple(file.examples[index] for index in chosen),
                numbers=tuple(file.numbers[index] for index in chosen),
                notes=(*file.notes, f"{file.path}: {len(chosen)} examples in {_side(side)}"),
            )
        )
    for part, side in zip(parts, (False, True), strict=True):
        if not part.examples:
            raise UserError(
                f"dev_fraction {fraction} leaves no example of {file.path} in {_side(side)}: "
                "change it, or give a dev file"
            )
    return parts[0], parts[1]


def _side(is_dev: bool) -> str:
    return "dev, taken from it" if is_dev else "train"
