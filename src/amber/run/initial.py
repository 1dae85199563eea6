"""Start from trained weights: `--init` with a model folder, or with a run that holds two."""

from pathlib import Path

import torch
from torch import nn

from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.folder import load_discriminator, load_generator


def load_initial_weights(path: Path, model: PretrainingModel) -> list[str]:
    """Copy weights from folders into a model that was just built.

    A run folder gives both networks. A single model folder gives the main encoder, with the tables
    that the generator shares, and its head where it has the right one; the generator's own layers
    then start at random.

    Args:
        path: a model folder, or a folder with `discriminator` and `generator`, or `encoder`.
        model: to be filled.

    Returns:
        What was not found and so starts at random, a sentence each.

    Raises:
        UserError: a folder cannot be read, or its shapes differ from the model's.
    """
    notes: list[str] = []
    main = next((path / n for n in ("discriminator", "encoder") if (path / n).is_dir()), path)
    encoder, rtd_head = load_discriminator(main)
    copy_weights(encoder, model.encoder, where=main)
    if model.rtd_head is None:
        _, mlm_head = load_generator(main)
        if mlm_head is None:
            notes.append(f"{main}: has no vocabulary head, it starts at random")
        else:
            copy_weights(mlm_head, model.mlm_head, where=main)
        return notes
    if rtd_head is None:
        notes.append(f"{main}: has no head for replaced tokens, it starts at random")
    else:
        copy_weights(rtd_head, model.rtd_head, where=main)
    if (path / "generator").is_dir():
        generator, mlm_head = load_generator(path / "generator")
        copy_weights(generator, model.generator, where=path / "generator")
        if mlm_head is not None:
            copy_weights(mlm_head, model.mlm_head, where=path / "generator")
    else:
        notes.append(f"{path}: has no generator folder; the generator's layers start at random")
    return notes


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
