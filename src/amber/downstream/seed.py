"""One run of fine-tuning: from a pre-trained folder and a seed to a trained folder and scores."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from amber.downstream.card import model_card
from amber.downstream.config import Keep
from amber.downstream.encoded import EncodedExamples, gold_of
from amber.downstream.prediction import MAX_ANSWER, Predictions, predict_examples
from amber.downstream.recipe import Recipe
from amber.downstream.results import RUN, EpochRecord, SeedRun, to_json, write_whole
from amber.downstream.scoring import (
    Baseline,
    Scores,
    choose_threshold,
    is_better,
    score_predictions,
)
from amber.downstream.sequences import Sequences
from amber.downstream.target_scale import TargetScale, fit_scale
from amber.downstream.training import (
    IsStopped,
    OnStep,
    TrainingEpoch,
    num_steps,
    train_task,
)
from amber.downstream.used_rows import UsedRows, renumber
from amber.model.task_folder import open_for_task, save_task_model
from amber.model.task_heads import TaskModel
from amber.model.task_shape import HeadStyle
from amber.run.device import Process
from amber.tasks.task import Task

OnEpoch = Callable[[EpochRecord], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """What all runs of a command have in common."""

    model_dir: Path
    task: Task
    labels: tuple[str, ...]
    head: HeadStyle
    is_pretrained: bool
    """Whether the network starts with the folder's weights."""

    keep: Keep
    patience: int
    pad_id: int
    scored_split: str
    """By which is chosen what is chosen; the first of `Encodings.scored`."""

    num_threads: int
    num_train: int
    """Examples to train on."""

    baselines: Mapping[str, Mapping[str, Baseline]]
    """By split and metric: for the model card."""

    details: Mapping[str, Any]
    """Kept with each model: what a prediction needs to know."""

    encodings: Mapping[int, "Encoding"]
    """By number, where a sweep has several lengths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """The examples as token ids, for one length."""

    train: Sequences
    scored: dict[str, EncodedExamples]
    """By split."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """What one run has for itself."""

    seed: int
    point: int
    """Number of the combination of settings that it belongs to."""

    recipe: Recipe
    encoding: int
    out: Path
    """Folder of the results."""

    folder: str
    """Of this run, in `out`."""

    settings: dict[str, Any]
    """With fingerprints, to know the run again."""


@dataclass(kw_only=True, slots=True)
class Watch:
    """Scores a network after its epochs and keeps the best weights."""

    work: Workload
    assignment: Assignment
    process: Process
    scale: TargetScale
    model: TaskModel
    rows: UsedRows | None
    on_epoch: OnEpoch
    records: list[EpochRecord] = field(default_factory=list)
    seconds: float = 0.0
    best_score: float | None = None
    best_epoch: int = 0
    best_weights: dict[str, Tensor] | None = None

    def note(self, done: TrainingEpoch) -> bool:
        """Score an epoch; return whether to go on."""
        self.seconds += done.seconds
        is_last = done.epoch == self.assignment.recipe.epochs
        if is_last and self.work.keep == "last":
            self.records.append(EpochRecord(epoch=done.epoch, loss=done.loss, score=0.0))
            return False  # the weights are scored when they are saved
        work, metric = self.work, self.work.task.metrics[0]
        scored = self.encoding.scored[work.scored_split]
        with self.whole_table():
            predictions, _ = self.predict(scored)
        score = score_predictions(work.task, golds(scored), predictions, labels=work.labels).values[
            metric
        ]
        record = EpochRecord(epoch=done.epoch, loss=done.loss, score=score)
        self.records.append(record)
        self.on_epoch(record)
        if self.best_score is None or is_better(metric, score, self.best_score):
            self.best_score, self.best_epoch = score, done.epoch
            if work.keep == "best":
                weights = self.model.state_dict().items()
                self.best_weights = {name: weight.clone() for name, weight in weights}
        return not (work.patience and done.epoch - self.best_epoch >= work.patience)

    @property
    def encoding(self) -> Encoding:
        """The examples of this run."""
        return self.work.encodings[self.assignment.encoding]

    def whole_table(self) -> AbstractContextManager[None]:
        """Make the network able to read any token."""
        return nullcontext() if self.rows is None else self.rows.whole_table()

    def predict(self, scored: EncodedExamples) -> tuple[Predictions, float | None]:
        """Predict with the weights as they are; return the threshold of "no answer", too."""
        found = predict_examples(
            self.model,
            scored,
            self.process,
            pad_id=self.work.pad_id,
            max_answer=self.assignment.recipe.max_answer or MAX_ANSWER,
        )
        if scored.kind == "regression":
            found = replace(found, values=tuple(self.scale.restore(v) for v in found.values))
        is_test = self.work.scored_split == "test"
        return choose_threshold(self.work.task, golds(scored), found, is_test=is_test)

    def finish(self) -> int:
        """Put the weights in that are kept; return the epoch that they are from."""
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)
        if self.rows is not None:
            self.rows.restore()
        self.scale.fold_into(self.model)
        self.scale = TargetScale()
        return self.records[-1].epoch if self.best_weights is None else self.best_epoch


def golds(scored: EncodedExamples) -> list[Any]:
    """Return the truth of labelled examples."""
    return [gold_of(example) for example in scored.examples]


def run_seed(
    work: Workload,
    assignment: Assignment,
    process: Process,
    *,
    on_step: OnStep,
    on_epoch: OnEpoch,
    is_stopped: IsStopped,
) -> SeedRun | None:
    """Train with one seed, score, and write the model and the record.

    Args:
        work: what all runs have in common.
        assignment: what this one has for itself.
        process: device and precision.
        on_step: told every few steps.
        on_epoch: told the score after each epoch.
        is_stopped: asked before each step.

    Returns:
        The record; None when it was stopped.
    """
    recipe = assignment.recipe
    model = open_network(work, assignment).to(process.device)
    scale, train = fit_scale(work.task.kind, work.encodings[assignment.encoding].train)
    rows, pad_id = None, work.pad_id
    if recipe.weight_decay == 0:
        train, ids, pad_id = renumber(train, pad_id=pad_id)
        rows = UsedRows(model.encoder, ids)
    watch = Watch(
        work=work,
        assignment=assignment,
        process=process,
        scale=scale,
        model=model,
        rows=rows,
        on_epoch=on_epoch,
    )
    is_done = train_task(
        model,
        train,
        recipe,
        process,
        seed=assignment.seed,
        pad_id=pad_id,
        on_step=on_step,
        on_epoch=watch.note,
        is_stopped=is_stopped,
    )
    if not is_done:
        return None
    return write_run(watch, len(train))


def open_network(work: Workload, assignment: Assignment) -> TaskModel:
    """Start the network of a run from the pre-trained folder."""
    recipe = assignment.recipe
    return open_for_task(
        work.model_dir,
        kind=work.task.kind,
        labels=work.labels,
        head=work.head,
        seed=assignment.seed,
        is_pretrained=work.is_pretrained,
        hidden_dropout=recipe.hidden_dropout,
        attention_dropout=recipe.attention_dropout,
        head_dropout=recipe.head_dropout or 0.0,
        pooling=recipe.pooling,
    ).model


def write_run(watch: Watch, num_sequences: int) -> SeedRun:
    """Score the weights that are kept on every split, and write model and record."""
    work, assignment = watch.work, watch.assignment
    epoch = watch.finish()
    scores: dict[str, Scores] = {}
    threshold: float | None = None
    for split, scored in watch.encoding.scored.items():
        found, chosen = watch.predict(scored)
        threshold = chosen if split == work.scored_split else threshold
        scores[split] = score_predictions(work.task, golds(scored), found, labels=work.labels)
    main = scores[work.scored_split]
    if work.keep == "last" and epoch == assignment.recipe.epochs:
        last = replace(watch.records[-1], score=main.values[work.task.metrics[0]])
        watch.records[-1] = last
        watch.on_epoch(last)
    num_epochs = len(watch.records)
    run = SeedRun(
        seed=assignment.seed,
        scores={split: each.values for split, each in scores.items()},
        epoch=epoch,
        epochs=tuple(watch.records),
        collapsed=main.collapsed,
        notes=tuple(dict.fromkeys(note for each in scores.values() for note in each.notes)),
        threshold=threshold,
        model=f"{assignment.folder}",
        num_steps=num_steps(num_sequences, assignment.recipe)
        * num_epochs
        // assignment.recipe.epochs,
        seconds=watch.seconds,
        sequences_per_second=num_sequences * num_epochs / max(watch.seconds, 1e-9),
        num_threads=torch.get_num_threads(),
        settings=assignment.settings,
    )
    folder = assignment.out / assignment.folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    save_task_model(
        folder,
        watch.model,
        tokenizer_dir=work.model_dir,
        card=model_card(
            work.task,
            run,
            recipe=assignment.recipe,
            labels=work.labels,
            head=work.head,
            start=work.model_dir if work.is_pretrained else None,
            num_train=work.num_train,
            baselines=work.baselines,
            scored_split=work.scored_split,
        ),
        details={**work.details, **recipe_details(assignment.recipe, threshold)},
    )
    write_whole(folder / RUN, to_json(run))
    return run


def recipe_details(recipe: Recipe, threshold: float | None) -> dict[str, Any]:
    """Return what a prediction must do as the training did, without what there is not."""
    values = {
        "length": recipe.length,
        "stride": recipe.stride,
        "max_question": recipe.max_question,
        "max_answer": recipe.max_answer,
        "threshold": threshold,
    }
    return {name: value for name, value in values.items() if value is not None}
