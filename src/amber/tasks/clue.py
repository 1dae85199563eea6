"""CLUE (Xu et al. 2020): its classification tasks, as its zip files have them and as plain tables.

Some collections hold TNEWS with the names of the classes and AFQMC with columns; both are read.
"""

from dataclasses import replace

from amber.tasks.glue import BINARY, INFERENCE
from amber.tasks.task import Task, TaskFile

TNEWS_CLASSES = {
    "100": "news_story",
    "101": "news_culture",
    "102": "news_entertainment",
    "103": "news_sports",
    "104": "news_finance",
    "106": "news_house",
    "107": "news_car",
    "108": "news_edu",
    "109": "news_tech",
    "110": "news_military",
    "112": "news_travel",
    "113": "news_world",
    "114": "news_stock",
    "115": "news_agriculture",
    "116": "news_game",
}

_SENTENCE = TaskFile(name="train.json", text="sentence", id="id")
_PAIR = TaskFile(name="train.json", text="sentence1", pair="sentence2", id="id")
_TNEWS_PLAIN = TaskFile(name="train.tsv", text="1", label="2", has_header=False)
_AFQMC_PLAIN = TaskFile(name="train.txt", text="1", pair="2", label="3", has_header=False)


def _splits(file: TaskFile, *plain: TaskFile) -> dict[str, tuple[TaskFile, ...]]:
    """CLUE's files for each split, then files of the same stem in other layouts."""
    names = {
        "train": ("train.json",),
        "dev": ("dev.json",),
        "test": ("test1.1.json", "test.json", "test1.0.json"),
    }
    return {
        split: (
            *(replace(file, name=name) for name in json_names),
            *(
                replace(other, name=f"{split}.{suffix}")
                for other in plain
                for suffix in ("tsv", "txt")
            ),
        )
        for split, json_names in names.items()
    }


_OCNLI = _splits(_PAIR) | {
    "train": tuple(
        replace(_PAIR, name=name) for name in ("train.50k.json", "train.json", "train.30k.json")
    )
}

CLUE = (
    Task(
        name="tnews",
        kind="classification",
        folders=("tnews", "clue_tnews"),
        files=_splits(_SENTENCE, _TNEWS_PLAIN),
        labels=tuple(TNEWS_CLASSES.values()),
        spellings=TNEWS_CLASSES,
        submission="clue",
        submission_files={"test": "tnews11_predict.json"},
    ),
    Task(
        name="afqmc",
        kind="classification",
        folders=("afqmc", "clue_afqmc"),
        files=_splits(_PAIR, _AFQMC_PLAIN),
        labels=BINARY,
        submission="clue",
        submission_files={"test": "afqmc_predict.json"},
    ),
    Task(
        name="iflytek",
        kind="classification",
        folders=("iflytek", "clue_iflytek"),
        files=_splits(_SENTENCE),
        labels=tuple(str(number) for number in range(119)),
        submission="clue",
        submission_files={"test": "iflytek_predict.json"},
    ),
    Task(
        name="ocnli",
        kind="classification",
        folders=("ocnli", "clue_ocnli"),
        files=_OCNLI,
        labels=INFERENCE,
        no_label="-",
        submission="clue",
        submission_files={"test": "ocnli_50k_predict.json"},
    ),
    Task(
        name="csl",
        kind="classification",
        folders=("csl", "clue_csl"),
        files=_splits(replace(_SENTENCE, reader="csl")),
        labels=BINARY,
        submission="clue",
        submission_files={"test": "csl_predict.json"},
    ),
    Task(
        name="cluewsc",
        kind="classification",
        folders=("cluewsc2020", "cluewsc", "clue_wsc", "wsc"),
        files=_splits(replace(_SENTENCE, reader="cluewsc")),
        labels=("false", "true"),
        submission="clue",
        submission_files={"test": "cluewsc11_predict.json"},
    ),
)
