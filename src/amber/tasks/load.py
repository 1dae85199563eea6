"""Read a named task from the folder with its files."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amber.errors import UserError
from amber.tasks.columns import read_columns
from amber.tasks.content import read_lines
from amber.tasks.labels import finish_task
from amber.tasks.mentions import table_mentions
from amber.tasks.squad import read_squad
from amber.tasks.table import format_of, read_table
from amber.tasks.tagged import joiner_of
from amber.tasks.task import ReadFile, Task, TaskData, TaskFile
from amber.tasks.texts import MSR_IDS, read_texts


def load_task(task: Task, data_dir: Path, *, labels: Sequence[str] | None = None) -> TaskData:
    """Read every split of a task that is there.

    Args:
        task: from `find_task`.
        data_dir: the task's own folder, or the one that holds it (`glue` with `CoLA` in it).
        labels: in place of the task's, in the order of their numbers: those of a trained model.

    Raises:
        UserError: no file of the task is there, or one of them is bad.
    """
    folder = find_folder(task, data_dir)
    if folder is None:
        names = dict.fromkeys(file.name for files in task.files.values() for file in files)
        raise UserError(
            f"{data_dir}: no file of {task.name} there or in a folder "
            f"{' or '.join(task.folders)} in it: looked for {', '.join(names)}"
        )
    files: dict[str, ReadFile] = {}
    joiner = task.joiner
    for split, candidates in task.files.items():
        chosen = choose_file(folder, candidates)
        if chosen is None:
            continue
        file = _read(folder / chosen.name, chosen, task, split=split, joiner=joiner)
        if chosen.reader == "msr_dev" and not file.examples:
            note = f"{file.path}: all in train and no dev, because {MSR_IDS} is not there"
            files["train"] = replace(files["train"], notes=(*files["train"].notes, note))
            continue
        files[split] = file
        if task.kind == "tagging" and joiner is None and chosen.reader == "columns":
            joiner = joiner_of(file.examples)
    return finish_task(task, files, labels=labels)


def find_folder(task: Task, data_dir: Path) -> Path | None:
    """Find the folder that holds files of a task; None when there is none.

    A folder in `data_dir` counts when its name is one of the usual ones, or one of these with more
    after `_` or `-`; case does not count.
    """
    if not data_dir.is_dir():
        raise UserError(f"{data_dir}: no such folder: give the folder with the task's files")
    usual = [name.casefold() for name in task.folders]
    inside = [path for path in sorted(data_dir.iterdir()) if path.is_dir()]
    exact = [path for path in inside if path.name.casefold() in usual]
    longer = [
        path
        for path in inside
        if path not in exact
        and any(path.name.casefold().startswith((f"{n}_", f"{n}-")) for n in usual)
    ]
    for folder in (*exact, *longer, data_dir):
        if any(choose_file(folder, files) for files in task.files.values()):
            return folder
    return None


def choose_file(folder: Path, candidates: Sequence[TaskFile]) -> TaskFile | None:
    """The first of the files that is there; of two layouts of one file, the one that fits."""
    there = [file for file in candidates if (folder / file.name).is_file()]
    for file in there:
        is_shared = sum(other.name == file.name for other in there) > 1
        if not is_shared or _has_columns(folder / file.name, file):
            return file
    return there[0] if there else None


def _has_columns(path: Path, file: TaskFile) -> bool:
    """Whether the first line names the columns of the texts, or the records have them."""
    if file.reader == "table" and format_of(path) in ("jsonl", "parquet"):
        columns = read_table(path, encoding=file.encoding).columns
        return {file.text, file.pair} - {None} <= set(columns)
    if not file.has_header:
        return True
    mark = "," if format_of(path) == "csv" else "\t"
    names = {cell.strip() for cell in read_lines(path, encoding=file.encoding)[0].split(mark)}
    return {file.text} | ({file.pair} if file.pair else set()) <= names


def _read(path: Path, file: TaskFile, task: Task, *, split: str, joiner: str | None) -> ReadFile:
    needs_label = split in ("train", "dev", "dev_mismatched")
    if file.reader == "squad":
        return read_squad(path, is_train=split == "train")
    if file.reader == "columns":
        return read_columns(path, file, joiner=joiner, needs_tags=needs_label)
    if file.reader == "mentions":
        table = read_table(path, encoding=file.encoding)
        return table_mentions(table, file, needs_tags=needs_label)
    return read_texts(path, file, task, needs_label=needs_label)
