"""A fine-tuned folder, opened: the network, and what it must be asked as in its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer

from amber.downstream.config import RecipeConfig
from amber.downstream.encoded import EncodedExamples, encode_examples
from amber.downstream.joint_decoding import WindowAnswer
from amber.downstream.prediction import (
    MAX_ANSWER,
    OnCount,
    Predictions,
    SequenceScores,
    decode,
    score_sequences,
)
from amber.downstream.recipe import fill_recipe
from amber.downstream.results import RUN, find_model, read_run
from amber.errors import RunError
from amber.model.files import fitting_tokenizer, read_settings
from amber.model.hugging_face import ENERGY_LABELS, RTD_LABELS
from amber.model.task_folder import load_task_model, task_details
from amber.model.task_heads import TaskModel
from amber.model.task_shape import CLASSES
from amber.run.device import Precision, Process
from amber.run.folders import locate
from amber.tasks.example import Example, Kind
from amber.tokens.tokenizer import longest_text, special_ids

READING: Final = ("length", "stride", "max_question", "max_answer")
"""Details of a folder that say how much is read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TunedModel:
    """A fine-tuned network, and how examples are put to it."""

    path: Path
    model: TaskModel
    tokenizer: Tokenizer
    task: str | None
    """Name of the task of its training; None for folders from elsewhere."""

    details: dict[str, Any]
    """What was kept with it; empty for folders from elsewhere."""

    length: int
    """Tokens that are read at most."""

    stride: int | None
    max_question: int | None
    max_answer: int
    threshold: float | None
    """Of "no answer"."""

    precision: Precision
    """Of the run that trained it; auto where nothing is known."""

    num_threads: int | None
    """Likewise: the last digits of scores depend on them."""

    @property
    def kind(self) -> Kind:
        """What it predicts."""
        return self.model.shape.kind

    @property
    def labels(self) -> tuple[str, ...]:
        """In the order of their numbers."""
        return self.model.shape.labels

    def encode(self, examples: Sequence[Example]) -> EncodedExamples:
        """Turn examples into token ids as for the training."""
        return encode_examples(
            self.kind,
            examples,
            self.tokenizer,
            labels=self.labels,
            length=self.length,
            stride=self.stride,
            max_question=self.max_question,
        )


def find_tuned(path: Path) -> Path | None:
    """Return the folder of a fine-tuned network: of the median run, or `path` itself; else None.

    Raises:
        UserError: there is no such folder, no model in it, or a damaged config.json.
    """
    folder = find_model(path)
    if not (folder / "config.json").is_file():
        return None
    settings = read_settings(folder)
    if (settings.get("amber") or {}).get("task") is not None:
        return folder
    architecture = str((settings.get("architectures") or [""])[0])
    is_discriminator = (settings.get("id2label") or {}) in (RTD_LABELS, ENERGY_LABELS)
    return (
        folder if architecture.endswith(tuple(CLASSES.values())) and not is_discriminator else None
    )


def open_tuned(path: Path) -> TunedModel:
    """Open a fine-tuned network.

    Args:
        path: results of fine-tuning (the median run is opened), or a model folder.

    Raises:
        UserError: there is none, it cannot be read, or it was not fine-tuned.
    """
    folder = locate(find_model(path))[0]
    model = load_task_model(folder)
    details, config = task_details(folder), model.encoder.config
    run = read_run(folder / RUN)
    reading = {name: details[name] for name in READING if name in details}
    if not details and model.shape.is_text:  # from elsewhere: all that transformers reads
        longest = config.max_position_embeddings
        reading["length"] = min(longest_text(folder) or longest, longest)
    recipe = fill_recipe(
        RecipeConfig(**reading),
        kind=model.shape.kind,
        epochs=1,
        shape=config,
        head="hf" if model.shape.head == "hugging_face" else "official",
    )
    return TunedModel(
        path=folder,
        model=model,
        tokenizer=fitting_tokenizer(folder, config),
        task=details.get("task"),
        details=details,
        length=recipe.length,
        stride=recipe.stride,
        max_question=recipe.max_question,
        max_answer=recipe.max_answer or MAX_ANSWER,
        threshold=details.get("threshold"),
        precision="auto" if run is None else run.settings.get("precision", "auto"),
        num_threads=None if run is None else run.num_threads,
    )


def ask(
    tuned: TunedModel,
    encoded: EncodedExamples,
    process: Process,
    *,
    batch_size: int = 0,
    on_count: OnCount = lambda done: None,
) -> tuple[Predictions, list[SequenceScores]]:
    """Predict for every example; also return the scores of each sequence.

    Args:
        tuned: on the process's device.
        encoded: with or without labels.
        process: gives device and precision.
        batch_size: sequences per forward pass; 0 = as many as in the training's evaluation, with
            the same bits.
        on_count: told how many sequences are done.

    Raises:
        RunError: a score is no number.
    """
    scores = score_sequences(
        tuned.model,
        encoded.sequences,
        process,
        pad_id=special_ids(tuned.tokenizer).pad,
        max_answer=tuned.max_answer,
        batch_size=batch_size,
        on_count=on_count,
    )
    if not all(is_finite(each) for each in scores):
        raise RunError(f"{tuned.path}: a score is no number: its weights are damaged")
    found = decode(encoded, scores, threshold=tuned.threshold, max_answer=tuned.max_answer)
    return found, scores


def is_finite(scores: SequenceScores) -> bool:
    """Whether all scores of a sequence are numbers."""
    values = scores.no_answer if isinstance(scores, WindowAnswer) else scores
    return bool(np.isfinite(values).all())
