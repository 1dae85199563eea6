"""Checkpoints that survive anything: written beside, synced, renamed; checked before use.

A checkpoint is a folder `step-N` with `model.safetensors` (each shared tensor once), `optimizer.pt`
and `state.json`. The last is written last and holds the sizes and digests of the other two and of
its own content: a folder without it, or with other bytes, is not a checkpoint and is passed over.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from torch.optim import Optimizer

from amber.errors import UserError

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.pt", "state.json"


@dataclass(kw_only=True, slots=True)
class TrainState:
    """How far a run is. With the settings, the data and the weights it determines the rest."""

    step: int = 0
    """Optimiser steps done; the data order, the noise and the dropout follow from it."""

    tokens: int = 0
    """Real tokens trained on."""

    places: int = 0
    """Tokens computed, padding included."""

    flops: int = 0
    """Standard rule, padding not counted."""

    seconds: float = 0.0
    """Spent in training steps."""

    is_second_stage: bool = False
    """Whether the generator is done and the discriminator is trained (two_stage)."""

    best_loss: float = float("inf")
    """Lowest held-out loss so far."""

    best_step: int = -1
    first_evaluation: dict[str, float] | None = None
    """Held-out metrics before the first step."""

    window: list[dict[str, int | float]] = field(default_factory=list)
    """Metrics of the steps since the last line of the log."""


def save_checkpoint(
    folder: Path, model: nn.Module, optimizers: list[Optimizer], state: TrainState, *, keep: int
) -> Path:
    """Write `step-N`, then remove the others but the last `keep` and the best.

    Later steps are removed too: a run that goes on from an earlier one has passed them over.

    Args:
        folder: of all checkpoints of the run.
        model: its named parameters are saved.
        optimizers: all of them.
        state: counters.
        keep: how many of the newest stay.

    Raises:
        UserError: the disk is full or not writable; earlier checkpoints are untouched.
    """
    final = folder / f"step-{state.step}"
    beside = folder / f".{final.name}.unfinished"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(".step-*.unfinished"):
            shutil.rmtree(leftover, ignore_errors=True)
        beside.mkdir()
        tensors = {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}
        save_file(tensors, beside / WEIGHTS)
        torch.save([optimizer.state_dict() for optimizer in optimizers], beside / OPTIMIZER)
        files = {name: _describe(beside / name) for name in (WEIGHTS, OPTIMIZER)}
        content = {"state": asdict(state), "files": files}
        content["sha256"] = _digest(content)
        (beside / STATE).write_text(json.dumps(content, indent=1))
        for name in (WEIGHTS, OPTIMIZER, STATE):
            _sync(beside / name)
        _sync(beside)
        shutil.rmtree(final, ignore_errors=True)
        beside.rename(final)
        _sync(folder)
    except (OSError, SafetensorError, RuntimeError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise UserError(
            f"{final}: the checkpoint cannot be written ({error}); earlier ones are untouched: "
            "free some space and resume"
        ) from error
    steps = list_checkpoints(folder)
    kept = [step for step in steps if step <= state.step][:keep]
    for step in steps:
        if step not in kept and step != state.best_step:
            shutil.rmtree(folder / f"step-{step}", ignore_errors=True)
    return final


def list_checkpoints(folder: Path) -> list[int]:
    """Return the steps of all checkpoint folders, newest first, sound or not."""
    names = [path.name.removeprefix("step-") for path in folder.glob("step-*") if path.is_dir()]
    return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def load_newest(
    folder: Path,
    model: nn.Module,
    optimizers: list[Optimizer],
    *,
    warn: Callable[[str], None],
) -> TrainState:
    """Load the newest sound checkpoint into the model and the optimisers.

    Args:
        folder: of all checkpoints of the run.
        model: of the same shapes.
        optimizers: built for that model.
        warn: told of each checkpoint that is passed over, and why.

    Raises:
        UserError: there is no sound checkpoint.
    """
    for step in list_checkpoints(folder):
        path = folder / f"step-{step}"
        try:
            state = check(path)
            load_weights(path / WEIGHTS, model)
            _load_optimizers(path / OPTIMIZER, optimizers)
        except UserError as error:
            warn(f"passed over: {error}")
            continue
        return state
    raise UserError(f"{folder}: no sound checkpoint to resume from: start without --resume")


def check(path: Path) -> TrainState:
    """Return the state of a checkpoint after comparing every byte with its digest.

    Raises:
        UserError: a file is missing, cut off or changed.
    """
    try:
        content: dict[str, Any] = json.loads((path / STATE).read_text())
        if content.pop("sha256") != _digest(content):
            raise UserError(f"{path / STATE}: is changed")
        if set(content["state"]) != {field.name for field in fields(TrainState)}:
            raise UserError(f"{path}: written by another version of amber")
        for name in (WEIGHTS, OPTIMIZER):
            if _describe(path / name) != content["files"][name]:
                raise UserError(f"{path / name}: is cut off or changed")
        state = TrainState(**content["state"])
        if path.name != f"step-{state.step}":
            raise UserError(f"{path}: holds step {state.step}")
        return state
    except UserError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: is not a whole checkpoint ({error!r})") from error


def load_weights(path: Path, model: nn.Module) -> None:
    """Copy saved weights into a model, by name; all names and shapes must agree.

    Raises:
        UserError: they do not.
    """
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    parameters = dict(model.named_parameters())
    if tensors.keys() != parameters.keys():
        odd = sorted(tensors.keys() ^ parameters.keys())
        raise UserError(f"{path}: holds another network; differing weights: {', '.join(odd[:5])}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            if tensors[name].shape != parameter.shape:
                raise UserError(
                    f"{path}: {name} has shape {tuple(tensors[name].shape)}, the model "
                    f"{tuple(parameter.shape)}"
                )
            parameter.copy_(tensors[name])


def _load_optimizers(path: Path, optimizers: list[Optimizer]) -> None:
    """Read the state of all optimisers.

    Raises:
        UserError: they are of another kind or of other parameters.
    """
    saved = torch.load(path, map_location="cpu", weights_only=True)
    try:
        for optimizer, one in zip(optimizers, saved, strict=True):
            optimizer.load_state_dict(one)
    except (ValueError, KeyError, RuntimeError) as error:
        raise UserError(f"{path}: made with other optimisers ({error})") from error


def _digest(content: dict[str, Any]) -> str:
    """Return the digest of what state.json says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _describe(path: Path) -> dict[str, int | str]:
    """Return a file's size and digest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _sync(path: Path) -> None:
    """Force a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
