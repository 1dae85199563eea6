"""Model folders as `transformers` reads and writes them, without importing it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.files import read_folder, read_weights, write_folder
from amber.model.heads import MLMHead, RTDHead, UnitHead
from amber.model.hugging_face import (
    ENCODER_NAMES,
    ENCODER_PREFIX,
    ENERGY_LABELS,
    MLM_NAMES,
    RTD_LABELS,
    RTD_NAMES,
    TIED_DECODER,
    Meaning,
    from_settings,
    weight_names,
)

COPY_GATE: Final = "copy_gate.safetensors"
FOREIGN_HEADS = (
    "pooler.",
    "bert.pooler.",
    "cls.",
    "generator_predictions.",
    "generator_lm_head.",
    "discriminator_predictions.",
    "head.",
    "decoder.",
    "classifier.",
    "qa_outputs.",
)
"""Beginnings of names that belong to heads other than the one asked for."""

OnIgnored = Callable[[list[str]], None]


def save_discriminator(
    folder: Path,
    encoder: Encoder,
    head: RTDHead,
    *,
    tokenizer_dir: Path,
    card: str,
    meaning: Meaning = "replaced",
) -> None:
    """Write an encoder with its head for replaced tokens, or for energies.

    The bert body becomes `ElectraForPreTraining`. The modern one becomes
    `ModernBertForTokenClassification` with the labels original and replaced: the first gets the
    score 0, so that the softmax over both equals the sigmoid of our score. There is no class of
    `transformers` for energies: these two give them as their scores.

    Args:
        folder: replaced if it exists.
        encoder: in any precision; written as float32.
        head: of the same shape.
        tokenizer_dir: a tokenizer, written again with the model's inputs and longest sequence.
        card: content of README.md.
        meaning: of the head's score.

    Raises:
        UserError: the tokenizer has more entries than the token table.
    """
    is_bert = encoder.config.body == "bert"
    model_type = "electra" if is_bert else "modernbert"
    weights = to_file(encoder, model_type, ENCODER_NAMES[model_type])
    weights |= to_file(head, model_type, RTD_NAMES[model_type])
    if not is_bert:
        for name in ("classifier.weight", "classifier.bias"):
            weights[name] = torch.cat([torch.zeros_like(weights[name]), weights[name]])
    architecture = "ElectraForPreTraining" if is_bert else "ModernBertForTokenClassification"
    write_folder(
        folder, weights, encoder.config, architecture, tokenizer_dir, card, meaning=meaning
    )


def save_generator(
    folder: Path,
    encoder: Encoder,
    head: MLMHead,
    *,
    tokenizer_dir: Path,
    card: str,
    copy_gate: UnitHead | None = None,
) -> None:
    """Write an encoder with its vocabulary head.

    The class is `ElectraForMaskedLM` or `ModernBertForMaskedLM`. The output
    layer is the token table and is stored once, as `transformers` does.

    Args:
        folder: replaced if it exists.
        encoder: in any precision; written as float32.
        head: of the same shape.
        tokenizer_dir: a tokenizer, written again with the model's inputs and longest sequence.
        card: content of README.md.
        copy_gate: of All-Tokens MLM, for which `transformers` has no class: written to a file of
            its own.

    Raises:
        UserError: the tokenizer has more entries than the token table.
    """
    is_bert = encoder.config.body == "bert"
    model_type = "electra" if is_bert else "modernbert"
    weights = to_file(encoder, model_type, ENCODER_NAMES[model_type])
    weights |= to_file(head, model_type, MLM_NAMES[model_type])
    architecture = "ElectraForMaskedLM" if is_bert else "ModernBertForMaskedLM"
    extras = None if copy_gate is None else {COPY_GATE: plain_weights(copy_gate)}
    write_folder(folder, weights, encoder.config, architecture, tokenizer_dir, card, extras=extras)


def plain_weights(module: nn.Module) -> dict[str, Tensor]:
    """Copy weights to float32 tensors under their own names."""
    return {
        name: weight.detach().to("cpu", torch.float32, copy=True).contiguous()
        for name, weight in module.named_parameters()
    }


def load_plain(path: Path, module: nn.Module) -> None:
    """Read weights under their own names into a module.

    Raises:
        UserError: the file is damaged, or is not of such a module.
    """
    weights, places = read_weights(path), dict(module.named_parameters())
    shapes = {name: weight.shape for name, weight in weights.items()}
    if shapes != {name: place.shape for name, place in places.items()}:
        raise UserError(f"{path}: is of another network than its config.json: copy it again")
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(weights[name])


def load_copy_gate(folder: Path, config: EncoderConfig) -> UnitHead | None:
    """Read the copy gate of All-Tokens MLM; None where there is none.

    Raises:
        UserError: its file is damaged.
    """
    if not (folder / COPY_GATE).is_file():
        return None
    gate = UnitHead(config)
    load_plain(folder / COPY_GATE, gate)
    return gate


def score_meaning(folder: Path) -> Meaning:
    """Return what the binary head of a model folder gives."""
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return settings.get("amber", {}).get("score", "replaced")


def load_discriminator(
    folder: Path, *, on_ignored: OnIgnored | None = None
) -> tuple[Encoder, RTDHead | None]:
    """Read an encoder and, if the folder has one, its head for replaced tokens.

    Args:
        folder: of ELECTRA, BERT, or ModernBERT with global attention; ours or from elsewhere.
        on_ignored: is told the names of the weights that were not needed, if any.

    Raises:
        UserError: a file is missing or damaged, a weight is missing, unknown or of another shape,
            or the model has an option that our networks do not have.
    """
    settings, weights, where = read_folder(folder)
    config = from_settings(settings, where=f"{folder / 'config.json'}")
    model_type = settings["model_type"]
    encoder = build_encoder(weights, config, model_type, where=where)
    head = None
    labels = {str(i): label for i, label in (settings.get("id2label") or {}).items()}
    is_ours = model_type == "modernbert" and "classifier.weight" in weights
    is_ours = is_ours and labels in (RTD_LABELS, ENERGY_LABELS)
    if is_ours:
        for name in ("classifier.weight", "classifier.bias"):
            original, replaced = weights[name].chunk(2)
            weights[name] = replaced - original
    if is_ours or (model_type == "electra" and has_any(weights, RTD_NAMES[model_type])):
        head = RTDHead(config)
        fill(head, weights, model_type, RTD_NAMES[model_type], where=where)
    check_rest(weights, where=where, on_ignored=on_ignored)
    return encoder, head


def load_generator(
    folder: Path, *, on_ignored: OnIgnored | None = None
) -> tuple[Encoder, MLMHead | None]:
    """Read an encoder and, if the folder has one, its vocabulary head.

    Args:
        folder: of ELECTRA, BERT, or ModernBERT with global attention; ours or from elsewhere.
        on_ignored: is told the names of the weights that were not needed, if any.

    Raises:
        UserError: as `load_discriminator`, or an output layer that differs from the token table.
    """
    settings, weights, where = read_folder(folder)
    config = from_settings(settings, where=f"{folder / 'config.json'}")
    model_type = settings["model_type"]
    encoder = build_encoder(weights, config, model_type, where=where)
    head = None
    names = MLM_NAMES[model_type]
    if f"{names['']}.bias" in weights:
        head = MLMHead(config)
        fill(head, weights, model_type, names, where=where)
        decoder = weights.pop(TIED_DECODER[model_type], None)
        if decoder is not None and not decoder.equal(encoder.embeddings.table):
            raise UserError(
                f"{where}: {TIED_DECODER[model_type]} differs from the token table: amber's "
                "vocabulary head shares that table, so this model cannot be read"
            )
        weights.pop("cls.predictions.decoder.bias", None)  # the same as cls.predictions.bias
    check_rest(weights, where=where, on_ignored=on_ignored)
    return encoder, head


def to_file(module: nn.Module, model_type: str, table: dict[str, str]) -> dict[str, Tensor]:
    """Copy weights to float32 tensors under the names of `transformers`."""
    found = {}
    for name, weight in module.state_dict().items():
        names = weight_names(model_type, name, table)
        for part_name, part in zip(names, weight.chunk(len(names)), strict=True):
            found[part_name] = part.detach().to("cpu", torch.float32, copy=True).contiguous()
    return found


def build_encoder(
    weights: dict[str, Tensor], config: EncoderConfig, model_type: str, *, where: Path
) -> Encoder:
    """Build an encoder and fill it; what it takes is removed from `weights`."""
    encoder = Encoder(config, Embeddings(config))
    prefix = ENCODER_PREFIX[model_type]
    first = weight_names(model_type, "embeddings.token.weight", ENCODER_NAMES[model_type])[0]
    if first not in weights and first.removeprefix(prefix) in weights:
        for name in [n for n in weights if not n.startswith(FOREIGN_HEADS)]:
            weights[prefix + name] = weights.pop(name)
    fill(encoder, weights, model_type, ENCODER_NAMES[model_type], where=where)
    weights.pop(f"{prefix}embeddings.position_ids", None)  # 0, 1, 2, ...: old versions store it
    return encoder


def has_any(weights: dict[str, Tensor], table: dict[str, str]) -> bool:
    """Tell whether a file has at least one weight of a head."""
    return any(name.startswith(tuple(f"{path}." for path in table.values())) for name in weights)


def fill(
    module: nn.Module,
    weights: dict[str, Tensor],
    model_type: str,
    table: dict[str, str],
    *,
    where: Path,
) -> None:
    """Move weights from a file's content into a module.

    Raises:
        UserError: a weight is missing or has another shape.
    """
    places = module.state_dict()
    names = {name: weight_names(model_type, name, table) for name in places}
    missing = [part for parts in names.values() for part in parts if part not in weights]
    if missing:
        raise UserError(f"{where}: {listed(missing)} missing: the file is not a whole model")
    filled = {}
    for name, parts in names.items():
        value = torch.cat([weights.pop(part) for part in parts])
        if not value.is_floating_point():
            raise UserError(
                f"{where}: {parts[0]} holds whole numbers ({value.dtype}), as quantised models do: "
                "give the model as it was before"
            )
        if value.shape != places[name].shape:
            raise UserError(
                f"{where}: {parts[0]} has shape {tuple(value.shape)}, config.json asks for "
                f"{tuple(places[name].shape)}: one of the two files is from another model"
            )
        filled[name] = value.float()
    module.load_state_dict(filled)


def check_rest(weights: dict[str, Tensor], *, where: Path, on_ignored: OnIgnored | None) -> None:
    """Report what belongs to other heads and refuse anything else.

    Raises:
        UserError: weights that no known model has.
    """
    unknown = sorted(name for name in weights if not name.startswith(FOREIGN_HEADS))
    if unknown:
        raise UserError(f"{where}: {listed(unknown)} unknown: config.json is of another model")
    if weights and on_ignored is not None:
        on_ignored(sorted(weights))


def listed(names: list[str]) -> str:
    """Name up to five weights."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more + (" is" if len(names) == 1 else " are")
