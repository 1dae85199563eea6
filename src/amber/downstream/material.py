"""The examples that a task is trained and scored on, read and cut as the settings say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from amber.downstream.config import FinetuneConfig
from amber.downstream.scoring import check_metrics, golds_of
from amber.downstream.sequences import permutation
from amber.errors import UserError
from amber.tasks.answers import HAN
from amber.tasks.example import Example, QAExample, TaggedExample, place_of
from amber.tasks.hub import load_hub
from amber.tasks.load import load_task
from amber.tasks.named import find_task
from amber.tasks.own import OwnData, load_own
from amber.tasks.task import Task, TaskData

LIMIT_SEED: Final = 0
"""Of the draw of `limit_train`: the same examples for all seeds of all runs."""
NUM_LOOKED_AT: Final = 1000
"""Examples from whose answers the language is told."""
ALSO_SCORED: Final = {"dev": ("dev_mismatched",)}
"""Splits that are scored beside the first one where they are there (MNLI)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Material:
    """What a task is trained and scored on."""

    task: Task
    labels: tuple[str, ...]
    train: tuple[Example, ...]
    scored: dict[str, tuple[Example, ...]]
    """By split, all labelled; the one that counts comes first."""

    golds: dict[str, list[Any]]
    """The truth, by split, train too."""

    files: dict[str, str]
    notes: tuple[str, ...]


def read_material(config: FinetuneConfig) -> Material:
    """Read the task, and check all that can be known before training.

    Raises:
        UserError: bad files, unlabelled examples, a missing split, metrics that do not fit.
    """
    task, data = read_task(config)
    check_metrics(task, len(data.labels))
    splits, notes = dict(data.splits), list(data.notes)
    if not splits.get("train"):
        is_own = config.task in (None, "own")
        other = f", or train on a part of another file: --task own --own.kind {task.kind}"
        raise UserError(
            f"task {task.name}: no train file (there is {', '.join(splits) or 'none'}): give one"
            f"{'' if is_own else other + ' --data FILE --own.dev-fraction 0.2'}"
        )
    if config.dev_fraction:
        splits = with_dev(task, splits, config.dev_fraction, files=data.files)
        notes.append(f"dev is {config.dev_fraction:g} of the train file, by the hash of the text")
    first = config.score_on
    if first not in splits:
        raise UserError(missing_split(task, splits, first, is_own=config.task == "own"))
    names = [first, *(name for name in ALSO_SCORED.get(first, ()) if name in splits)]
    where = {name: data.files.get(name, name) for name in splits}
    golds = {name: golds_of(splits[name], where=where[name]) for name in [*names, "train"]}
    train = splits["train"]
    if config.limit_train > len(train):
        raise UserError(
            f"limit_train is {config.limit_train}, and there are {len(train)} examples to train "
            "on: lower it or leave it out"
        )
    if config.limit_train:
        chosen = permutation(len(train), seed=LIMIT_SEED, epoch=0)[: config.limit_train]
        train = tuple(train[index] for index in chosen)
        golds["train"] = [golds["train"][index] for index in chosen]
        notes.append(f"trained on {len(train):,} of {len(splits['train']):,} examples, by chance")
    notes += overlap_notes(train, {name: splits[name] for name in names})
    notes += answer_notes(task, golds["train"])
    if task.kind == "regression" and len(set(golds["train"])) < 2:
        raise UserError(
            f"{where['train']}: every example to train on has the number {golds['train'][0]}: "
            "there is nothing to learn"
        )
    return Material(
        task=task,
        labels=data.labels,
        train=train,
        scored={name: splits[name] for name in names},
        golds=golds,
        files={name: where[name] for name in [*names, "train"]},
        notes=tuple(notes),
    )


def answer_notes(task: Task, golds: Sequence[Any]) -> list[str]:
    """Say when answers without blanks between words are scored word by word."""
    if task.kind != "qa" or task.metrics[0].startswith("cmrc"):
        return []
    letters = "".join(answer for answers in golds[:NUM_LOOKED_AT] for answer in answers)
    if 2 * len(HAN.findall(letters)) <= len(letters):
        return []
    return [
        f"{task.metrics[0]} compares words parted by blanks, and most of the answers are Chinese: "
        "--own.metrics cmrc_f1 cmrc_exact_match compares characters"
    ]


def overlap_notes(train: Sequence[Example], scored: Mapping[str, Sequence[Example]]) -> list[str]:
    """Say how much of what is scored is trained on, too."""
    known = {content_of(example) for example in train}
    counts = {name: sum(content_of(each) in known for each in scored[name]) for name in scored}
    return [
        f"{name}: {count:,} of {len(scored[name]):,} examples have the text of a train example"
        for name, count in counts.items()
        if count
    ]


def content_of(example: Example) -> tuple[str, str | None]:
    """Return what is read of an example."""
    if isinstance(example, QAExample):
        return example.question, example.context
    return example.text, None if isinstance(example, TaggedExample) else example.pair


def read_task(config: FinetuneConfig) -> tuple[Task, TaskData]:
    """Read all splits of a named task, of own data, or of a data set of the hub."""
    assert config.task is not None
    if config.task == "own":
        return load_own(with_paths(config.own, config.data))
    if config.task.startswith("hub:"):
        return load_hub(config.task.removeprefix("hub:"), config.own)
    task = find_task(config.task)
    return task, load_task(task, config.data[0])


def with_paths(own: OwnData, data: Sequence[Path]) -> OwnData:
    """Put the paths of --data into the settings of own data.

    Raises:
        UserError: more than three of them, or a folder among several.
    """
    if not data:
        return own
    if len(data) == 1 and data[0].is_dir():
        return replace(own, folder=data[0])
    folders = [path for path in data if path.is_dir()]
    if folders or len(data) > 3:
        raise UserError(
            f"data has {len(data)} paths: give one folder, or the files of train, dev and test, in "
            "this order"
        )
    return replace(own, **dict(zip(("train", "dev", "test"), data, strict=False)))


def with_dev(
    task: Task, splits: dict[str, tuple[Example, ...]], fraction: float, *, files: dict[str, str]
) -> dict[str, tuple[Example, ...]]:
    """Move a part of train to dev; the same text is never on both sides.

    Raises:
        UserError: there is a dev file, or one side is empty.
    """
    if "dev" in splits:
        raise UserError(
            f"dev_fraction has no effect with the dev file {files['dev']}: leave it out"
        )
    sides: dict[bool, list[Example]] = {False: [], True: []}
    for example in splits["train"]:
        sides[place_of(example) < fraction].append(example)
    if not sides[True] or not sides[False]:
        raise UserError(
            f"dev_fraction {fraction} leaves no example of {task.name} on one side: change it"
        )
    return splits | {"train": tuple(sides[False]), "dev": tuple(sides[True])}


def missing_split(
    task: Task, splits: dict[str, tuple[Example, ...]], first: str, *, is_own: bool
) -> str:
    """Say what can be done where the split to be scored is missing."""
    there = ", ".join(splits)
    if first == "test":
        return f"task {task.name}: no test file (there is {there}): leave score_on out"
    fraction = "--own.dev-fraction" if is_own else "--dev-fraction"
    other = " or score on the test file with --score-on test" if "test" in splits else ""
    return (
        f"task {task.name}: no dev file (there is {there}): take a part of train with {fraction} "
        f"0.1{other}"
    )
