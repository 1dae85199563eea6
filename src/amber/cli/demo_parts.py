"""The parts of `amber demo`: its text, its settings, what it shows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from amber.downstream.config import FinetuneConfig, RecipeConfig
from amber.downstream.results import RESULTS
from amber.errors import UserError
from amber.run.checkpoint import list_checkpoints
from amber.run.commands import DemoConfig, EvaluateConfig, InspectConfig
from amber.text.docstrings import first_sentences, installed_documents
from amber.tokens.config import PrepareConfig

TEXT_CHARACTERS: Final = 5_000_000
VOCAB_SIZE: Final = 4096
HELD_OUT_FRACTION: Final = 0.03
STEPS: Final = 600
TEMPERATURE: Final = 2.0
"""Of the replacements. At 1, as in the paper, they are too hard to find for a discriminator that
has seen less than a million tokens: its AUC stays below 0.6. At 2 it passes 0.75 in 100 steps."""

SENTENCES: Final = (
    "Return the number of items in the list, or raise an error if the argument is not a sequence.",
    "The function opens the file and reads it line by line until the end of the file is reached.",
    "If the value is not an integer, an exception is raised and the default value is returned.",
)
SENTENCE_SEED: Final = 0

TRAIN_PER_LIBRARY: Final = 20
DEV_PER_LIBRARY: Final = 300
SEEDS: Final = 5
EPOCHS: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoFolder:
    """Where the parts of a demo are."""

    text: Path
    data: Path
    run: Path
    task: Path
    """Labelled sentences, and the classifiers trained on them."""

    is_begun: bool
    """Whether there is a checkpoint to go on from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoText:
    """What the text is."""

    path: str
    num_documents: int
    num_characters: int


def open_demo(config: DemoConfig) -> DemoFolder:
    """Look at the folder of a demo: new, or stopped and to be gone on with.

    Raises:
        UserError: it holds a finished demo, or something else.
    """
    out = config.out
    folder = DemoFolder(
        text=out / "text.txt",
        data=out / "data",
        run=out / "run",
        task=out / "task",
        is_begun=bool(list_checkpoints(out / "run" / "checkpoints")),
    )
    if is_done(folder.task / "scratch" / RESULTS):  # the last thing that is made
        raise UserError(
            f"{out}: holds a finished demo: give another --out, delete the folder, or look at it "
            f'with amber inspect {folder.run} "a sentence"'
        )
    ours = {folder.text.name, folder.data.name, folder.run.name, folder.task.name}
    if out.is_file() or (
        out.is_dir() and any(p.name not in ours and p.name[0] != "." for p in out.iterdir())
    ):
        raise UserError(f"{out}: is there already and is not a demo: give another --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out}: cannot be made ({error}); give another --out") from error
    return folder


def is_done(path: Path) -> bool:
    """Whether a file of results is there and says that all runs were done."""
    return path.is_file() and json.loads(path.read_text(encoding="utf-8"))["is_done"]


def write_text(folder: DemoFolder) -> DemoText:
    """Write the text, documents apart by blank lines, unless it is there."""
    if folder.text.is_file():
        documents: Sequence[str] = folder.text.read_text(encoding="utf-8").split("\n\n")
    else:
        documents = list(installed_documents(TEXT_CHARACTERS))
        beside = folder.text.with_name(".text.txt.unfinished")
        beside.write_bytes("\n\n".join([*documents, ""]).encode("utf-8", errors="replace"))
        beside.rename(folder.text)
    return DemoText(
        path=str(folder.text),
        num_documents=sum(bool(document) for document in documents),
        num_characters=sum(map(len, documents)),
    )


def prepare_settings(folder: DemoFolder) -> PrepareConfig:
    """Return the settings of the demo's `amber prepare`."""
    return PrepareConfig(
        text=(str(folder.text),),
        out=folder.data,
        vocab_size=VOCAB_SIZE,
        held_out_fraction=HELD_OUT_FRACTION,
    )


def pretrain_settings(config: DemoConfig, folder: DemoFolder) -> dict[str, Any]:
    """Return what the demo's `amber pretrain` is given, over the preset tiny."""
    budget = {"hours": config.minutes / 60} if config.minutes else {"steps": STEPS}
    return {
        "data": str(folder.data),
        "out": str(folder.run),
        "preset": "tiny",
        "resume": folder.is_begun,
        "generator": {"depth_fraction": 0.34},
        "noise": {"temperature": TEMPERATURE},
        "batch": {"size": 16, "length": 64},
        "optim": {
            "matrices": "adamw",
            "learning_rate": 2e-3,
            "beta2": 0.98,
            "schedule": "linear",
            "warmup_fraction": 0.05,
        },
        "budget": budget,
        "evaluation": {"every_steps": 200, "examples": 256},
        "checkpoint": {"every_steps": 200, "keep": 1},
        "log": {"every_steps": 50},
    }


def evaluate_settings(folder: DemoFolder) -> EvaluateConfig:
    """Return the settings of the demo's `amber evaluate`."""
    return EvaluateConfig(model=folder.run, data=folder.data)


def write_task(folder: DemoFolder) -> None:
    """Write labelled sentences to train on and others to score on, unless they are there.

    The text of pre-training holds most of these sentences, without the labels.
    """
    if all((folder.task / f"{name}.tsv").is_file() for name in ("train", "dev")):
        return
    folder.task.mkdir(exist_ok=True)
    by_library: dict[str, list[str]] = {}
    for library, sentence in first_sentences(TRAIN_PER_LIBRARY + DEV_PER_LIBRARY):
        by_library.setdefault(library, []).append(sentence)
    for name in ("train", "dev"):
        rows = ["text\tlabel"]
        for library, sentences in by_library.items():
            is_train = name == "train"
            some = sentences[:TRAIN_PER_LIBRARY] if is_train else sentences[TRAIN_PER_LIBRARY:]
            rows += [f"{sentence}\t{library}" for sentence in some]
        beside = folder.task / f".{name}.tsv.unfinished"
        beside.write_bytes("\n".join([*rows, ""]).encode("utf-8", errors="replace"))
        beside.rename(folder.task / f"{name}.tsv")


def finetune_settings(folder: DemoFolder, *, from_scratch: bool) -> FinetuneConfig:
    """Return the settings of the demo's `amber finetune`: with pre-training, or without."""
    return FinetuneConfig(
        model=folder.run,
        task="own",
        data=(folder.task / "train.tsv", folder.task / "dev.tsv"),
        out=folder.task / ("scratch" if from_scratch else "pretrained"),
        seeds=SEEDS,
        from_scratch=from_scratch,
        recipe=RecipeConfig(epochs=EPOCHS, length=64),
    )


def inspect_settings(folder: DemoFolder) -> InspectConfig:
    """Return the settings of the demo's `amber inspect`."""
    return InspectConfig(model=folder.run, text=SENTENCES, seed=SENTENCE_SEED)
