import bz2
import gzip
import json
import tracemalloc
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amber.errors import UserError
from amber.text import lines as lines_module
from amber.text.documents import read_documents
from amber.text.files import find_sources


def read(path, content: bytes | None = None, **settings):
    if content is not None:
        path.write_bytes(content)
    (source,) = find_sources([path]).sources
    counts = settings.pop("counts", Counter())
    return list(read_documents(source, counts=counts, **settings))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_byte_order_marks_change_nothing(tmp_path, end, mark, last):
    def joined(*lines: bytes) -> bytes:
        return mark + end.join(lines) + (end if last else b"")

    text = joined(b"hello", b"world", b"", b"b")
    assert read(tmp_path / "a.txt", text) == ["hello\nworld", "b"]
    assert read(tmp_path / "a.txt", text, separator="line") == ["hello", "world", "b"]
    assert read(tmp_path / "a.txt", text, separator="file") == ["hello\nworld\nb"]
    assert read(tmp_path / "a.jsonl", joined(b'{"text":"a"}', b'{"text":"b"}')) == ["a", "b"]
    assert read(tmp_path / "a.csv", joined(b"id,text", b'1,"a, b"', b"2,c")) == ["a, b", "c"]
    assert read(tmp_path / "a.tsv", joined(b"id\ttext", b"1\ta", b"2\tc")) == ["a", "c"]


def test_a_line_end_cut_between_two_chunks_is_one_line_end(tmp_path, monkeypatch):
    data = b"long\r\nb\rc\r\n\r\nd\r"
    monkeypatch.setattr(
        lines_module, "read_chunks", lambda *_a, **_k: (bytes([byte]) for byte in data)
    )
    assert read(tmp_path / "a.txt", data) == ["long\nb\nc", "d"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_decoded_by_their_mark(tmp_path, encoding):
    text = "\ufeffcaf\u00e9 \U0001f600\r\n\r\nb"
    assert read(tmp_path / "a.txt", text.encode(encoding)) == ["caf\u00e9 \U0001f600", "b"]


def test_half_a_character_at_the_end_of_utf_16_is_an_error(tmp_path):
    with pytest.raises(UserError, match=r"a\.txt, line 1: not valid"):
        read(tmp_path / "a.txt", "\ufeffab".encode("utf-16-le") + b"x")


BAD = b"\xef\xbb\xbfgood line\r\n\xd6x\nlast\n"


def test_a_bad_byte_stops_with_file_line_and_offset(tmp_path):
    with pytest.raises(UserError, match=r"a\.txt, line 2, byte 14: .*0xd6"):
        read(tmp_path / "a.txt", BAD)


def test_bad_bytes_are_replaced_or_skipped_and_counted(tmp_path):
    counts = Counter()
    replaced = read(tmp_path / "a.txt", BAD, on_bad="replace", counts=counts)
    skipped = read(tmp_path / "a.txt", BAD, on_bad="skip", counts=counts)
    assert replaced == ["good line\n\ufffdx\nlast"]
    assert skipped == ["good line\nlast"]
    assert counts == {"bad_lines_replaced": 1, "bad_lines_skipped": 1}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"other": "x"}', "no key 'text'"),
        ('{"text": null}', "is null"),
        ('{"text": 3}', "is a number"),
        ('{"text": true}', "is a boolean"),
        ('{"text": NaN}', "is a number"),
        ('{"text": ["a"]}', "is a list"),
        ('{"text": {"a": "b"}}', "is an object"),
        ('{"text": ""}', "empty string"),
        ('{"text": "a",}', "not a JSON record"),
        ("", "blank line"),
        ("[1]", "where an object is needed"),
        ("[" * 100_000, "not a JSON record"),
    ],
)
def test_a_record_without_text_stops_with_its_line_or_is_counted(tmp_path, record, reason):
    content = ('{"text": "a"}\n' + record + '\n{"text": "b"}\n\n').encode()
    with pytest.raises(UserError, match=rf"a\.jsonl, line 2: .*{reason}"):
        read(tmp_path / "a.jsonl", content)
    counts = Counter()
    assert read(tmp_path / "a.jsonl", content, on_bad="skip", counts=counts) == ["a", "b"]
    assert counts == {"bad_records_skipped": 1}


def test_nested_keys_are_dotted_and_a_literal_key_comes_first(tmp_path):
    content = b'{"a": {"b": "nested"}}\n{"a.b": "literal", "a": {"b": "no"}}\n'
    assert read(tmp_path / "a.jsonl", content, text_field="a.b") == ["nested", "literal"]
    with pytest.raises(UserError, match=r"line 1: no key 'a\.c'"):
        read(tmp_path / "a.jsonl", content, text_field="a.c")


def test_quotes_are_literal_in_tsv(tmp_path):
    content = b'text\tlabel\n"He said hi\t1\nplain\t0\n"quoted" end\t1\n'
    assert read(tmp_path / "a.tsv", content) == ['"He said hi', "plain", '"quoted" end']


def test_an_unbalanced_quote_in_csv_names_its_line(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv, line 3: not a row of CSV"):
        read(tmp_path / "a.csv", b'text,n\nok,1\n"open,2\nrest,3\n')


def test_csv_fields_may_hold_lines_and_be_large(tmp_path):
    large = "x" * 300_000  # the csv module's own limit is 131,072
    content = f'text\n"a\nb ""q"""\n{large}\n'.encode()
    assert read(tmp_path / "a.csv", content) == ['a\nb "q"', large]


def test_short_and_long_rows_name_their_line_and_trailing_tabs_are_no_fault(tmp_path):
    assert read(tmp_path / "a.tsv", b"id\ttext\n1\ta\t\n\n") == ["a"]
    for bad in (b"2\n", b"2\tb\tmore\n", b"2\t\n"):
        with pytest.raises(UserError, match=r"a\.tsv, line 3: "):
            read(tmp_path / "a.tsv", b"id\ttext\n1\ta\n" + bad)
    with pytest.raises(UserError, match=r"line 1: 0 columns are named 'text'.*id, body"):
        read(tmp_path / "a.tsv", b"id\tbody\n")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_parquet_is_read_as_it_is_or_compressed(tmp_path, pack):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3], "text": ["a", None, "b"]}), path)
    path.write_bytes(pack(path.read_bytes()))
    with pytest.raises(UserError, match=r"a\.parquet, row 2: .*null"):
        read(path)
    counts = Counter()
    assert read(path, on_bad="skip", counts=counts) == ["a", "b"]
    assert counts == {"bad_records_skipped": 1}
    with pytest.raises(UserError, match="holds int64, not strings"):
        read(path, text_field="n")
    with pytest.raises(UserError, match=r"no column 'x' \(the columns are: n, text\)"):
        read(path, text_field="x")


def test_a_damaged_parquet_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"a\.parquet: not a readable parquet file"):
        read(tmp_path / "a.parquet", b"PAR1 nothing else")


def test_memory_does_not_grow_with_the_file(tmp_path):
    record = json.dumps({"text": "word " * 2000}).encode() + b"\n"
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(record * 5_000))  # 50 MB raw
    (source,) = find_sources([tmp_path / "a.jsonl"]).sources
    tracemalloc.start()
    num_documents = sum(1 for _ in read_documents(source, counts=Counter()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert num_documents == 5_000
    assert peak < 20 << 20
