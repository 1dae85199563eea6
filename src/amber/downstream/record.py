"""What is written down of a fine-tuning, so that a later call knows what it may use again."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch

from amber import __version__
from amber.config import differences, flatten, to_dict, to_toml
from amber.downstream.config import RESUMABLE, FinetuneConfig
from amber.downstream.encoded import EncodedExamples, fingerprint_of
from amber.downstream.recipe import Recipe
from amber.downstream.results import RUN, SeedRun, read_run, write_whole
from amber.downstream.seed import Assignment
from amber.errors import UserError
from amber.run.device import Process
from amber.tasks.config import OwnData

OWN_FILES: Final = ("own.train", "own.dev", "own.test", "own.folder")


def data_fingerprint(encoded: dict[str, EncodedExamples]) -> str:
    """Return a digest of all that is trained and scored on."""
    text = " ".join(f"{split} {fingerprint_of(each)}" for split, each in encoded.items())
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def model_fingerprint(folder: Path) -> str:
    """Return a digest of config.json, weights and tokenizer of a model."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".safetensors", ".bin", ".txt") and path.name != RUN:
            digest.update(path.name.encode("utf-8"))
            with path.open("rb") as file:
                while part := file.read(1 << 24):
                    digest.update(part)
    return digest.hexdigest()


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """Write a recipe as settings, without what there is none of."""
    values = {name: value for name, value in asdict(recipe).items() if value is not None}
    return {name: value for name, value in values.items() if name != "size"}


def run_settings(config: FinetuneConfig, process: Process, folder: Path) -> dict[str, Any]:
    """Return what determines every run beside its seed, its recipe and the data."""
    values = to_dict(config)
    own = {name: value for name, value in values["own"].items() if f"own.{name}" not in OWN_FILES}
    idle = RESUMABLE | {"own", "recipe", "sweep", "show_rates"}
    kept = {name: value for name, value in values.items() if name not in idle}
    if config.own != OwnData():
        kept["own"] = own
    is_bf16 = process.dtype == torch.bfloat16
    return kept | {
        "device": process.device.type,  # what auto came to, as the precision
        "precision": "bf16" if is_bf16 else "float32",
        "model_fingerprint": model_fingerprint(folder),
        "amber": __version__,
    }


def refuse_models(out: Path) -> None:
    """Stop before results are written among the files of a model or of a pre-training.

    Raises:
        UserError: there is one.
    """
    for name in ("config.json", "discriminator", "generator", "checkpoints"):
        if (out / name).exists():
            raise UserError(
                f"{out}: holds a model or a pre-training ({name}): give another --out, a new "
                "folder for the results"
            )


def find_finished(out: Path, assignments: Sequence[Assignment]) -> dict[int, SeedRun]:
    """Find the runs that an earlier call finished.

    Raises:
        UserError: the folder holds runs with other settings.
    """
    found: dict[int, SeedRun] = {}
    for number, assignment in enumerate(assignments):
        path = out / assignment.folder / RUN
        run = read_run(path)
        if run is None or not (path.parent / "model.safetensors").is_file():
            continue
        changed = differences(flatten(run.settings), flatten(assignment.settings))
        if changed:
            raise UserError(
                f"{path}: the run there had other settings ({'; '.join(changed)}): leave them as "
                "they were to go on, or give another --out"
            )
        found[number] = run
    return found


def write_config(
    config: FinetuneConfig, recipes: Sequence[Recipe], common: dict[str, Any], data: Sequence[str]
) -> None:
    """Write config.toml: the settings, whole where there is one recipe, and what they met.

    Raises:
        UserError: the folder cannot be made.
    """
    assert config.out is not None
    values = to_dict(config)
    if len(recipes) == 1:
        values["recipe"] = recipe_values(recipes[0])
    if config.own == OwnData():
        values.pop("own")
    versions = {name: version(name) for name in ("torch", "tokenizers", "numpy")}
    values |= {
        "precision": common["precision"],
        "data_fingerprint": data[0],
        "model_fingerprint": common["model_fingerprint"],
        "versions": {"amber": __version__} | versions,
    }
    try:
        config.out.mkdir(parents=True, exist_ok=True)
        write_whole(config.out / "config.toml", to_toml(values))
    except OSError as error:
        raise UserError(
            f"{config.out}: cannot be written ({error.strerror}): give another --out"
        ) from error
