import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amber.errors import UserError
from amber.tasks.example import Answer
from amber.tasks.own import OwnData, load_own, own_task


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def labels_of(data, split: str = "train") -> list:
    return [example.label for example in data.splits[split]]


ROWS = [{"text": "a, b", "label": "x"}, {"text": '"c', "label": "y"}, {"text": "NA", "label": "x"}]


def test_every_format_gives_the_same_examples(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "train.parquet")
    paths = [
        tmp_path / "train.parquet",
        write(tmp_path / "train.jsonl", lines(*ROWS)),
        write(tmp_path / "train.tsv", 'text\tlabel\na, b\tx\n"c\ty\nNA\tx\n'),
        write(tmp_path / "train.csv", 'label,text\nx,"a, b"\ny,"""c"\nx,NA\n'),
    ]
    found = [load_own(OwnData(train=path))[1] for path in paths]
    assert [e.text for e in found[0].splits["train"]] == ["a, b", '"c', "NA"]
    assert all(data.splits == found[0].splits for data in found)
    assert all(data.labels == ("x", "y") for data in found)


def test_columns_go_by_name_and_others_are_not_looked_at(tmp_path):
    path = write(tmp_path / "a.tsv", "score\tb\tno\ta\t\nx\tB\t1\tA\t\ny\tD\t\tC\t\n\n")
    task, data = load_own(OwnData(train=path, text="a", pair="b", label="score", id="no"))
    first, second = data.splits["train"]
    assert (first.id, first.text, first.pair, first.label) == ("1", "A", "B", "x")
    assert second.id == ""
    assert task.kind == "classification"


def test_without_a_header_columns_go_by_number(tmp_path):
    path = write(tmp_path / "a.tsv", "x\tA\ny\tB\n")
    _, data = load_own(OwnData(train=path, header=False, text="2", label="1"))
    assert labels_of(data) == ["x", "y"]
    with pytest.raises(UserError, match=r"no column 'text'; there are .*own.header false"):
        load_own(OwnData(train=path))


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "NA"], ("NA", "a", "b")),
        ([10, 9, 2], ("2", "9", "10")),
        ([True, False], ("false", "true")),
        ([1.0, 0.0, 1], ("0", "1")),
        (["1.0", "0.0", "1"], ("0", "1")),
        (["null", "nan", "None"], ("None", "nan", "null")),
        ([" a ", "a", "b"], ("a", "b")),
        ([0.5, 2], ("0.5", "2")),
    ],
)
def test_labels_of_any_type_have_names_in_order(tmp_path, values, labels):
    path = write(tmp_path / "a.jsonl", lines(*({"text": "t", "label": v} for v in values)))
    _, data = load_own(OwnData(train=path))
    assert data.labels == labels
    assert set(labels_of(data)) == set(labels)


def test_the_list_of_labels_can_be_given_and_keeps_its_order(tmp_path):
    train = write(tmp_path / "a.tsv", "text\tlabel\na\tx\nb\ty\n")
    dev = write(tmp_path / "b.tsv", "text\tlabel\na\tx\nb\tz\n")
    _, data = load_own(OwnData(train=train, dev=dev, labels=("z", "y", "x")))
    assert data.labels == ("z", "y", "x")
    with pytest.raises(UserError, match=r"b\.tsv, line 3, column 'label': label 'z' is not among"):
        load_own(OwnData(train=train, dev=dev))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text\tlabel\na\tx\nb\tx\n", "column 'label': all 2 labels are 'x'"),
        ("text\tlabel\n\tx\n \ty\n", "every text is empty: name the right column"),
        ("text\tlabel\na\tx\nb\t\n", "line 3, column 'label': nothing where a label is needed"),
        ("text\tlabels\na\tx\n", r"no column 'label'; did you mean 'labels'\?"),
        ("text\tlabel\na\tx\nb\n", "line 3: 1 column where 2"),
        ("", "is empty"),
    ],
)
def test_a_bad_train_file_is_refused_with_its_place(tmp_path, text, message):
    path = write(tmp_path / "train.tsv", text)
    with pytest.raises(UserError, match=rf"train\.tsv.*{message}"):
        load_own(OwnData(train=path))


def test_a_name_of_a_label_is_not_empty():
    with pytest.raises(UserError, match="own.labels: one of them is empty"):
        own_task(OwnData(labels=("x", " ")))


def test_null_is_no_label_and_the_test_file_needs_none(tmp_path):
    path = write(tmp_path / "a.jsonl", lines({"text": "a", "label": None}))
    with pytest.raises(UserError, match="line 1, column 'label': nothing where a label"):
        load_own(OwnData(train=path))
    _, data = load_own(OwnData(test=path, labels=("x", "y")))
    assert labels_of(data, "test") == [None]
    path = write(tmp_path / "b.tsv", "text\na\n")
    assert labels_of(load_own(OwnData(test=path, labels=("x", "y")))[1], "test") == [None]


def test_an_empty_text_is_kept_and_counted(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\n\tx\nb\ty\n")
    _, data = load_own(OwnData(train=path))
    assert data.splits["train"][0].text == ""
    assert data.notes == (f"{path}: 1 row with an empty text",)


@pytest.mark.parametrize("value", ["high", "nan", "inf", "1,5", "1_0", "", "True"])
def test_a_regression_label_that_is_no_number_is_named(tmp_path, value):
    path = write(tmp_path / "a.tsv", f"text\tlabel\na\t1.5\nb\t{value}\n")
    with pytest.raises(UserError, match="line 3, column 'label'"):
        load_own(OwnData(kind="regression", train=path))


def test_regression_labels_that_float32_cannot_hold_are_named(tmp_path):
    own = OwnData(kind="regression", train=tmp_path / "a.tsv")
    write(tmp_path / "a.tsv", "text\tlabel\na\t1.5\nb\t1e31\n")
    with pytest.raises(UserError, match="line 3, column 'label': '1e31' is too large to learn"):
        load_own(own)
    write(tmp_path / "a.tsv", "text\tlabel\na\t1000000001\nb\t1000000002\n")
    with pytest.raises(UserError, match="column 'label': the labels differ by less than float32"):
        load_own(own)


def test_regression_labels_are_floats(tmp_path):
    path = write(tmp_path / "a.jsonl", lines(*({"text": "t", "label": x} for x in (1, 2.5, "-3"))))
    _, data = load_own(OwnData(kind="regression", train=path))
    assert labels_of(data) == [1.0, 2.5, -3.0]
    assert data.labels == ()


def test_several_labels_come_from_a_cell_or_a_list(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nt\tb; a;b\nu\t\nv\tc\n")
    own = OwnData(kind="multilabel", train=path, separator=";")
    _, data = load_own(own)
    assert labels_of(data) == [("b", "a"), (), ("c",)]
    assert data.labels == ("a", "b", "c")
    path = write(tmp_path / "a.jsonl", lines(*({"text": "t", "label": x} for x in ([2, 1], []))))
    assert labels_of(load_own(OwnData(kind="multilabel", train=path))[1]) == [("2", "1"), ()]
    path = write(tmp_path / "a.tsv", "text\tlabel\nt\tb;a\nu\tb; a\n")
    with pytest.raises(UserError, match="all 2 labels are b, a, so there is nothing to learn"):
        load_own(own)
    path = write(tmp_path / "b.jsonl", lines({"text": "t", "label": 5}))
    with pytest.raises(UserError, match="line 1, column 'label': 5 where labels are needed"):
        load_own(OwnData(kind="multilabel", train=path))


def test_tagged_words_come_from_columns_lists_or_entities(tmp_path):
    tagged = [
        write(tmp_path / "a.conll", "Ann B-PER\nslept O\n"),
        write(tmp_path / "a.tsv", "Ann\tS-PER\nslept\tO\n"),
        write(tmp_path / "a.jsonl", lines({"words": ["Ann", "slept"], "tags": ["B-PER", "O"]})),
        write(tmp_path / "a.csv", "words,tags\nAnn slept,B-PER O\n"),
    ]
    for path in tagged:
        _, data = load_own(OwnData(kind="tagging", train=path))
        (example,) = data.splits["train"]
        assert (example.text, example.tags) == ("Ann slept", ("B-PER", "O"))
        assert data.labels == ("O", "B-PER", "I-PER")
    record = {"text": "Ann slept", "label": {"PER": {"Ann": [[0, 2]]}}}
    path = write(tmp_path / "b.jsonl", lines(record))
    _, data = load_own(OwnData(kind="tagging", train=path))
    assert data.splits["train"][0].tags == ("B-PER", "I-PER", "I-PER", *"OOOOO")


def test_tags_that_are_numbers_need_their_names(tmp_path):
    path = write(tmp_path / "a.jsonl", lines({"words": ["Ann", "slept"], "tags": [1, 0]}))
    _, data = load_own(OwnData(kind="tagging", train=path, labels=("O", "B-PER", "I-PER")))
    assert data.splits["train"][0].tags == ("B-PER", "O")
    with pytest.raises(UserError, match="line 1, column 'tags': 1 where a text is needed"):
        load_own(OwnData(kind="tagging", train=path))


def test_another_number_of_tags_than_of_words_is_named(tmp_path):
    good = {"words": ["a", "b"], "tags": ["B-X", "O"]}
    path = write(tmp_path / "a.jsonl", lines(good, good | {"tags": ["O"]}))
    with pytest.raises(UserError, match="line 2, column 'tags': 1 tags for 2 words"):
        load_own(OwnData(kind="tagging", train=path))
    path = write(tmp_path / "b.jsonl", lines(good, good | {"tags": ["O", "X"]}))
    with pytest.raises(UserError, match="line 2, column 'tags', word 2: 'X' is no tag"):
        load_own(OwnData(kind="tagging", train=path))
    path = write(tmp_path / "c.jsonl", lines(good | {"tags": ["O", "O"]}))
    with pytest.raises(UserError, match="every tag is O"):
        load_own(OwnData(kind="tagging", train=path))


def test_questions_come_from_rows_or_from_squads_layout(tmp_path):
    row = {"context": "in 1998.", "question": "When?"}
    record = {"text": ["1998"], "answer_start": [3]}
    qas = [{"id": "0", "question": "When?", "answers": [{"text": "1998", "answer_start": 3}]}]
    squad = {"data": [{"paragraphs": [{"context": "in 1998.", "qas": qas}]}]}
    files = [
        write(tmp_path / "a.jsonl", lines(row | {"answers": record})),
        write(tmp_path / "b.jsonl", lines(row | {"answers": "1998"})),
        write(tmp_path / "a.tsv", "context\tquestion\tanswers\nin 1998.\tWhen?\t1998\n"),
        write(tmp_path / "a.json", json.dumps(squad)),
    ]
    for path in files:
        _, data = load_own(OwnData(kind="qa", train=path))
        (example,) = data.splits["train"]
        assert example.answers == (Answer(text="1998", start=3),), path
        assert example.gold_texts == ("1998",)
    path = write(tmp_path / "c.jsonl", lines(row))
    assert not load_own(OwnData(kind="qa", test=path))[1].splits["test"][0].is_labelled
    path = write(tmp_path / "d.jsonl", lines(row | {"answers": "1999"}))
    with pytest.raises(UserError, match="no example to train on is left"):
        load_own(OwnData(kind="qa", train=path))


def test_a_folder_gives_its_files_by_their_names(tmp_path):
    for name in ("train.tsv", "validation.tsv", "Test.tsv"):
        write(tmp_path / name, "text\tlabel\na\tx\nb\ty\n")
    _, data = load_own(OwnData(folder=tmp_path))
    assert list(data.splits) == ["train", "dev", "test"]
    write(tmp_path / "train.csv", "text,label\na,x\n")
    with pytest.raises(UserError, match=r"train\.csv, train\.tsv could all be the train file"):
        load_own(OwnData(folder=tmp_path))


def test_a_part_of_train_can_be_dev_with_no_text_on_both_sides(tmp_path):
    rows = "".join(f"text {i % 200}\t{i % 2}\n" for i in range(400))
    path = write(tmp_path / "a.tsv", "text\tlabel\n" + rows)
    _, data = load_own(OwnData(train=path, dev_fraction=0.25))
    train, dev = ({e.text for e in data.splits[split]} for split in ("train", "dev"))
    assert not train & dev
    assert len(data.splits["train"]) + len(data.splits["dev"]) == 400
    assert 32 < len(dev) < 68  # of 200 texts; 50 are expected, the deviation is 6.1
    assert load_own(OwnData(train=path, dev_fraction=0.25))[1] == data


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pair": "b", "kind": "tagging"}, "pair has no effect"),
        ({"context": "c"}, "context has no effect"),
        ({"separator": ";"}, "separator has no effect"),
        ({"labels": ("a",), "kind": "regression"}, "labels have no effect"),
        ({"folder": Path("a"), "train": Path("b")}, "not both"),
        ({"dev_fraction": 1.0}, "below 1"),
        ({"epochs": 0}, "own.epochs must be above 0, got 0"),
        ({"dev": Path("a"), "dev_fraction": 0.1}, "no effect with a dev file"),
    ],
)
def test_a_setting_without_effect_or_sense_is_refused(settings, message):
    with pytest.raises(UserError, match=message):
        OwnData(**settings)


def test_no_data_at_all_is_refused(tmp_path):
    with pytest.raises(UserError, match="no data: name a train"):
        load_own(OwnData())
    with pytest.raises(UserError, match="no file called train"):
        load_own(OwnData(folder=tmp_path))


def test_words_of_all_files_are_joined_as_those_of_train(tmp_path):
    write(tmp_path / "train.tsv", "好 B-PER\n人 O\n".replace(" ", "\t"))
    write(tmp_path / "dev.tsv", "anna B-PER\n好 O\n".replace(" ", "\t"))
    own = OwnData(kind="tagging", folder=tmp_path)
    assert load_own(own)[1].splits["dev"][0].text == "anna好"
    (tmp_path / "train.tsv").write_text("one\tB-PER\n人\tO\n")
    assert load_own(own)[1].splits["dev"][0].text == "anna 好"


def test_an_accent_of_its_own_makes_no_other_label(tmp_path):
    rows = "text\tlabel\na\tcaf\u00e9\nb\tcafe\u0301\nc\tno\n"
    (tmp_path / "train.tsv").write_text(rows, encoding="utf-8")
    _, data = load_own(OwnData(folder=tmp_path))
    assert data.labels == ("caf\u00e9", "no")
    (tmp_path / "train.tsv").write_text("A B-caf\u00e9\n\nB B-cafe\u0301\n", encoding="utf-8")
    _, data = load_own(OwnData(kind="tagging", folder=tmp_path))
    assert data.labels == ("O", "B-caf\u00e9", "I-caf\u00e9")


def test_labels_that_look_alike_are_told(tmp_path):
    names = ("pos", "Pos", "\u200bpos", "1", "01", "\uff11", "2", "neg")
    rows = "".join(f"a\t{name}\n" for name in names)
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    _, data = load_own(OwnData(folder=tmp_path))
    told = [note for note in data.notes if "look alike" in note]
    assert len(told) == 2
    assert "'01', '1', '\uff11'; if they are one" in told[0]
    assert "'Pos', 'pos', '\\u200bpos'; if" in told[1]
    (tmp_path / "train.tsv").write_text("A B-Per\n\nB B-PER\n")
    _, data = load_own(OwnData(kind="tagging", folder=tmp_path))
    assert any("'B-PER', 'B-Per'" in note for note in data.notes)
    _, data = load_own(OwnData(kind="tagging", folder=tmp_path), labels=data.labels)
    assert not any("look alike" in note for note in data.notes)  # they are as they were trained
