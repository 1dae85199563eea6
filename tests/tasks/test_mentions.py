import json

import pytest

from amber.errors import UserError
from amber.tasks.mentions import as_mentions, table_mentions
from amber.tasks.table import read_table
from amber.tasks.task import TaskFile

LAYOUT = TaskFile(name="", reader="mentions", id="id")


def read(tmp_path, *records: dict, needs_tags: bool = True):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return table_mentions(read_table(path), LAYOUT, needs_tags=needs_tags)


def test_the_last_character_belongs_to_the_entity(tmp_path):
    text = "\u6d59\u5546\u94f6\u884c\u4f01\u4e1a\u4fe1\u8d37\u90e8"
    label = {"company": {text[:4]: [[0, 3]]}}
    (example,) = read(tmp_path, {"text": text, "label": label}).examples
    assert example.text == text
    assert example.tags == ("B-company", "I-company", "I-company", "I-company", *"OOOOO")


def test_spans_point_into_the_text_as_it_is(tmp_path):
    text = "\u53f6\u8001 2012\u5e74 iPhone"
    label = {"name": {text[:2]: [[0, 1]]}, "thing": {"2012\u5e74 iPhone": [[3, 14]]}}
    (example,) = read(tmp_path, {"text": text, "label": label}).examples
    assert [text[a:b] for a, b in example.spans] == [c for c in text if c != " "]
    assert example.tags == ("B-name", "I-name", "B-thing", *["I-thing"] * 10)


def test_entities_are_written_as_they_are_read(tmp_path):
    label = {"a": {"bc": [[1, 2], [5, 6]], "e f": [[8, 10]]}, "b": {"a": [[0, 0]]}}
    (example,) = read(tmp_path, {"text": "abcd bc e f", "label": label}).examples
    assert example.tags is not None
    assert as_mentions(example, example.tags) == label
    assert as_mentions(example, ["O"] * len(example.spans)) == {}


def test_of_overlapping_entities_the_longest_stays_and_the_others_are_counted(tmp_path):
    label = {"a": {"bc": [[1, 2]]}, "b": {"abcd": [[0, 3]]}, "c": {"d": [[3, 3]], "e": [[4, 4]]}}
    file = read(tmp_path, {"text": "abcde", "label": label})
    assert file.examples[0].tags == ("B-b", "I-b", "I-b", "I-b", "B-c")
    assert "2 entities" in file.notes[0]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"a": {"cd": [[2, 3]]}}, "'cd' .* characters 2 to 3 of its text, which has 3"),
        ({"a": {"ab": [[1, 2]]}}, "'ab' .* is not at the characters 1 to 2"),
        ({"a": {"ab": [[-3, -2]]}}, "is not at the characters -3"),
        ({"a": {"": [[1, 0]]}}, "is not at the characters 1 to 0"),
        ({"a": [["ab", 0, 1]]}, "not entities"),
        ({"a": {"ab": [[0.9, 1.9]]}}, "not entities"),
        ({"a": {"ab": [[0, float("inf")]]}}, "not entities"),
        (None, "not entities"),
    ],
)
def test_a_span_outside_its_text_is_named(tmp_path, label, message):
    with pytest.raises(UserError, match=f"line 2, column 'label': .*{message}"):
        read(tmp_path, {"text": "x", "label": {}}, {"text": "abc", "label": label})


def test_a_file_without_labels_is_unlabelled_only_where_it_may_be(tmp_path):
    file = read(tmp_path, {"id": 7, "text": "ab"}, needs_tags=False)
    assert file.examples[0].tags is None
    assert file.examples[0].id == "7"
    with pytest.raises(UserError, match="no column 'label'"):
        read(tmp_path, {"text": "ab"})
