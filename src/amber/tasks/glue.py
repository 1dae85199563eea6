"""GLUE (Wang et al. 2019) as its zip file has it, and the original files of MRPC, STS-B and MNLI.

Labels have the order of Hugging Face's data sets. The first metric is the one that enters the
ELECTRA paper's average: Matthews for CoLA, Spearman for STS-B, accuracy for the others.
"""

from dataclasses import replace

from amber.tasks.task import Task, TaskFile

BINARY = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("entailment", "neutral", "contradiction")


def _same_layout(file: TaskFile, **names: str) -> dict[str, tuple[TaskFile, ...]]:
    """One layout for the files of several splits."""
    return {split: (replace(file, name=name),) for split, name in names.items()}


_COLA = TaskFile(name="train.tsv", text="4", label="2", has_header=False)
_COLA_TEST = TaskFile(name="test.tsv", text="sentence", id="index")
_SST = TaskFile(name="train.tsv", text="sentence", id="index")
_MRPC = TaskFile(name="train.tsv", text="#1 String", pair="#2 String", label="Quality", id="index")
_STSB = TaskFile(name="train.tsv", text="sentence1", pair="sentence2", label="score", id="index")
_STSB_ORIGINAL = TaskFile(
    name="sts-train.tsv", text="6", pair="7", label="5", has_header=False, is_ragged=True
)
_QQP = TaskFile(
    name="train.tsv",
    text="question1",
    pair="question2",
    label="is_duplicate",
    id="id",
    skips_short=True,
)
_QQP_PLAIN = TaskFile(name="train.txt", text="1", pair="2", label="3", has_header=False)
_PAIR = TaskFile(name="train.tsv", text="sentence1", pair="sentence2", id="index")
_MNLI = replace(_PAIR, label="gold_label")
_MNLI_JSON = replace(_MNLI, name="multinli_1.0_train.jsonl", id="pairID")
_MNLI_PLAIN = TaskFile(name="train.jsonl", text="premise", pair="hypothesis")
_AX = (
    *(replace(_PAIR, name=name) for name in ("AX.tsv", "diagnostic.tsv")),
    TaskFile(name="diagnostic-full.tsv", text="Premise", pair="Hypothesis", label="Label"),
)


_AX_NEAR_MNLI = (
    *_AX,
    *(
        replace(file, name=f"../{folder}/{file.name}")
        for folder in ("AX", "diagnostic")
        for file in _AX
    ),
)


def _mnli_files() -> dict[str, tuple[TaskFile, ...]]:
    """Each split in GLUE's layout, in that of MultiNLI, or as plain JSON Lines."""
    names = {
        "train": "train",
        "dev": "dev_matched",
        "dev_mismatched": "dev_mismatched",
        "test": "test_matched",
        "test_mismatched": "test_mismatched",
    }
    files = {
        split: (
            replace(_MNLI, name=f"{name}.tsv"),
            replace(_MNLI_JSON, name=f"multinli_1.0_{name}.jsonl"),
            replace(_MNLI_PLAIN, name=f"{name}.jsonl"),
        )
        for split, name in names.items()
    }
    return files | {"ax": _AX_NEAR_MNLI}


GLUE = (
    Task(
        name="cola",
        kind="classification",
        folders=("CoLA",),
        files=_same_layout(_COLA, train="train.tsv", dev="dev.tsv")
        | {"test": (_COLA_TEST, replace(_COLA, name="test.tsv"))},
        labels=BINARY,
        metrics=("mcc", "accuracy"),
        submission="glue",
        submission_files={"test": "CoLA.tsv"},
    ),
    Task(
        name="sst2",
        kind="classification",
        folders=("SST-2", "SST2", "SST"),
        files=_same_layout(_SST, train="train.tsv", dev="dev.tsv", test="test.tsv"),
        labels=BINARY,
        submission="glue",
        submission_files={"test": "SST-2.tsv"},
    ),
    Task(
        name="mrpc",
        kind="classification",
        folders=("MRPC",),
        files={
            "train": (
                _MRPC,
                replace(_MRPC, name="msr_paraphrase_train.txt", reader="msr_train", id=None),
            ),
            "dev": (
                replace(_MRPC, name="dev.tsv"),
                replace(_MRPC, name="msr_paraphrase_train.txt", reader="msr_dev", id=None),
            ),
            "test": (
                replace(_MRPC, name="test.tsv"),
                replace(_MRPC, name="msr_paraphrase_test.txt", id=None),
            ),
        },
        labels=BINARY,
        metrics=("accuracy", "f1"),
        is_unordered=True,
        submission="glue",
        submission_files={"test": "MRPC.tsv"},
    ),
    Task(
        name="stsb",
        kind="regression",
        folders=("STS-B", "STSB", "STS"),
        files={
            split: (
                replace(_STSB, name=f"{split}.tsv"),
                replace(_STSB_ORIGINAL, name=f"sts-{split}.tsv"),
                replace(_STSB_ORIGINAL, name=f"sts-{split}.csv", reader="tabs"),
            )
            for split in ("train", "dev", "test")
        },
        metrics=("spearman", "pearson"),
        epochs=10,
        is_unordered=True,
        submission="glue",
        submission_files={"test": "STS-B.tsv"},
    ),
    Task(
        name="qqp",
        kind="classification",
        folders=("QQP",),
        files={
            "train": (
                _QQP,
                replace(_QQP, name="part_train.tsv"),
                replace(_QQP_PLAIN, name="wang2017_train.txt"),
            ),
            "dev": (replace(_QQP, name="dev.tsv"), replace(_QQP_PLAIN, name="wang2017_dev.txt")),
            "test": (
                replace(_QQP, name="test.tsv"),
                replace(_QQP_PLAIN, name="wang2017_test.txt"),
            ),
        },
        labels=BINARY,
        metrics=("accuracy", "f1"),
        submission="glue",
        submission_files={"test": "QQP.tsv"},
    ),
    Task(
        name="mnli",
        kind="classification",
        folders=("MNLI",),
        files=_mnli_files(),
        labels=INFERENCE,
        no_label="-",
        submission="glue",
        submission_files={
            "test": "MNLI-m.tsv",
            "test_mismatched": "MNLI-mm.tsv",
            "ax": "AX.tsv",
        },
    ),
    Task(
        name="qnli",
        kind="classification",
        folders=("QNLI",),
        files=_same_layout(
            replace(_PAIR, text="question", pair="sentence"),
            train="train.tsv",
            dev="dev.tsv",
            test="test.tsv",
        ),
        labels=ENTAILMENT,
        submission="glue",
        submission_files={"test": "QNLI.tsv"},
    ),
    Task(
        name="rte",
        kind="classification",
        folders=("RTE",),
        files=_same_layout(_PAIR, train="train.tsv", dev="dev.tsv", test="test.tsv"),
        labels=ENTAILMENT,
        epochs=10,
        submission="glue",
        submission_files={"test": "RTE.tsv"},
    ),
    Task(
        name="wnli",
        kind="classification",
        folders=("WNLI",),
        files=_same_layout(_PAIR, train="train.tsv", dev="dev.tsv", test="test.tsv"),
        labels=BINARY,
        submission="glue",
        submission_files={"test": "WNLI.tsv"},
    ),
    Task(
        name="ax",
        kind="classification",
        folders=("AX", "diagnostic"),
        files={"test": _AX},
        labels=INFERENCE,
        metrics=("mcc", "accuracy"),
        submission="glue",
        submission_files={"test": "AX.tsv"},
    ),
)

PAPER_AVERAGE = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")
"""The tasks whose plain mean is the dev score of Clark et al. 2020; WNLI and AX are not in it."""
