import json

import pytest

from amber.errors import UserError
from amber.tasks.example import Answer
from amber.tasks.squad import locate, read_squad

CONTEXT = "It opened to the public in 1998, in Rome."  # "1998" begins at 27
assert CONTEXT.index("1998") == 27


def question(name: str, *answers: tuple[str, int], **more) -> dict:
    found = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": "When?", "answers": found} | more


def read(tmp_path, *questions: dict, context: str = CONTEXT, is_train: bool = True):
    path = tmp_path / "a.json"
    paragraphs = [{"context": context, "qas": list(questions)}]
    path.write_text(json.dumps({"version": "1", "data": [{"paragraphs": paragraphs}]}))
    return read_squad(path, is_train=is_train)


def counts(file) -> dict[str, int]:
    parts = [note.split(": ", 1)[1].split(" ", 1) for note in file.notes]
    return {what: int(number) for number, what in parts}


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("1998", 27, 27),
        ("1998", 26, 27),
        ("1998", 25, 27),
        ("1998", 28, 27),
        ("1998", 29, 27),
        ("1998", 24, None),
        ("1998", 30, None),
        (" 1998", 26, 27),
        (" 1998", 27, 27),
        ("1998 ", 27, 27),
        ("1998", -1, None),
        ("It", -1, 0),
        ("1999", 27, None),
        ("Rome.", 500, None),
        ("1998", None, 27),
        ("1999", None, None),
    ],
)
def test_an_answer_is_looked_for_two_characters_around_its_place(text, start, expected):
    answer = locate(CONTEXT, text, start)
    assert answer == (None if expected is None else Answer(text=text.strip(), start=expected))


def test_of_two_places_the_nearest_is_taken():
    assert locate("aaaa", "a", 2) == Answer(text="a", start=2)
    assert locate("-a-a-", "a", 2) == Answer(text="a", start=1)


def test_repaired_and_lost_answers_are_counted(tmp_path):
    file = read(
        tmp_path,
        question("a", (" 1998", 26)),
        question("b", ("1998", 28)),
        question("c", ("1998", 3)),
        question("d", ("1998", 27)),
    )
    assert [e.id for e in file.examples] == ["a", "b", "d"]
    assert all(e.answers == (Answer(text="1998", start=27),) for e in file.examples)
    assert counts(file) == {
        "answers with blanks around them trimmed": 1,
        "answers moved by one or two characters": 1,
        "answers that are not where the file says passed over": 1,
        "questions left out of train: nothing to learn from": 1,
    }


def test_outside_train_every_question_stays_because_scores_count_it(tmp_path):
    file = read(
        tmp_path,
        question("a", ("elsewhere", 3), ("1998", 27)),
        question("b", ("x", 3)),
        is_train=False,
    )
    assert [e.id for e in file.examples] == ["a", "b"]
    assert file.examples[0].gold_texts == ("elsewhere", "1998")
    assert file.examples[0].answers == (Answer(text="1998", start=27),)
    assert file.examples[1].gold_texts == ("x",)
    assert file.examples[1].answers == ()


def test_a_question_without_answer_is_labelled_and_its_plausible_answers_do_not_count(tmp_path):
    plausible = [{"text": "1998", "answer_start": 27}]
    file = read(
        tmp_path,
        question("a", is_impossible=True, plausible_answers=plausible),
        question("b", ("1998", 27), is_impossible=True),
        question("c"),
        question("d", ("", 0)),
        question("e", ("1998", 27)),
    )
    assert [(len(e.answers), e.is_labelled) for e in file.examples] == [
        *[(0, True)] * 4,
        (1, True),
    ]
    assert counts(file)["questions without an answer"] == 4


def test_a_file_without_any_answer_is_unlabelled(tmp_path):
    file = read(tmp_path, question("a"), {"id": "b", "question": "?"}, is_train=False)
    assert not any(e.is_labelled for e in file.examples)
    assert counts(file) == {"questions, unlabelled": 2}


def test_doubles_are_left_out_and_other_questions_of_one_id_renamed(tmp_path):
    one = question("a", ("1998", 27))
    other = one | {"question": "Where?"}
    file = read(tmp_path, one, one, other)
    assert [(e.id, e.question) for e in file.examples] == [("a", "When?"), ("a+", "Where?")]
    assert counts(file) == {
        "questions that stand there twice left out": 1,
        "questions with the id of another one renamed": 1,
    }


def test_an_empty_context_is_left_out_of_train_and_kept_elsewhere(tmp_path):
    asked = question("a", is_impossible=True)
    assert read(tmp_path, asked, context=" ").examples == ()
    (example,) = read(tmp_path, asked, context="", is_train=False).examples
    assert example.context == ""
    assert example.is_labelled


def test_offsets_count_characters_whatever_their_width(tmp_path):
    context = "\U0001f600 e\u0301t\u00e9 \u30cf\u309a 1919\u5e746\u670815\u65e5\u751f"
    answer = "1919\u5e746\u670815\u65e5"
    asked = question("a", (answer, context.index(answer)))
    (example,) = read(tmp_path, asked, context=context).examples
    (found,) = example.answers
    assert context[found.start : found.start + len(found.text)] == answer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1, character 2: not JSON"),
        ("[]", "no list 'data'"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', r"data\[0\].paragraphs\[0\]: no text 'con"),
        ('{"data": [{"paragraphs": []}]}', "no question in the file"),
        ('{"data": [{}]}', r"data\[0\]: no list 'paragraphs'"),
        ("", "is empty"),
        ('{"data": ' + "1" * 5000 + "}", "cannot be read as JSON"),
    ],
)
def test_another_layout_is_refused_with_its_place(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_squad(path, is_train=True)


def test_an_answer_that_is_no_text_at_a_number_is_refused(tmp_path):
    for answer in ({"text": 5, "answer_start": 1}, {"text": "x", "answer_start": "1"}, {}):
        with pytest.raises(UserError, match=r"qas\[0\]: "):
            read(tmp_path, {"id": "a", "question": "?", "answers": [answer]})


def test_only_true_and_false_say_whether_there_is_an_answer(tmp_path):
    (example,) = read(tmp_path, question("a", ("1998", 27), is_impossible=None)).examples
    assert example.answers
    with pytest.raises(UserError, match=r"qas\[0\]: is_impossible is 'false'"):
        read(tmp_path, question("a", ("1998", 27), is_impossible="false"))
