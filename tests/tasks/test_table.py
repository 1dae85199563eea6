import gzip
import os
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amber.errors import UserError
from amber.tasks.table import read_table


def rows(path, content: bytes, **settings):
    path.write_bytes(content)
    return [tuple(row.values()) for _, row in read_table(path, **settings).rows]


def test_quotes_in_tsv_are_literal(tmp_path):
    text = b'text\tlabel\n"He said hi\t1\nplain\t0\n"quoted" end\t1\n'
    found = rows(tmp_path / "a.tsv", text)
    assert found == [('"He said hi', "1"), ("plain", "0"), ('"quoted" end', "1")]


def test_quotes_in_csv_follow_the_usual_rules(tmp_path):
    text = b'text,label\n"a, ""b""",1\n"two\nlines",0\nc,1\n'
    table = read_table_of(tmp_path / "a.csv", text)
    assert [row["text"] for _, row in table.rows] == ['a, "b"', "two\nlines", "c"]
    assert [number for number, _ in table.rows] == [2, 3, 5]


def read_table_of(path, content: bytes, **settings):
    path.write_bytes(content)
    return read_table(path, **settings)


def test_an_open_quote_in_csv_is_named_by_its_line(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv, line 3: not a row of CSV .* \.tsv"):
        rows(tmp_path / "a.csv", b'text,label\nfine,1\n"He said hi,1\nplain,0\n')


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\n\n\n"])
def test_marks_line_ends_and_the_last_lines_change_nothing(tmp_path, end, mark, tail):
    text = mark + b"a\tb\nx\t1\ny\t2" + tail
    text = text.replace(b"\n", end)
    assert rows(tmp_path / "a.tsv", text) == [("x", "1"), ("y", "2")]
    assert rows(tmp_path / "a.csv", text.replace(b"\t", b",")) == [("x", "1"), ("y", "2")]


def test_a_tab_at_the_end_of_lines_makes_no_column(tmp_path):
    assert rows(tmp_path / "a.tsv", b"a\tb\t\nx\t1\t\ny\t2\n") == [("x", "1"), ("y", "2")]


def test_words_for_nothing_are_text(tmp_path):
    words = ["NA", "null", "nan", "None", "", "N/A", "NULL"]
    text = "\n".join(["text\tlabel", *(f"{word}\t1" for word in words)]).encode()
    assert [row[0] for row in rows(tmp_path / "a.tsv", text)] == words
    text = text.replace(b"\t", b",")
    assert [row[0] for row in rows(tmp_path / "a.csv", text)] == words


def test_a_short_row_is_named_with_the_column_that_is_missing(tmp_path):
    with pytest.raises(UserError, match=r"line 3: 1 column where 2 .*'label' is missing"):
        rows(tmp_path / "a.tsv", b"text\tlabel\na\t1\nb\n")
    with pytest.raises(UserError, match="line 3: 1 column where 2"):
        rows(tmp_path / "a.csv", b"text,label\na,1\nb\n")


def test_short_rows_can_be_left_out_and_counted(tmp_path):
    table = read_table_of(tmp_path / "a.tsv", b"a\tb\nx\nx\t1\ny\n", skips_short=True)
    assert table.num_short == 2
    assert len(table.rows) == 1


def test_more_columns_than_the_header_are_named(tmp_path):
    with pytest.raises(UserError, match="line 2, column 3: 3 columns where 2"):
        rows(tmp_path / "a.tsv", b"text\tlabel\na\tb\t1\n")
    assert rows(tmp_path / "a.tsv", b"a\tb\nc\td\te\n", has_header=False, is_ragged=True) == [
        ("a", "b"),
        ("c", "d"),
    ]


def test_a_blank_line_between_rows_is_named(tmp_path):
    for name in ("a.tsv", "a.csv"):
        with pytest.raises(UserError, match="line 3: a blank line"):
            rows(tmp_path / name, b"text\na\n\nb\n")
    with pytest.raises(UserError, match="line 2: a blank line"):
        rows(tmp_path / "a.jsonl", b'{"a": 1}\n\n{"a": 2}\n')


def test_rows_of_empty_cells_can_be_kept(tmp_path):
    expected = [("a", "1"), ("", ""), ("b", "2"), ("", "")]
    text = b"x\ty\na\t1\n\t\nb\t2\n\t\n\n"
    assert rows(tmp_path / "a.tsv", text, keeps_blank=True) == expected
    text = text.replace(b"\t", b",")
    assert rows(tmp_path / "a.csv", text, keeps_blank=True) == expected
    assert rows(tmp_path / "b.csv", b'x\n""\na\n""\n\n', keeps_blank=True) == [
        ("",),
        ("a",),
        ("",),
    ]
    with pytest.raises(UserError, match="line 3: a blank line"):
        rows(tmp_path / "b.csv", b"x\na\n\nb\n", keeps_blank=True)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b" \t\r\n"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_an_empty_file_is_refused(tmp_path, content, name):
    with pytest.raises(UserError, match="is empty"):
        rows(tmp_path / name, content)


def test_a_header_without_rows_is_refused(tmp_path):
    with pytest.raises(UserError, match="no rows after its header"):
        rows(tmp_path / "a.tsv", b"text\tlabel\n")


def test_without_a_header_columns_have_numbers(tmp_path):
    table = read_table_of(tmp_path / "a.tsv", b"x\t1\ny\t2\n", has_header=False)
    assert table.columns == ("1", "2")
    assert [row["2"] for _, row in table.rows] == ["1", "2"]


def test_a_wrong_column_is_answered_with_the_nearest(tmp_path):
    table = read_table_of(tmp_path / "a.tsv", b"text\tlabels\na\t1\n")
    with pytest.raises(UserError, match=r"no column 'label'; did you mean 'labels'\?"):
        table.require("label")
    with pytest.raises(UserError, match="name it in the settings own"):
        table.require("label")
    with pytest.raises(UserError, match=r"there are text,label: part the columns by tabs in"):
        read_table_of(tmp_path / "a.tsv", b"text,label\na,1\n").require("text")
    with pytest.raises(UserError, match="2 columns are named 'text'"):
        read_table_of(tmp_path / "a.tsv", b"text\ttext\na\t1\n").require("text")


def test_a_line_that_is_no_record_is_named(tmp_path):
    with pytest.raises(UserError, match="line 2: not a JSON record"):
        rows(tmp_path / "a.jsonl", b'{"a": 1}\n{"a": \n')
    with pytest.raises(UserError, match="line 2: a JSON list"):
        rows(tmp_path / "a.jsonl", b'{"a": 1}\n[1]\n')


def test_text_must_be_text(tmp_path):
    table = read_table_of(tmp_path / "a.jsonl", b'{"t": "NA"}\n{"t": 5}\n{"t": null}\n{"u": 1}\n')
    assert [table.text(n, row, "t") for n, row in table.rows[:2]] == ["NA", "5"]
    for number in (3, 4):
        with pytest.raises(UserError, match=f"line {number}, column 't': no value"):
            table.text(*table.rows[number - 1], "t")


def test_a_number_that_is_none_is_no_text(tmp_path):
    table = read_table_of(tmp_path / "a.jsonl", b'{"t": NaN}\n')
    with pytest.raises(UserError, match="line 1, column 't': no value where text is needed"):
        table.text(*table.rows[0], "t")


def test_what_is_no_text_is_named(tmp_path):
    with pytest.raises(UserError, match="an archive or a spreadsheet: unpack it"):
        rows(tmp_path / "a.xlsx", b"PK\x03\x04\x14\x00\x00\x00")
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="a Parquet file by its first bytes"):
        rows(tmp_path / "a.tsv", (tmp_path / "a.parquet").read_bytes())
    with pytest.raises(UserError, match="a folder: give a file"):
        read_table(tmp_path)


def test_a_pipe_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: not a regular file: give a file"):
        read_table(tmp_path / "pipe")


def test_half_a_character_is_named(tmp_path):
    whole = rb'{"t": "\ud83d\ude00 \\ud83d"}' + b"\n"
    assert rows(tmp_path / "a.jsonl", whole) == [("\U0001f600 \\ud83d",)]
    with pytest.raises(UserError, match=r"a\.jsonl, line 2: \\ud83d is half a character"):
        rows(tmp_path / "a.jsonl", whole + rb'{"t": "a\ud83d"}')


def test_parquet_and_compressed_files_give_the_same_rows(tmp_path):
    pq.write_table(pa.table({"text": ["a", "NA"], "n": [1, 2]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.columns == ("text", "n")
    assert table.rows == ((1, {"text": "a", "n": 1}), (2, {"text": "NA", "n": 2}))
    packed = gzip.compress(b"text\tn\na\t1\n")
    assert rows(tmp_path / "a.tsv.gz", packed) == [("a", "1")]
    (tmp_path / "bad.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(UserError, match=r"bad\.parquet: not a readable Parquet file"):
        read_table(tmp_path / "bad.parquet")


def test_a_time_that_python_has_no_value_for_is_in_nobodys_way(tmp_path):
    times = {"ns": pa.array([1], pa.timestamp("ns")), "us": pa.array([2**62], pa.timestamp("us"))}
    pq.write_table(pa.table({"text": ["a"], **times}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    ((number, row),) = table.rows
    assert table.text(number, row, "text") == "a"
    with pytest.raises(UserError, match="row 1, column 'ns': a TimestampScalar where text"):
        table.text(number, row, "ns")


def test_a_decimal_is_a_number(tmp_path):
    pq.write_table(pa.table({"text": [Decimal("1.50")]}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.text(*table.rows[0], "text") == "1.50"


def test_semicolons_in_csv_are_named(tmp_path):
    with pytest.raises(UserError, match=r"line 2, column 2: 2 columns where 1 is .* by commas in"):
        rows(tmp_path / "a.csv", b"text;label\ngood, bad;1\n")
    with pytest.raises(UserError, match="column 2: 2 columns where 1 is expected: remove what is"):
        rows(tmp_path / "a.csv", b"text\ngood, bad\n")


def test_a_bad_byte_is_named_by_its_line_and_can_be_latin_1(tmp_path):
    text = b"text\nfine\ncaf\xe9\n"
    with pytest.raises(UserError, match=r"line 3: not valid UTF-8 \(byte 0xe9\)"):
        rows(tmp_path / "a.tsv", text)
    assert rows(tmp_path / "a.tsv", text, encoding="latin-1")[1] == ("caf\xe9",)
    assert rows(tmp_path / "a.tsv", b"text\n\x935 \x80\x94\n", encoding="cp1252") == [
        ("\u201c5 \u20ac\u201d",)
    ]
    text = "text\ncaf\xe9\n".encode()
    assert rows(tmp_path / "a.tsv", text, encoding="latin-1") == [("caf\xe9",)]
    text = "text\ncaf\xe9\n".encode("utf-16")
    assert rows(tmp_path / "a.tsv", text) == [("caf\xe9",)]


def test_a_missing_file_is_named(tmp_path):
    for name in ("no.tsv", "no.parquet"):
        with pytest.raises(UserError, match=name):
            read_table(tmp_path / name)


def test_utf_16_without_its_mark_is_named(tmp_path):
    with pytest.raises(UserError, match="NUL characters, as UTF-16 without"):
        rows(tmp_path / "a.tsv", "text\none\n".encode("utf-16-le"))
