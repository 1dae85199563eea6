"""Minimal pairs in the layouts of BLiMP and ZhoBLiMP, and what is refused."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from amber.errors import UserError
from amber.run.pairs import Pair, read_pairs

BLIMP = {
    "sentence_good": "Who sees it?",
    "sentence_bad": "Who it sees?",
    "field": "syntax",
    "linguistics_term": "island_effects",
    "UID": "adjunct_island",
    "pairID": "0",
}
ZHOBLIMP = {
    "UID": "BA_deletion",
    "phenomenon": "BA",
    "sentence_good": "\u732b\u3002",
    "sentence_bad": "\u72d7\u3002",
}


def write(path: Path, *records) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def pack(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"Folder/{name.replace('_dot_', '.')}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_file_of_blimp(tmp_path):
    path = write(tmp_path / "a.jsonl", BLIMP)
    place = f"{path}, line 1"
    assert read_pairs(path) == [
        Pair("Who sees it?", "Who it sees?", "adjunct_island", "island_effects", place)
    ]


def test_a_folder_is_read_in_the_order_of_its_names_and_other_files_are_passed_over(tmp_path):
    write(tmp_path / "b.jsonl", BLIMP)
    write(tmp_path / "a.jsonl", ZHOBLIMP)
    (tmp_path / "README.md").write_text("no pairs")
    (tmp_path / "human.csv").write_text("no,pairs")
    assert [pair.paradigm for pair in read_pairs(tmp_path)] == ["BA_deletion", "adjunct_island"]


def test_an_archive_of_zhoblimp_without_the_hidden_files_of_other_systems(tmp_path):
    line = json.dumps(ZHOBLIMP).encode()
    path = pack(tmp_path / "z.tar.gz", b_dot_jsonl=line, _dot__b_dot_jsonl=b"\x00", c_dot_md=b"x")
    (pair,) = read_pairs(path)
    assert (pair.phenomenon, pair.good) == ("BA", "\u732b\u3002")
    assert pair.place == f"{path}: Folder/b.jsonl, line 1"


def test_names_that_are_not_given(tmp_path):
    record = {key: ZHOBLIMP[key] for key in ("sentence_good", "sentence_bad")}
    (pair,) = read_pairs(write(tmp_path / "my.pairs.jsonl", record))
    assert (pair.paradigm, pair.phenomenon) == ("my", "")


def test_the_limit_counts_each_paradigm_by_itself(tmp_path):
    path = write(tmp_path / "a.jsonl", BLIMP, BLIMP, ZHOBLIMP, BLIMP)
    names = [pair.paradigm for pair in read_pairs(path, limit=2)]
    assert names == ["adjunct_island", "adjunct_island", "BA_deletion"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"sentence_good": "a', "a.jsonl, line 2: not a JSON record"),
        ("[1]", "a.jsonl, line 2: a JSON record that is no object"),
        ('{"sentence_good": "a"}', "line 2: no key sentence_bad in the record .it has: sentence_g"),
        ('{"sentence_good": 1, "sentence_bad": "a"}', "line 2: sentence_good is 1: give"),
        ('{"sentence_good": "a", "sentence_bad": " "}', "line 2: sentence_bad is"),
    ],
)
def test_a_bad_record_is_named_by_file_and_line(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(BLIMP) + "\n" + line + "\n")
    with pytest.raises(UserError, match=message):
        read_pairs(path)


def test_bytes_that_are_no_text_are_named_by_their_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(BLIMP).encode() + b"\n\xff")
    with pytest.raises(UserError, match="line 2: not valid UTF-8"):
        read_pairs(path)


def test_a_damaged_archive_and_one_without_pairs_are_refused(tmp_path):
    content = b"".join(json.dumps(BLIMP | {"pairID": i}).encode() + b"\n" for i in range(9000))
    path = pack(tmp_path / "a.tar.gz", a_dot_jsonl=content)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(UserError, match="damaged or cut off"):
        read_pairs(path)
    with pytest.raises(UserError, match="holds no pairs"):
        read_pairs(pack(tmp_path / "b.tar.gz", a_dot_txt=content))
