"""All tasks by name. To add one, put a `Task` into the tuple where it belongs."""

from dataclasses import replace

from amber.config import suggest
from amber.errors import UserError
from amber.tasks.clue import CLUE
from amber.tasks.glue import GLUE
from amber.tasks.task import Task, TaskFile


def _questions(name: str, folders: tuple[str, ...], **files: tuple[str, ...]) -> Task:
    """A task of answers in a context; `files` are the names of each split's files."""
    is_chinese = name in ("cmrc2018", "drcd", "xquad-zh")
    return Task(
        name=name,
        kind="qa",
        folders=folders,
        files={
            split: tuple(TaskFile(name=file, reader="squad") for file in names)
            for split, names in files.items()
        },
        metrics=("cmrc_f1", "cmrc_exact_match") if is_chinese else ("answer_f1", "exact_match"),
        epochs=2,
        submission="squad",
        submission_files={
            split: "cmrc2018_predict.json" if name == "cmrc2018" else "predictions.json"
            for split in files
        },
    )


QUESTIONS = (
    _questions("squad1", ("squad", "squad1"), train=("train-v1.1.json",), dev=("dev-v1.1.json",)),
    _questions("squad2", ("squad", "squad2"), train=("train-v2.0.json",), dev=("dev-v2.0.json",)),
    _questions(
        "cmrc2018",
        ("cmrc2018", "cmrc"),
        train=("cmrc2018_train.json", "train.json"),
        dev=("cmrc2018_dev.json", "dev.json"),
        test=("test.json", "cmrc2018_test.json"),
        trial=("cmrc2018_trial.json", "trial.json"),
    ),
    _questions(
        "drcd",
        ("DRCD",),
        train=("DRCD_training.json", "train.json"),
        dev=("DRCD_dev.json", "dev.json"),
        test=("DRCD_test.json", "test.json"),
    ),
    _questions("xquad-en", ("xquad",), test=("xquad.en.json",)),
    _questions("xquad-zh", ("xquad",), test=("xquad.zh.json",)),
)


def _tags(name: str, folders: tuple[str, ...], file: TaskFile, **files: tuple[str, ...]) -> Task:
    """A task of tagged words; `files` are the names of each split's files."""
    return Task(
        name=name,
        kind="tagging",
        folders=folders,
        files={
            split: tuple(replace(file, name=other) for other in names)
            for split, names in files.items()
        },
        metrics=("entity_f1", "entity_precision", "entity_recall"),
    )


_COLUMNS = TaskFile(name="", reader="columns")

TAGS = (
    _tags(
        "conll2003",
        ("conll2003", "conll03"),
        _COLUMNS,
        train=("eng.train", "train.txt", "train.conll"),
        dev=("eng.testa", "valid.txt", "dev.txt", "dev.conll"),
        test=("eng.testb", "test.txt", "test.conll"),
    ),
    _tags("conll2000", ("conll2000",), _COLUMNS, train=("train.txt",), test=("test.txt",)),
    _tags(
        "wnut17",
        ("wnut17", "wnut_17"),
        _COLUMNS,
        train=("wnut17train.conll",),
        dev=("emerging.dev.conll",),
        test=("emerging.test.annotated",),
    ),
    _tags(
        "wikiann",
        ("wikiann", "en"),
        replace(_COLUMNS, has_prefix=True),
        train=("train",),
        dev=("dev",),
        test=("test",),
    ),
    _tags(
        "resume",
        ("zh_resume_ner", "ResumeNER", "resume"),
        _COLUMNS,
        train=("train.char.bmes",),
        dev=("dev.char.bmes",),
        test=("test.char.bmes",),
    ),
    replace(
        _tags(
            "cluener",
            ("cluener2020", "cluener"),
            TaskFile(name="", reader="mentions", text="text", label="label", id="id"),
            train=("train.json", "train.jsonl"),
            dev=("dev.json", "dev.jsonl"),
            test=("test.json", "test.jsonl"),
        ),
        submission="clue",
        submission_files={"test": "cluener_predict.json"},
    ),
)

_TREC = TaskFile(name="", reader="trec", encoding="latin-1")
_NEWS = TaskFile(name="", text="1", label="2", has_header=False)
_NEWS_ORIGINAL = TaskFile(name="", text="2", joined="3", label="1", has_header=False)
_SENTIMENT = TaskFile(name="", text="text_a", id="qid")
_SENTIMENT_PLAIN = TaskFile(name="", text="1", label="2", has_header=False)

SENTENCES = (
    Task(
        name="trec",
        kind="classification",
        folders=("trec",),
        files={
            "train": tuple(replace(_TREC, name=name) for name in ("train_5500.label", "train.txt")),
            "test": tuple(replace(_TREC, name=name) for name in ("TREC_10.label", "test.txt")),
        },
        labels=("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
    ),
    Task(
        name="agnews",
        kind="classification",
        folders=("ag_news", "agnews", "ag_news_csv"),
        files={
            split: (
                replace(_NEWS_ORIGINAL, name=f"{split}.csv"),
                replace(_NEWS, name=f"{split}.tsv"),
            )
            for split in ("train", "dev", "test")
        },
        labels=("World", "Sports", "Business", "Sci/Tech"),
        spellings={"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"},
    ),
    Task(
        name="chnsenticorp",
        kind="classification",
        folders=("chnsenticorp", "zh_chnsenticorp"),
        files={
            split: (
                replace(_SENTIMENT, name=f"{split}.tsv"),
                replace(_SENTIMENT_PLAIN, name=f"{split}.tsv"),
            )
            for split in ("train", "dev", "test")
        },
        labels=("negative", "positive"),
        spellings={"0": "negative", "1": "positive"},
    ),
)

TASKS: dict[str, Task] = {task.name: task for task in (*GLUE, *CLUE, *QUESTIONS, *TAGS, *SENTENCES)}
GROUPS: dict[str, tuple[str, ...]] = {
    "glue": tuple(task.name for task in GLUE),
    "clue": tuple(task.name for task in CLUE),
}


def find_task(name: str) -> Task:
    """Look up a task; case and the signs `-`, `_` and `.` do not count (`SST-2`, `sst2`).

    Raises:
        UserError: there is no such task; names the nearest.
    """
    plain = {_plain(known): task for known, task in TASKS.items()}
    found = plain.get(_plain(name))
    if found is None:
        near = suggest(name.casefold(), list(TASKS))
        raise UserError(f"task {name!r}: no task has this name{near}; for own data give own")
    return found


def _plain(name: str) -> str:
    return name.casefold().translate(str.maketrans("", "", "-_. "))
