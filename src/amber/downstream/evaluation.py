"""Score a fine-tuned model on labelled data: what `amber evaluate` does with one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch

from amber.downstream.inputs import (
    DataLayout,
    fitting_file,
    known_file,
    layout_for,
    layout_of_file,
    refuse_other_paths,
)
from amber.downstream.material import ALSO_SCORED, with_dev
from amber.downstream.scoring import (
    Baseline,
    baselines_of,
    check_metrics,
    golds_of,
    score_predictions,
)
from amber.downstream.tuned_model import TunedModel, ask, open_tuned
from amber.downstream.verdicts import verdicts
from amber.errors import UserError
from amber.run.commands import HELD_OUT_ONLY, EvaluateConfig
from amber.run.device import open_process
from amber.tasks.by_label import LabelScores, Mistake, label_scores, mistakes
from amber.tasks.example import Example, Kind
from amber.tasks.load import load_task
from amber.tasks.own import files_called, load_own
from amber.tasks.task import Task, TaskData

TASK_ONLY: Final = ("task", "split", "out")
"""Settings of `amber evaluate` for fine-tuned models only."""
PRETRAINED_ONLY: Final = (
    "pairs",
    "pairs_limit",
    "by",
    "length",
    *(name for name in HELD_OUT_ONLY if name != "batch_size"),
)

HELD_OUT: Final = (
    "the model was trained on a part of its train file; if this is that file, --split dev scores "
    "the part that was held out"
)

OnCount = Callable[[float, int | None], None]
"""Is told how many sequences are done, and how many there are."""
OnVerdict = Callable[[dict[str, Any]], None]
"""Is given an example with its prediction, as `amber.downstream.verdicts` writes it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskScores:
    """The scores of a fine-tuned model."""

    model: str
    task: str
    kind: Kind
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    """The first one counts."""

    scores: dict[str, dict[str, float]]
    """By split, then by metric."""

    baselines: dict[str, dict[str, Baseline]]
    """Likewise."""

    baseline_from: str
    """Whose labels the baselines guess by."""

    by_label: dict[str, tuple[LabelScores, ...]]
    """By split: of each label or type of entity; empty for numbers and answers."""

    mistakes: dict[str, tuple[Mistake, ...]]
    """By split: which label was taken for which, the most frequent first."""

    num_examples: dict[str, int]
    truncated_share: dict[str, float]
    """By split: examples of which something was not read."""

    counts: dict[str, dict[str, int]]
    """By split: what was cut or lost on the way to tokens, each with its number."""

    files: dict[str, str]
    collapsed: dict[str, str]
    """By split: what every prediction is, where all are the same."""

    notes: tuple[str, ...]
    precision: str


def refuse_idle_settings(config: EvaluateConfig, *, is_tuned: bool) -> None:
    """Refuse settings for the other kind of model.

    Raises:
        UserError: with the first of them.
    """
    why = "was fine-tuned for a task" if is_tuned else "was not fine-tuned for a task"
    for name in PRETRAINED_ONLY if is_tuned else TASK_ONLY:
        if getattr(config, name) is not None:
            raise UserError(f"{name} has no effect on {config.model}, which {why}: leave it out")
    for name in () if is_tuned else config.own.given():
        raise UserError(f"own.{name} has no effect on {config.model}, which {why}: leave it out")


def evaluate_task(
    config: EvaluateConfig,
    *,
    on_count: OnCount = lambda done, total: None,
    on_verdict: OnVerdict | None = None,
) -> TaskScores:
    """Score a fine-tuned model; on the files of its training it gives the scores of its run.

    Args:
        config: names the model and the data.
        on_count: is told how many sequences are done.
        on_verdict: is given each example with its prediction.

    Raises:
        UserError: the model or the data cannot be read, or a label is none of the model's.
    """
    if config.data is None:
        raise UserError("--data must be given: labelled examples of the task, a file or a folder")
    tuned = open_tuned(config.model)
    layout = layout_for(tuned, task=config.task, columns=config.own)
    task = layout.task
    if tuned.task is not None and config.task is None:
        task = replace(task, metrics=tuple(tuned.details.get("metrics", task.metrics)))
    check_metrics(task, len(tuned.labels))
    data = read_labelled(tuned, layout, config, path=config.data)
    names = scored_splits(data, config.data, config.split)
    advice = label_advice(layout)
    golds = {
        name: golds_of(data.splits[name], where=data.files[name], advice=advice) for name in names
    }
    has_train = "train" in data.splits
    guessed_from = "train" if has_train else "these examples"
    known = golds_of(data.splits["train"], where=data.files["train"]) if has_train else None
    encoded = {name: tuned.encode(data.splits[name]) for name in names}
    total, done = sum(len(each.sequences) for each in encoded.values()), 0
    scores, notes, collapsed = dict[str, dict[str, float]](), list(data.notes), dict[str, str]()
    guesses = dict[str, Sequence[Any]]()
    precision = config.precision or tuned.precision
    with open_process(config.device, precision) as process, threads_of(tuned):
        tuned.model.to(process.device)
        on_count(0.0, total)
        for name, each in encoded.items():
            found, sequence_scores = ask(
                tuned,
                each,
                process,
                batch_size=config.batch_size or 0,
                on_count=lambda count, before=done: on_count(float(before + count), total),
            )
            done += len(each.sequences)
            result = score_predictions(task, golds[name], found, labels=tuned.labels)
            if on_verdict is not None:
                for one in verdicts(tuned, task, each, found, sequence_scores, golds[name]):
                    on_verdict({"split": name} | one)
            scores[name], guesses[name] = result.values, found.values
            if result.collapsed:  # of which the notes say the same
                collapsed[name] = result.collapsed
            else:
                notes += result.notes
        is_bf16 = process.dtype == torch.bfloat16
    return TaskScores(
        model=str(tuned.path),
        task=task.name,
        kind=task.kind,
        labels=tuned.labels,
        metrics=task.metrics,
        scores=scores,
        baselines={
            name: baselines_of(task, known or gold, gold, labels=tuned.labels)
            for name, gold in golds.items()
        },
        baseline_from=guessed_from,
        by_label={
            name: label_scores(task.kind, gold, guesses[name], labels=tuned.labels)
            for name, gold in golds.items()
        },
        mistakes={name: mistakes(task.kind, gold, guesses[name]) for name, gold in golds.items()},
        num_examples={name: len(gold) for name, gold in golds.items()},
        truncated_share={name: each.truncated_share for name, each in encoded.items()},
        counts={name: each.counts for name, each in encoded.items()},
        files={name: data.files[name] for name in names},
        collapsed=collapsed,
        notes=tuple(dict.fromkeys(notes)),
        precision="bf16" if is_bf16 else "float32",
    )


@contextmanager
def threads_of(tuned: TunedModel) -> Iterator[None]:
    """Compute with as many threads as the run that trained a model, for the same last digits."""
    before = torch.get_num_threads()
    torch.set_num_threads(tuned.num_threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def label_advice(layout: DataLayout) -> str:
    """Say what to do where examples lack labels."""
    columns: dict[Kind, str] = {"tagging": "tags", "qa": "answers"}
    if layout.own is None:
        return "give a file with labels"
    name = columns.get(layout.own.kind, "label")
    return (
        f"they are read from the column {getattr(layout.own, name)!r}: name the right one with "
        f"--own.{name}, or give a file with labels"
    )


def read_labelled(
    tuned: TunedModel, layout: DataLayout, config: EvaluateConfig, *, path: Path
) -> TaskData:
    """Read labelled data and check its labels against those of the model.

    Where dev was a part of train in the training, it is that part again.

    Args:
        tuned: the model.
        layout: of the data.
        config: may name the task or the split.
        path: a folder, of which all splits are read, or a file, which becomes the split `file`.

    Raises:
        UserError: a bad file, or a label that the model does not know.
    """
    refuse_other_paths(path)
    layout = layout_of_file(layout, path)
    task, own = layout.task, layout.own
    if own is not None and path.is_dir():
        has_dev = bool(files_called(path, "dev"))
        own = replace(own, folder=path, dev_fraction=0.0 if has_dev else own.dev_fraction)
        return load_own(own, labels=tuned.labels)[1]
    if own is not None:
        if own.dev_fraction and config.split in ("dev", "train"):
            return load_own(replace(own, train=path), labels=tuned.labels)[1]
        data = load_own(replace(own, test=path, dev_fraction=0.0), labels=tuned.labels)[1]
        notes = (*data.notes, HELD_OUT) if own.dev_fraction else data.notes
        return as_one_file(replace(data, notes=notes))
    if path.is_dir():
        data = load_task(task, path, labels=tuned.labels)
        fraction = tuned.details.get("dev_fraction", 0.0) if config.task is None else 0.0
        if not fraction or "dev" in data.splits or "train" not in data.splits:
            return data
        splits = with_dev(task, data.splits, fraction, files=data.files)
        return replace(data, splits=splits, files=data.files | {"dev": data.files["train"]})
    return as_one_file(load_task(only_file(task, path), path.parent, labels=tuned.labels))


def only_file(task: Task, path: Path) -> Task:
    """Return a task whose test examples are in one file, whatever its name."""
    known = known_file(task, path)
    file = known[1] if known is not None else fitting_file(task, path)
    reader = "table" if file.reader.startswith("msr") else file.reader
    return replace(
        task, folders=(), files={"test": (replace(file, name=path.name, reader=reader),)}
    )


def as_one_file(data: TaskData) -> TaskData:
    """Name the only split `file`."""
    splits: dict[str, tuple[Example, ...]] = {"file": data.splits["test"]}
    return replace(
        data,
        splits=splits,
        files={"file": data.files["test"]},
        notes=tuple(note for note in data.notes if not note.startswith("no train file")),
    )


def scored_splits(data: TaskData, path: Path, split: str | None) -> list[str]:
    """Choose what is scored: the split asked for, else dev, else test; of MNLI dev both halves.

    Raises:
        UserError: it is not there.
    """
    there = list(data.splits)
    if there == ["file"]:
        if split is not None:
            raise UserError(f"split has no effect on {path}, which is one file: leave it out")
        return there
    first = split or ("dev" if "dev" in there else "test")
    if first not in there:
        raise UserError(f"{path}: no {first} file (there is {', '.join(there)}): give the file")
    return [first, *(name for name in ALSO_SCORED.get(first, ()) if name in there)]
