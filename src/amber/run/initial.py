"""Start from trained weights: those of a model folder, of a run that holds two, of a checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from amber.config import read_toml
from amber.electra.config import Sharing
from amber.electra.networks import set_table
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.folder import (
    load_copy_gate,
    load_discriminator,
    load_generator,
    score_meaning,
)
from amber.model.towers import TwoTowers, load_towers
from amber.run.checkpoint import STATE, WEIGHTS, check, load_weights
from amber.tokens.tokenizer import fingerprint, load_tokenizer

UNSEEN = ("body", "num_attention_heads", "norm_eps", "rope_theta")
"""Settings of a network that the shapes of its weights do not show."""


def load_initial_weights(
    path: Path, model: PretrainingModel, *, tokenizer_fingerprint: str
) -> list[str]:
    """Copy weights into a model that was just built.

    A run folder gives both networks, and so does a checkpoint of a run of the same method. A single
    model folder gives the main encoder, with the tables that a generator shares, and its head where
    it has the right one; the generator's own layers then start at random. With two_stage it gives
    the generator, as which the discriminator starts later.

    Args:
        path: a model folder; a folder with `discriminator` or `encoder`, and `generator` or
            `towers`; or a checkpoint.
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
    notes: list[str] = []
    main = next((path / n for n in ("discriminator", "encoder") if (path / n).is_dir()), path)
    beside = next((path / n for n in ("generator", "towers") if (path / n).is_dir()), None)
    for folder in (main, beside):
        if folder is not None:
            found = fingerprint(load_tokenizer(folder))
            check_tokenizer(found, tokenizer_fingerprint, where=folder)
    if model.stage == "generator":
        folder = beside or main
        encoder, mlm_head = load_generator(folder)
        assert isinstance(model.generator, Encoder)
        copy_encoder(encoder, model.generator, where=folder)
        copy_head(mlm_head, model.mlm_head, "for the vocabulary", where=folder, notes=notes)
        return notes
    if model.method.is_generator_trained and model.generator is not model.encoder:
        load_second(beside, model, main=main, notes=notes, path=path)
    load_main(main, model, notes=notes)
    if model.method.is_shared and model.generator is model.encoder:
        head = load_generator(beside)[1] if beside else None
        copy_head(head, model.mlm_head, "for the vocabulary", where=beside or path, notes=notes)
    return notes


def load_main(main: Path, model: PretrainingModel, *, notes: list[str]) -> None:
    """Fill the main encoder and its heads.

    Raises:
        UserError: as `load_initial_weights`.
    """
    encoder, rtd_head = load_discriminator(main)
    copy_encoder(encoder, model.encoder, where=main)
    if model.rtd_head is not None:
        wanted = "energy" if model.method.objective == "electric" else "replaced"
        what = "for energies" if wanted == "energy" else "for replaced tokens"
        rtd_head = rtd_head if score_meaning(main) == wanted else None
        copy_head(rtd_head, model.rtd_head, what, where=main, notes=notes)
        return
    _, head = load_generator(main)
    target = model.vocabulary_head or model.mlm_head
    copy_head(head, target, "for the vocabulary", where=main, notes=notes)
    if model.copy_gate is not None:
        gate = load_copy_gate(main, model.encoder.config)
        copy_head(gate, model.copy_gate, "for copying", where=main, notes=notes)


def load_second(
    folder: Path | None, model: PretrainingModel, *, main: Path, notes: list[str], path: Path
) -> None:
    """Fill the generator or the towers; without a folder, its tables alone.

    Raises:
        UserError: as `load_initial_weights`.
    """
    second = model.generator
    is_towers = isinstance(second, TwoTowers)
    tables = second.left.embeddings if is_towers else second.embeddings if second else None
    if folder is None or is_towers != (folder.name == "towers"):
        what = "towers" if is_towers else "generator"
        notes.append(f"{path}: has no {what} folder; the {what}'s layers start at random")
        if tables is not None and model.method.sharing == "gdes":
            encoder, _ = load_discriminator(main)
            check_table(encoder.embeddings.table, tables, where=main)
            set_table(tables, encoder.embeddings.table)
        return
    if is_towers:
        towers = load_towers(folder)
        check_shared(towers.left.embeddings, main, model.method.sharing, where=folder)
        check_unseen(settings_of(towers.left), second.left.config, where=folder)
        copy_weights(towers, second, where=folder)
        return
    assert isinstance(second, Encoder)
    generator, mlm_head = load_generator(folder)
    check_shared(generator.embeddings, main, model.method.sharing, where=folder)
    copy_encoder(generator, second, where=folder)
    copy_head(mlm_head, model.mlm_head, "for the vocabulary", where=folder, notes=notes)


def check_table(table: Tensor, embeddings: Embeddings, *, where: Path) -> None:
    """Refuse a token table of another size.

    Raises:
        UserError: with both sizes.
    """
    if table.shape != embeddings.table.shape:
        raise UserError(
            f"{where}: its token table is {tuple(table.shape)}, the generator's "
            f"{tuple(embeddings.table.shape)}: leave out generator.width_fraction"
        )


def check_shared(embeddings: Embeddings, main: Path, sharing: Sharing, *, where: Path) -> None:
    """Refuse two networks with different tables where the model has one for both.

    Raises:
        UserError: with both folders.
    """
    if sharing not in ("embeddings", "tokens"):
        return
    ours, _ = load_discriminator(main)
    tables, others = dict(ours.embeddings.named_parameters()), dict(embeddings.named_parameters())
    names = tables.keys() if sharing == "embeddings" else {"token.weight"}
    if not names <= others.keys() or any(not others[n].equal(tables[n]) for n in names):
        raise UserError(
            f"{where}: has other tables than {main}, but the two networks share theirs here: "
            "start from one of the two folders alone, or set sharing to none"
        )


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
    check_unseen(settings_of(source), target.config, where=where)
    if target.embeddings.base[0] is None:
        copy_weights(source, target, where=where)
        return
    check_table(source.embeddings.table, target.embeddings, where=where)
    set_table(target.embeddings, source.embeddings.table)
    copy_weights(source, target, where=where, but=("embeddings.token.", "embeddings.delta."))


def settings_of(network: Encoder) -> dict[str, Any]:
    """Return the settings that the shapes of the weights do not show."""
    return {name: getattr(network.config, name) for name in UNSEEN}


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
    source: nn.Module | None,
    target: nn.Module | None,
    what: str,
    *,
    where: Path,
    notes: list[str],
) -> None:
    """Copy a head, or note that it starts at random."""
    assert target is not None
    if source is None:
        notes.append(f"{where}: has no head {what}, it starts at random")
    else:
        copy_weights(source, target, where=where)


def copy_weights(
    source: nn.Module, target: nn.Module, *, where: Path, but: tuple[str, ...] = ()
) -> None:
    """Copy all weights by name.

    Args:
        source: as it was read.
        target: to be filled.
        where: the folder, for messages.
        but: how the names begin that are left out.

    Raises:
        UserError: a name or a shape differs.
    """
    weights, places = (
        {name: weight for name, weight in part.named_parameters() if not name.startswith(but)}
        for part in (source, target)
    )
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
