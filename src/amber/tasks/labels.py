"""The labels of a task: found in its training examples, and checked in all the others."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from amber.config import suggest
from amber.errors import UserError
from amber.tasks.example import QAExample, TaggedExample, TextExample
from amber.tasks.scheme import OUTSIDE, split_tag
from amber.tasks.task import ReadFile, Task, TaskData

MAX_LISTED = 20


def finish_task(
    task: Task, files: Mapping[str, ReadFile], *, labels: Sequence[str] | None = None
) -> TaskData:
    """Find the labels, check every file against them, and put the splits together.

    Args:
        task: may fix the labels.
        files: what was read for each split.
        labels: in place of the task's, in the order of their numbers: those of a trained model.

    Returns:
        The data. Labels that are found, not given, are those of train (without it, of all splits)
        in alphabetical order, or by value where all are numbers. For tagging they are O, then B-
        and I- of each type.

    Raises:
        UserError: a label that is not among the labels, or a train file whose labels are all equal.
    """
    notes = [note for file in files.values() for note in file.notes]
    fixed = task.labels if labels is None else tuple(labels)
    if task.kind in ("regression", "qa"):
        names: tuple[str, ...] = ()
    elif fixed is not None:
        names = fixed
    else:
        sources = {"train": files["train"]} if "train" in files else files
        found = {name for file in sources.values() for _, _, name in _names(file)}
        names = _tag_list(found) if task.kind == "tagging" else sort_labels(found)
        notes += _alike(names)
        if "train" not in files:
            notes.append(f"no train file: labels taken from {', '.join(files)}")
    if task.kind not in ("regression", "qa"):
        origin = "the labels" if fixed is not None else "the labels of train"
        remedy = "give the list of labels"
        if labels is not None:
            origin, remedy = "the labels of the model", "use a model that was trained with it"
        for file in files.values():
            _check_known(file, names, origin=origin, remedy=remedy)
    if "train" in files:
        _check_varied(task, files["train"])
    return TaskData(
        splits={split: file.examples for split, file in files.items()},
        labels=names,
        notes=tuple(dict.fromkeys(notes)),
        files={split: file.path for split, file in files.items()},
    )


def sort_labels(names: set[str]) -> tuple[str, ...]:
    """Sort labels by their value when all are numbers, else alphabetically."""
    try:
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))


def _tag_list(tags: set[str]) -> tuple[str, ...]:
    kinds = sorted({kind for tag in tags if (kind := (split_tag(tag) or ("", ""))[1])})
    return (OUTSIDE, *(f"{letter}-{kind}" for kind in kinds for letter in "BI"))


def _alike(names: Sequence[str]) -> list[str]:
    """Say which labels differ in case, blanks, marks that are not seen, or the form of a number."""
    groups: dict[str, list[str]] = {}
    for name in names:
        text = unicodedata.normalize("NFKC", name).casefold()
        key = "".join(c for c in text if not c.isspace() and unicodedata.category(c)[0] != "C")
        with suppress(ValueError):
            key = str(float(key))
        groups.setdefault(key, []).append(name)
    return [
        f"labels that look alike are different labels: {', '.join(map(repr, group))}; if they are "
        "one, write them in one way"
        for group in groups.values()
        if len(group) > 1
    ]


def _names(file: ReadFile) -> Iterator[tuple[int, int, str]]:
    """Each label with the place of its example, and for tags of its word."""
    for index, example in enumerate(file.examples):
        if isinstance(example, TaggedExample):
            for position, tag in enumerate(example.tags or ()):
                yield index, position, tag
        elif isinstance(example, TextExample):
            label = example.label
            for name in label if isinstance(label, tuple) else (label,):
                if isinstance(name, str):
                    yield index, 0, name


def _check_known(file: ReadFile, names: Sequence[str], *, origin: str, remedy: str) -> None:
    known = set(names)
    for index, position, name in _names(file):
        if name in known:
            continue
        number = file.numbers[index] + (position if file.has_word_lines else 0)
        listed = list(names[:MAX_LISTED])
        more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
        raise UserError(
            f"{file.path}, {file.unit} {number}, column {file.column!r}: label {name!r} is not "
            f"among {origin} ({', '.join(listed)}{more}){_near(name, names)}: mend the label, or "
            f"{remedy}"
        )


def _near(name: str, names: Sequence[str]) -> str:
    near = suggest(name, list(names))
    return near if "did you mean" in near else ""


def _check_varied(task: Task, file: ReadFile) -> None:
    """Stop when there is nothing to learn: one label on every example."""
    examples = file.examples
    if not examples:
        raise UserError(f"{file.path}: no example to train on is left: {'; '.join(file.notes)}")
    if isinstance(examples[0], QAExample):
        if not any(isinstance(e, QAExample) and e.answers for e in examples):
            raise UserError(
                f"{file.path}: no question has an answer in its context: give answers with their "
                "places"
            )
        return
    if isinstance(examples[0], TaggedExample):
        found = {tag for _, _, tag in _names(file)}
        if found == {OUTSIDE}:
            raise UserError(f"{file.path}: every tag is O: give a file with entities")
        return
    texts = [example for example in examples if isinstance(example, TextExample)]
    labels = {text.label for text in texts}
    if len(labels) == 1:
        (label,) = labels
        named = ", ".join(label) or "empty" if isinstance(label, tuple) else repr(label)
        raise UserError(
            f"{file.path}, column {file.column!r}: all {len(examples)} labels are {named}, so "
            f"there is nothing to learn for {task.name}: give examples of other labels, or name "
            "the right column"
        )
    rounded = {np.float32(label) for label in labels if isinstance(label, float)}
    if len(rounded) == 1:
        raise UserError(
            f"{file.path}, column {file.column!r}: the labels differ by less than float32 can "
            "tell: take their mean off"
        )
    if not any(text.text.strip() or (text.pair or "").strip() for text in texts):
        raise UserError(f"{file.path}: every text is empty: name the right column")
