"""The files of a model folder: read with care, and written whole or not at all."""

import errno
import json
import os
import shutil
from pathlib import Path
from pickle import PickleError
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.hugging_face import Meaning, to_settings
from amber.tokens.tokenizer import load_tokenizer, save_tokenizer, special_ids, vocab_size

POINTER_START = b"version https://git-lfs"


def read_settings(folder: Path) -> dict[str, Any]:
    """Read config.json.

    Raises:
        UserError: it is missing or damaged.
    """
    config_path = folder / "config.json"
    if not config_path.is_file():
        raise UserError(f"{folder}: no config.json: give a model folder")
    try:
        settings = json.loads(config_path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{config_path}: not JSON ({error}): copy the folder again") from error
    if not isinstance(settings, dict):
        raise UserError(f"{config_path}: not a JSON object: copy the folder again")
    ours = settings.get("amber", {})
    task = ours.get("task") if isinstance(ours, dict) else None
    labels = settings.get("id2label")
    for name, value in (("amber", ours), ("amber.task", task or {}), ("id2label", labels or {})):
        if not isinstance(value, dict):
            raise UserError(f"{config_path}: {name} is {value!r}, not an object: mend the file")
    return settings


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor], Path]:
    """Read config.json and the weights; also return the path of the latter.

    Raises:
        UserError: a file is missing or damaged.
    """
    settings = read_settings(folder)
    paths = [folder / name for name in ("model.safetensors", "pytorch_model.bin")]
    indices = [path.with_name(f"{path.name}.index.json") for path in paths]
    path = next((p for p in (*paths, *indices) if p.is_file()), None)
    if path is None:
        raise UserError(f"{folder}: neither model.safetensors nor pytorch_model.bin is there")
    weights = read_shards(path) if path.suffix == ".json" else read_weights(path)
    old = {"gamma": "weight", "beta": "bias"}  # names in files of before 2019
    return settings, {rename(name, old): w for name, w in weights.items()}, path


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a file of weights.

    Raises:
        UserError: it is damaged, or holds the address of the weights only.
    """
    try:
        with path.open("rb") as file:
            is_pointer = file.read(len(POINTER_START)) == POINTER_START
        if is_pointer:
            raise UserError(f"{path}: a pointer of git-lfs, not the weights: run git lfs pull")
        if path.suffix == ".safetensors":
            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except (SafetensorError, PickleError, RuntimeError, ValueError, EOFError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be read ({reason}): copy the folder again") from error
    if not isinstance(weights, dict):
        raise UserError(f"{path}: not a table of weights: copy the folder again")
    return weights


def read_shards(index: Path) -> dict[str, Tensor]:
    """Read weights that `transformers` wrote to several files.

    Args:
        index: names the file of each weight.

    Raises:
        UserError: it or one of the files is damaged or missing.
    """
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        paths = [index.with_name(name) for name in sorted(names)]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise UserError(f"{index}: not an index of weights: copy the folder again") from error
    return {name: weight for path in paths for name, weight in read_weights(path).items()}


def rename(name: str, ends: dict[str, str]) -> str:
    """Replace the last part of a dotted name, if it is in `ends`."""
    path, dot, end = name.rpartition(".")
    return f"{path}{dot}{ends.get(end, end)}"


def write_folder(
    folder: Path,
    weights: dict[str, Tensor],
    config: EncoderConfig,
    architecture: str,
    tokenizer_dir: Path,
    card: str,
    *,
    meaning: Meaning = "replaced",
    extras: dict[str, dict[str, Tensor]] | None = None,
) -> None:
    """Write a whole model folder beside its place, then move it there.

    Args:
        folder: replaced if it exists.
        weights: content of model.safetensors.
        config: the shape.
        architecture: the class of `transformers` that the folder is for.
        tokenizer_dir: a tokenizer, written again.
        card: content of README.md.
        meaning: of a binary head's score.
        extras: further files of weights, which `transformers` does not read, by name.
    """
    tokenizer = fitting_tokenizer(tokenizer_dir, config)
    ids = special_ids(tokenizer)
    special = {"pad": ids.pad, "cls": ids.cls, "sep": ids.sep}
    settings = to_settings(config, architecture=architecture, special=special, meaning=meaning)
    files = {"model.safetensors": weights, **(extras or {})}
    place_folder(folder, files, settings, tokenizer, config, card)


def fitting_tokenizer(tokenizer_dir: Path, config: EncoderConfig) -> Tokenizer:
    """Read a tokenizer whose entries all have a row in the token table.

    Raises:
        UserError: it has more entries.
    """
    tokenizer = load_tokenizer(tokenizer_dir)
    if vocab_size(tokenizer) > config.vocab_size:
        raise UserError(
            f"{tokenizer_dir}: the tokenizer has {vocab_size(tokenizer)} entries, the model's "
            f"token table {config.vocab_size}: give the tokenizer that it was trained with"
        )
    return tokenizer


def place_folder(
    folder: Path,
    files: dict[str, dict[str, Tensor]],
    settings: dict[str, Any],
    tokenizer: Tokenizer,
    config: EncoderConfig,
    card: str,
) -> None:
    """Write all files of a folder beside its place, then move it there."""
    partial = folder.with_name(f".{folder.name}.partial")
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        fill_folder(partial, files, settings, tokenizer, config, card)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            if f"(os error {code})" in str(error):  # safetensors and tokenizers say it so
                raise OSError(code, "no space left", str(folder)) from error
        raise
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    partial.rename(folder)
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def fill_folder(
    folder: Path,
    files: dict[str, dict[str, Tensor]],
    settings: dict[str, Any],
    tokenizer: Tokenizer,
    config: EncoderConfig,
    card: str,
) -> None:
    """Make a new folder, write every file, and wait until all are on the disk."""
    folder.mkdir(parents=True)
    segments = ["token_type_ids"] if config.body == "bert" else []
    save_tokenizer(
        tokenizer,
        folder,
        model_max_length=config.max_position_embeddings,
        model_input_names=["input_ids", *segments, "attention_mask"],
    )
    for name, weights in files.items():
        save_file(weights, folder / name, metadata={"format": "pt"})
    text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    for path in [*folder.iterdir(), folder]:
        sync(path)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
