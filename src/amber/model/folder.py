"""Model folders as `transformers` reads and writes them, without importing it."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.files import read_folder, write_folder
from amber.model.heads import MLMHead, RTDHead
from amber.model.hugging_face import (
    ENCODER_NAMES,
    ENCODER_PREFIX,
    MLM_NAMES,
    RTD_LABELS,
    RTD_NAMES,
    TIED_DECODER,
    from_settings,
    weight_names,
)

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
    folder: Path, encoder: Encoder, head: RTDHead, *, tokenizer_dir: Path, card: str
) -> None:
    """Write an encoder with its head for replaced tokens.

    The bert body becomes `ElectraForPreTraining`. The modern one becomes
    `ModernBertForTokenClassification` with the labels original and replaced: the first gets the
    score 0, so that the softmax over both equals the sigmoid of our score.

    Args:
        folder: replaced if it exists.
        encoder: in any precision; written as float32.
        head: of the same shape.
        tokenizer_dir: a tokenizer, written again with the model's inputs and longest sequence.
        card: content of README.md.

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
    write_folder(folder, weights, encoder.config, architecture, tokenizer_dir, card)


def save_generator(
    folder: Path, encoder: Encoder, head: MLMHead, *, tokenizer_dir: Path, card: str
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

    Raises:
        UserError: the tokenizer has more entries than the token table.
    """
    is_bert = encoder.config.body == "bert"
    model_type = "electra" if is_bert else "modernbert"
    weights = to_file(encoder, model_type, ENCODER_NAMES[model_type])
    weights |= to_file(head, model_type, MLM_NAMES[model_type])
    architecture = "ElectraForMaskedLM" if is_bert else "ModernBertForMaskedLM"
    write_folder(folder, weights, encoder.config, architecture, tokenizer_dir, card)


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
    is_ours = model_type == "modernbert" and "classifier.weight" in weights and labels == RTD_LABELS
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
        value = torch.cat([weights.pop(part) for part in parts]).float()
        if value.shape != places[name].shape:
            raise UserError(
                f"{where}: {parts[0]} has shape {tuple(value.shape)}, config.json asks for "
                f"{tuple(places[name].shape)}: one of the two files is from another model"
            )
        filled[name] = value
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
