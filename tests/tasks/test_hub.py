import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from amber.errors import UserError
from amber.tasks.hub import hub_task, load_hub
from amber.tasks.own import OwnData


class Split:
    """What `datasets` gives for a split, as far as it is used."""

    def __init__(self, rows: list[dict], **features: object) -> None:
        self.rows, self.features, self.column_names = rows, features, list(rows[0])

    def __iter__(self) -> Iterator[dict]:
        return iter(self.rows)


def test_labels_stored_as_numbers_get_their_names():
    kind = SimpleNamespace(names=["no", "yes"])
    loaded = {
        "train": Split([{"text": "a", "label": 1}, {"text": "b", "label": 0}], label=kind),
        "validation": Split([{"text": "c", "label": 1}], label=kind),
        "test": Split([{"text": "d", "label": -1}], label=kind),
    }
    task, data = hub_task("x", loaded, OwnData())
    assert (task.name, data.labels) == ("hub:x", ("no", "yes"))
    found = {split: [e.label for e in examples] for split, examples in data.splits.items()}
    assert found == {"train": ["yes", "no"], "dev": ["yes"], "test": [None]}


def test_tags_stored_as_numbers_get_their_names():
    kind = SimpleNamespace(feature=SimpleNamespace(names=["O", "B-PER", "I-PER"]))
    loaded = {"train": Split([{"words": ["Ann", "Lee"], "tags": [1, 2]}], tags=kind)}
    _, data = hub_task("x", loaded, OwnData(kind="tagging"))
    assert data.splits["train"][0].tags == ("B-PER", "I-PER")


def test_a_bad_row_is_named():
    loaded = {"train": Split([{"text": "a", "label": "x"}, {"text": None, "label": "y"}])}
    with pytest.raises(UserError, match="hub:x, train, row 2, column 'text': no value"):
        hub_task("x", loaded, OwnData())
    with pytest.raises(UserError, match=r"no split called train.*\(there are all\)"):
        hub_task("x", {"all": loaded["train"]}, OwnData())


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'amber\[hub\]'"):
        load_hub("x", OwnData())


def test_a_failure_of_the_library_is_one_line(monkeypatch):
    def fail(*_: object) -> None:
        raise ConnectionError("no network\nlong story")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=fail))
    with pytest.raises(UserError, match=r"hub:x: cannot be read \(no network\): check the name"):
        load_hub("x", OwnData())
