"""Start from trained weights: those of a model folder, of a run that holds two, of a checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from amber.config import read_toml
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.encoder import Encoder
from amber.model.folder import load_discriminator, load_generator
from amber.run.checkpoint import STATE, WEIGHTS, check, load_weights
from amber.tokens.tokenizer import fingerprint, load_tokenizer

UNSEEN = ("body", "num_attention_heads", "norm_eps", "rope_theta")
"""Settings of a network that the shapes of its weights do not show."""


def load_initial_weights(
    path: Path, model: PretrainingModel, *, tokenizer_fingerprint: str
) -> list[str]:
    """Copy weights into a model that was just built.

    A run folder gives both networks, and so does a checkpoint of a run. A single model folder gives
    the main encoder, with the tables that the generator shares, and its head where it has the right
    one; the generator's own layers then start at random.

    Args:
        path: a model folder; a folder with `discriminator` and `generator`, or `encoder`; or a
            checkpoint.
        model: to be filled.
        tokenizer_fingerprint: of the data; the weights must have been trained with the same one.

    Returns:
        What was not found and so starts at random, a sentence each.

    Raises:
        UserError: a folder cannot be read, its tokenizer is another one, or its network differs
            from the model.
    """
    if (path / STATE).is_file():
        check(path)
        saved = read_toml(path.parent.parent / "config.toml")
        check_tokenizer(str(saved.get("tokenizer_fingerprint")), tokenizer_fingerprint, where=path)
        check_unseen(saved.get("model", {}), model.encoder.config, where=path)
        load_weights(path / WEIGHTS, model)
        return []
    main = next((path / n for n in ("discriminator", "encoder") if (path / n).is_dir()), path)
    encoder, rtd_head = load_discriminator(main)
    check_tokenizer(fingerprint(load_tokenizer(main)), tokenizer_fingerprint, where=main)
    copy_encoder(encoder, model.encoder, where=main)
    notes: list[str] = []
    if model.rtd_head is None:
        _, mlm_head = load_generator(main)
        copy_head(mlm_head, model.mlm_head, "for the vocabulary", where=main, notes=notes)
        return notes
    copy_head(rtd_head, model.rtd_head, "for replaced tokens", where=main, notes=notes)
    folder = path / "generator"
    if not folder.is_dir():
        return [*notes, f"{path}: has no generator folder; the generator's layers start at random"]
    generator, mlm_head = load_generator(folder)
    check_tokenizer(fingerprint(load_tokenizer(folder)), tokenizer_fingerprint, where=folder)
    tables = dict(encoder.embeddings.named_parameters())
    others = dict(generator.embeddings.named_parameters())
    if tables.keys() != others.keys() or any(not others[n].equal(tables[n]) for n in tables):
        raise UserError(
            f"{folder}: has other tables than {main}, but the two networks share theirs here: "
            "start from one of the two folders alone"
        )
    copy_encoder(generator, model.generator, where=folder)
    copy_head(mlm_head, model.mlm_head, "for the vocabulary", where=folder, notes=notes)
    return notes


def check_tokenizer(found: str, expected: str, *, where: Path) -> None:
    """Refuse weights that belong to other tokens.

    Raises:
        UserError: the fingerprints differ.
    """
    if found != expected:
        raise UserError(
            f"{where}: was trained with another tokenizer than the data: run amber prepare with "
            f"--tokenizer {where}"
        )


def copy_encoder(source: Encoder, target: Encoder, *, where: Path) -> None:
    """Copy an encoder whose settings agree in what the shapes do not show.

    Raises:
        UserError: a setting, a name or a shape differs.
    """
    there = {name: getattr(source.config, name) for name in UNSEEN}
    check_unseen(there, target.config, where=where)
    copy_weights(source, target, where=where)


def check_unseen(there: Mapping[str, Any], here: EncoderConfig, *, where: Path) -> None:
    """Compare the settings that the shapes do not show.

    Raises:
        UserError: one differs.
    """
    for name in UNSEEN:
        if name == "rope_theta" and here.body == "bert":
            continue
        if there.get(name) != getattr(here, name):
            raise UserError(
                f"{where}: its {name} is {there.get(name)}, model.{name} is "
                f"{getattr(here, name)}: set it to the same"
            )


def copy_head(
    source: nn.Module | None, target: nn.Module, what: str, *, where: Path, notes: list[str]
) -> None:
    """Copy a head, or note that it starts at random."""
    if source is None:
        notes.append(f"{where}: has no head {what}, it starts at random")
    else:
        copy_weights(source, target, where=where)


def copy_weights(source: nn.Module, target: nn.Module, *, where: Path) -> None:
    """Copy all weights by name.

    Raises:
        UserError: a name or a shape differs.
    """
    weights, places = dict(source.named_parameters()), dict(target.named_parameters())
    if weights.keys() != places.keys():
        odd = sorted(weights.keys() ^ places.keys())
        raise UserError(
            f"{where}: its network differs from the settings under model (for example {odd[0]}): "
            "choose the preset that it was trained with"
        )
    for name, weight in weights.items():
        if weight.shape != places[name].shape:
            raise UserError(
                f"{where}: {name} has shape {tuple(weight.shape)}, the settings ask for "
                f"{tuple(places[name].shape)}: choose its preset, and prepare the data with its "
                "tokenizer"
            )
        with torch.no_grad():
            places[name].copy_(weight)
