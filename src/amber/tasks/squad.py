"""Questions about contexts, as SQuAD's files and tables hold them, with every answer checked."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amber.errors import UserError
from amber.tasks.content import read_json
from amber.tasks.example import Answer, QAExample
from amber.tasks.table import Table
from amber.tasks.task import ReadFile

SHIFTS = (0, -1, 1, -2, 2)
"""Where an answer is looked for around the place that the file says, in this order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question as the file has it."""

    place: str
    number: int
    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int | None], ...] | None
    """Text and start; a start of None means wherever the text is first. None: no answers given."""
    is_impossible: bool = False


def read_squad(path: Path, *, is_train: bool) -> ReadFile:
    """Read a file of SQuAD's layout, 1.1 or 2.0, as CMRC 2018, DRCD and XQuAD use it too.

    Args:
        path: of the file.
        is_train: leave out questions that cannot be learned from (no context, or answers none of
            which is where the file says); in other files they are kept, because scores count them.

    Raises:
        UserError: not that layout; names the question.
    """
    return check_questions(str(path), squad_questions(path), is_train=is_train)


def squad_questions(path: Path) -> Iterator[Question]:
    """Read the questions of a file of SQuAD's layout as they are.

    Raises:
        UserError: not that layout; names the question.
    """
    whole = read_json(path)
    articles = whole.get("data") if isinstance(whole, dict) else None
    if not isinstance(articles, list):
        raise UserError(f"{path}: no list 'data' in the file: give a file of SQuAD's layout")
    number = 0
    for i, article in enumerate(articles):
        for j, paragraph in enumerate(_field(path, f"data[{i}]", article, "paragraphs", list)):
            here = f"data[{i}].paragraphs[{j}]"
            context = _field(path, here, paragraph, "context", str)
            for k, item in enumerate(_field(path, here, paragraph, "qas", list)):
                number += 1
                place = f"{here}.qas[{k}]"
                name = item.get("id") if isinstance(item, dict) else None
                yield Question(
                    place=f"{path}, {place}",
                    number=number,
                    id=place if name is None else str(name),
                    question=_field(path, place, item, "question", str),
                    context=context,
                    answers=_answer_list(f"{path}, {place}", item.get("answers")),
                    is_impossible=_is_true(f"{path}, {place}", item, "is_impossible"),
                )
    if not number:
        raise UserError(f"{path}: no question in the file: give one with questions")


def _is_true(place: str, record: Any, key: str) -> bool:
    value = record.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise UserError(f"{place}: {key} is {value!r}: write true or false, without quotes")


def _field(path: Path, place: str, record: Any, key: str, kind: type) -> Any:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise UserError(
            f"{path}, {place}: no {'list' if kind is list else 'text'} {key!r}: give a file of "
            "SQuAD's layout"
        )
    return value


def _answer_list(place: str, value: Any) -> tuple[tuple[str, int | None], ...] | None:
    """Answers as a list of records, as a record of two lists, or as one text."""
    if value is None:
        return None
    if isinstance(value, str):
        return ((value, None),) if value.strip() else ()
    try:
        if isinstance(value, dict):
            starts = value.get("answer_start", [None] * len(value["text"]))
            pairs = list(zip(value["text"], starts, strict=True))
        else:
            pairs = [(answer["text"], answer.get("answer_start")) for answer in value]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f'{place}: not answers as in [{{"text": "1998", "answer_start": 24}}]: mend them'
        ) from error
    for text, start in pairs:
        if not isinstance(text, str) or not (start is None or type(start) is int):
            raise UserError(
                f"{place}: the answer {text!r} at {start!r} is not a text at a whole number: mend "
                "it"
            )
    return tuple(pairs)


def table_questions(
    table: Table, *, question: str, context: str, answers: str, id_column: str | None
) -> Iterator[Question]:
    """Read rows with a question, a context and answers (a list, SQuAD's record, or one text)."""
    table.require(question)
    table.require(context)
    has_answers = answers in table.columns
    for index, (number, row) in enumerate(table.rows):
        is_named = id_column is not None and id_column in table.columns
        place = table.place(number, answers)
        yield Question(
            place=place,
            number=number,
            id=table.text(number, row, str(id_column)) if is_named else str(index),
            question=table.text(number, row, question),
            context=table.text(number, row, context),
            answers=_answer_list(place, row.get(answers)) if has_answers else None,
        )


def check_questions(path: str, questions: Iterator[Question], *, is_train: bool) -> ReadFile:
    """Turn questions into examples whose answers are exact parts of their contexts.

    An answer loses the blanks around it, and is moved by up to two characters where its text stands
    there; else it is passed over. An answer without a place is where its text is found first.
    Everything of that kind is counted in the notes.
    """
    counts: Counter[str] = Counter()
    examples: list[QAExample] = []
    numbers: list[int] = []
    seen: dict[str, Question] = {}
    all_questions = list(questions)
    has_labels = any(q.answers or q.is_impossible for q in all_questions)
    for item in all_questions:
        name = item.id
        if name in seen:
            if _same(seen[name], item):
                counts["questions that stand there twice left out"] += 1
                continue
            counts["questions with the id of another one renamed"] += 1
            while name in seen:
                name += "+"
        seen[name] = item
        example = _example(name, item, counts, is_labelled=has_labels)
        is_bad = not example.context.strip() or (example.gold_texts and not example.answers)
        counts["questions without a context"] += not example.context.strip()
        if is_train and is_bad:
            counts["questions left out of train: nothing to learn from"] += 1
            continue
        examples.append(example)
        numbers.append(item.number)
    num_unanswerable = sum(e.is_labelled and not e.gold_texts for e in examples)
    counts["questions without an answer"] = num_unanswerable
    if not has_labels:
        counts["questions, unlabelled"] = len(examples)
    notes = tuple(f"{path}: {count} {what}" for what, count in counts.items() if count)
    return ReadFile(
        path=path,
        examples=tuple(examples),
        numbers=tuple(numbers),
        column="answers",
        notes=notes,
    )


def _same(left: Question, right: Question) -> bool:
    """Whether two questions differ in nothing but their place."""
    return replace(left, place="", number=0) == replace(right, place="", number=0)


def _example(name: str, item: Question, counts: Counter[str], *, is_labelled: bool) -> QAExample:
    given = () if item.is_impossible or item.answers is None else item.answers
    answers: list[Answer] = []
    texts: list[str] = []
    for text, start in given:
        if not text.strip():
            counts["empty answers passed over"] += 1
            continue
        texts.append(text)
        answer = locate(item.context, text, start)
        if answer is None:
            counts["answers that are not where the file says passed over"] += 1
            continue
        counts["answers with blanks around them trimmed"] += answer.text != text
        expected = None if start is None else start + len(text) - len(text.lstrip())
        counts["answers moved by one or two characters"] += expected not in (None, answer.start)
        answers.append(answer)
    return QAExample(
        id=name,
        question=item.question,
        context=item.context,
        answers=tuple(answers),
        is_labelled=is_labelled and (item.answers is not None or item.is_impossible),
        gold_texts=tuple(texts),
    )


def locate(context: str, text: str, start: int | None) -> Answer | None:
    """Find an answer in its context, near `start`; None when it is not there.

    The blanks around the text do not belong to the answer.
    """
    bare = text.strip()
    if start is None:
        found = context.find(bare)
        return None if found < 0 else Answer(text=bare, start=found)
    expected = start + len(text) - len(text.lstrip())
    for shift in SHIFTS:
        begin = expected + shift
        if begin >= 0 and bare and context.startswith(bare, begin):
            return Answer(text=bare, start=begin)
    return None
