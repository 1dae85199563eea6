"""The real files, where they lie beside the project: their sizes are the published ones."""

from pathlib import Path

import pytest

from amber.tasks.example import QAExample, TaggedExample, TextExample
from amber.tasks.load import load_task
from amber.tasks.named import find_task

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "tasks"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not there")

SIZES = {
    "glue/cola": {"train": 8551, "dev": 1043, "test": 1063},
    "glue/sst2": {"train": 67349, "dev": 872},
    "glue/mrpc": {"train": 3668, "dev": 408, "test": 1725},
    "glue/stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "glue/rte": {"train": 2490, "dev": 277, "test": 3000},
    "glue/wnli": {"train": 635, "dev": 71, "test": 146},
    "glue/qnli": {"dev": 5463, "test": 5463},
    "glue/mnli": {"dev": 9815},
    "glue/qqp": {"train": 22342, "dev": 10000, "test": 10000},
    "wnut17": {"train": 3394, "dev": 1009, "test": 1287},
    "wikiann": {"train": 20000, "dev": 10000, "test": 10000},
    "trec": {"train": 5452, "test": 500},
    "agnews": {"dev": 10001, "test": 7600},
    "xquad/xquad-en": {"test": 1190},
    "xquad/xquad-zh": {"test": 1190},
    "cmrc2018": {"dev": 3219, "trial": 1002},
    "tnews": {"train": 53360, "dev": 10000},
    "afqmc": {"train": 34334, "dev": 4316, "test": 3861},
    "chnsenticorp": {"train": 9600, "dev": 1200, "test": 1200},
    "cluener": {"train": 10748, "dev": 1343, "test": 1345},
    "resume": {"train": 3821, "dev": 463, "test": 477},
}
SMALL = {"glue/mrpc", "glue/rte", "glue/wnli", "trec", "xquad/xquad-en", "xquad/xquad-zh"}
UNLABELLED = {"glue/cola", "glue/stsb", "glue/rte", "glue/wnli", "glue/qnli", "afqmc", "cluener"}


def is_labelled(example: TextExample | TaggedExample | QAExample) -> bool:
    if isinstance(example, TextExample):
        return example.label is not None
    return example.tags is not None if isinstance(example, TaggedExample) else example.is_labelled


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in SMALL else pytest.mark.slow) for name in SIZES],
)
def test_the_sizes_are_the_published_ones(name: str):
    folder, _, short = name.rpartition("/")
    data = load_task(find_task(short), DATA / folder)
    assert {split: len(examples) for split, examples in data.splits.items()} == SIZES[name]
    for split, examples in data.splits.items():
        has_labels = split != "test" or name not in UNLABELLED | {"chnsenticorp"}
        assert all(is_labelled(example) == has_labels for example in examples)
        for example in examples:
            if isinstance(example, QAExample):
                for answer in example.answers:
                    end = answer.start + len(answer.text)
                    assert example.context[answer.start : end] == answer.text


@pytest.mark.slow
def test_the_original_files_of_stsb_have_labels_for_test():
    data = load_task(find_task("stsb"), DATA / "glue" / "STS-B" / "original")
    glue = load_task(find_task("stsb"), DATA / "glue")
    assert {split: len(examples) for split, examples in data.splits.items()} == SIZES["glue/stsb"]
    assert all(example.label is not None for example in data.splits["test"])
    labels = [[e.label for e in found.splits["dev"]] for found in (data, glue)]
    assert labels[0] == labels[1]


@pytest.mark.slow
def test_answers_of_cmrc_that_stand_elsewhere_are_counted():
    notes = load_task(find_task("cmrc2018"), DATA).notes
    counts = {note.split(": ", 1)[1] for note in notes if "_dev.json" in note}
    assert counts == {
        "13 answers with blanks around them trimmed",
        "7 answers moved by one or two characters",
        "193 answers that are not where the file says passed over",
    }


@pytest.mark.slow
def test_tags_of_the_chinese_files_keep_every_entity():
    data = load_task(find_task("resume"), DATA)
    begun = sum(tag.startswith("B-") for e in data.splits["dev"] for tag in e.tags)
    assert begun == 690 + 523 + 106 + 102 + 33 + 18 + 14 + 2 + 8 + 1  # B- and S- of the file
    data = load_task(find_task("cluener"), DATA)
    begun = sum(tag.startswith("B-") for e in data.splits["train"] for tag in e.tags)
    assert begun == 23971 - 2
