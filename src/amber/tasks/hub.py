"""Data sets of the Hugging Face hub as own data, where the machine is online."""

from dataclasses import replace
from typing import Any

from amber.errors import UserError
from amber.tasks.labels import finish_task
from amber.tasks.own import STEMS, OwnData, own_rows, own_task, with_joiner
from amber.tasks.table import Table
from amber.tasks.task import Task, TaskData


def load_hub(name: str, own: OwnData) -> tuple[Task, TaskData]:
    """Read a data set through `datasets`.

    Args:
        name: on the hub; a configuration follows after a colon (`nyu-mll/glue:cola`).
        own: names the kind and the columns; its files are not used. Labels that the data set stores
            as numbers with names get their names.

    Raises:
        UserError: `datasets` is not installed, or the data set cannot be had.
    """
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError as error:
        raise UserError(
            f"hub:{name}: reading from the hub needs the library datasets: pip install 'amber[hub]'"
        ) from error
    path, _, configuration = name.partition(":")
    try:
        loaded = datasets.load_dataset(path, configuration or None)
    except Exception as error:  # the library raises many kinds, offline ones among them
        reason = str(error).strip().splitlines()
        raise UserError(
            f"hub:{name}: cannot be read ({reason[0] if reason else type(error).__name__}): check "
            "the name and the network, or give files"
        ) from error
    return hub_task(name, loaded, own)


def hub_task(name: str, loaded: Any, own: OwnData) -> tuple[Task, TaskData]:
    """Turn the splits of a loaded data set into a task."""
    splits = {
        split: next((stem for stem in stems if stem in loaded), None)
        for split, stems in STEMS.items()
    }
    first = next((loaded[stem] for stem in splits.values() if stem is not None), None)
    if first is None:
        raise UserError(
            f"hub:{name}: no split called train, validation or test (there are "
            f"{', '.join(loaded)}): give files"
        )
    column = own.tags if own.kind == "tagging" else own.label
    names = _label_names(first, column)
    if names and not own.labels:
        own = replace(own, labels=tuple(names))
    task = own_task(own)
    files = {}
    for split, stem in splits.items():
        if stem is None:
            continue
        rows = [dict(row) for row in loaded[stem]]
        if names and own.kind != "tagging":
            rows = [_named(row, column, names) for row in rows]
        table = Table(
            path=f"hub:{name}, {stem}",
            columns=tuple(loaded[stem].column_names),
            rows=tuple(enumerate(rows, 1)),
            unit="row",
        )
        files[split] = own_rows(table, own, task, split=split)
        own = with_joiner(own, files[split].examples)
    return replace(task, name=f"hub:{name}"), finish_task(task, files)


def _label_names(split: Any, column: str) -> list[str]:
    """The names of labels that are stored as numbers; empty for others."""
    feature = split.features.get(column)
    inner = getattr(feature, "feature", feature)  # of a list
    return list(getattr(inner, "names", None) or [])


def _named(row: dict[str, Any], column: str, names: list[str]) -> dict[str, Any]:
    """The row with the name of its label; -1 is how hidden labels are stored."""
    value = row[column]
    if isinstance(value, list):
        return row | {column: [names[item] for item in value]}
    is_known = isinstance(value, int) and 0 <= value < len(names)
    return row | {column: names[value] if is_known else None}
