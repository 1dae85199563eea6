import pytest

from amber.errors import UserError
from amber.tasks.columns import read_columns
from amber.tasks.task import TaskFile

LAYOUT = TaskFile(name="", reader="columns")


def read(tmp_path, text: str | bytes, *, layout: TaskFile = LAYOUT, joiner=None, **settings):
    path = tmp_path / "a.conll"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_columns(path, layout, joiner=joiner, **settings)


def sentences(file) -> list[list[tuple[str, str]]]:
    return [
        [(e.text[a:b], tag) for (a, b), tag in zip(e.spans, e.tags, strict=True)]
        for e in file.examples
    ]


EXPECTED = [[("Ann", "B-PER"), ("slept", "O")], [("Rome", "B-LOC")]]


@pytest.mark.parametrize(
    "text",
    [
        "Ann B-PER\nslept O\n\nRome B-LOC\n",
        "Ann B-PER\r\nslept O\r\n\r\nRome B-LOC",
        "\ufeffAnn\tB-PER\nslept\tO\n\t\nRome\tB-LOC\n\ufeff",
        "-DOCSTART- O\n\nAnn  B-PER\nslept   O \n \n\n\nRome \t B-LOC\t\n",
        "-DOCSTART- -X- -X- O\n\nAnn NNP I-NP B-PER\nslept VBD I-VP O\n\nRome NNP I-NP B-LOC\n",
        "Ann NNP B-PER\nslept VBD O\n-DOCSTART- -X- O\nRome NNP B-LOC\n",
        "# id = 1\nAnn B-PER\nslept O\n\n# id = 2\nRome B-LOC\n\n",
    ],
)
def test_the_quirks_of_the_layout_change_nothing(tmp_path, text):
    assert sentences(read(tmp_path, text)) == EXPECTED


def test_what_is_passed_over_is_counted(tmp_path):
    text = "# a comment here\n-DOCSTART- O\n\nAnn B-PER\n\n-DOCSTART- O\n\n# two\nx O\n"
    notes = read(tmp_path, text).notes
    assert [note.split(": ", 1)[1] for note in notes] == [
        "2 comment lines passed over",
        "2 -DOCSTART- lines passed over",
    ]


def test_a_hash_with_a_tag_is_a_word(tmp_path):
    file = read(tmp_path, "#\tO\n#cold\tO\nRome\tB-LOC\n\n# O\n")
    assert sentences(file)[0][:2] == [("#", "O"), ("#cold", "O")]
    assert len(file.examples) == 2


def test_a_blank_inside_a_word_stays_where_tabs_part_the_columns(tmp_path):
    assert sentences(read(tmp_path, "New York\tB-LOC\nis\tO\n")) == [
        [("New York", "B-LOC"), ("is", "O")]
    ]
    assert sentences(read(tmp_path, "a\u00a0b B-LOC\n\u3000 O\n")) == [
        [("a\u00a0b", "B-LOC"), ("\u3000", "O")]
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ann B-PER\nslept\n", "line 2, column 2: 1 column where 2"),
        ("Ann B-PER\nslept\t\n", "line 2, column 2: 1 column where 2"),
        ("Ann B-PER\n\tO\n", "line 2, column 2: 1 column where 2"),
        ("Ann\nslept\n", "line 1, column 2: 1 column where 2"),
        ("Ann B-PER\nslept V O\n", "line 2, column 3: 3 columns where 2"),
        ("Ann B-PER\nslept V\n", "line 2, column 'tag': 'V' is no tag"),
        (
            "Ann B-PER\nx M-PER\ny I-LOC\nz I-LOC\nw B-PER\n",
            r"line 2,.* M- and .* \(B, I, M\) belong to no one",
        ),
        ("1 Ann B-PER O\n2 slept O O\n\n1 Rome B-LOC O\n", "first column counts the words"),
        ("\n\n", "is empty"),
        ("-DOCSTART- O\n\n", "no sentence"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_a_broken_scheme_is_repaired_and_counted_with_its_first_line(tmp_path):
    file = read(tmp_path, "Ann B-PER\n\nRome I-LOC\nand O\nOslo I-LOC\n")
    assert [tag for _, tag in sentences(file)[1]] == ["B-LOC", "O", "B-LOC"]
    assert len(file.notes) == 1
    assert "2 tags break the scheme BIO" in file.notes[0]
    assert "the first at line 3" in file.notes[0]


def test_other_schemes_are_converted_and_said(tmp_path):
    file = read(tmp_path, "Ann I-PER\nLee I-PER\nBob B-PER\n")
    assert [tag for _, tag in sentences(file)[0]] == ["B-PER", "I-PER", "B-PER"]
    assert file.notes[0].endswith("tags converted from IOB1 to BIO")


def test_characters_are_joined_by_nothing_and_words_by_one_blank(tmp_path):
    file = read(tmp_path, "\u9ad8 B-NAME\n\u52c7 E-NAME\n\uff1a O\n")
    assert file.examples[0].text == "\u9ad8\u52c7\uff1a"
    assert file.examples[0].spans == ((0, 1), (1, 2), (2, 3))
    file = read(tmp_path, "Ann B-PER\nslept O\n")
    assert file.examples[0].text == "Ann slept"
    assert file.examples[0].spans == ((0, 3), (4, 9))
    assert read(tmp_path, "ab O\nc O\n", joiner="").examples[0].text == "abc"


def test_the_language_before_each_word_is_taken_off(tmp_path):
    layout = TaskFile(name="", reader="columns", has_prefix=True)
    text = "en:Rome\tB-LOC\nen::\tO\nen:en:x\tO\n"
    file = read(tmp_path, text, layout=layout)
    assert file.examples[0].text == "Rome : en:x"
    assert read(tmp_path, text).examples[0].text == "en:Rome en:: en:en:x"
    with pytest.raises(UserError, match="line 4, column 1: 'Oslo' does not begin with 'en:'"):
        read(tmp_path, text + "Oslo\tB-LOC\n", layout=layout)
    assert read(tmp_path, "Rome\tB-LOC\n", layout=layout).examples[0].text == "Rome"


def test_words_without_tags_are_unlabelled_where_tags_may_be_missing(tmp_path):
    (example,) = read(tmp_path, "Ann\nslept\n", needs_tags=False).examples
    assert example.tags is None
    assert example.text == "Ann slept"
