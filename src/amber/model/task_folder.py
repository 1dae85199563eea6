"""Folders of fine-tuned networks: written, read, and started from pre-trained folders.

A network for which `transformers` has a class is a folder of that class, of the same model type as
the folder it came from. Of the official code's other heads `transformers` reads the encoder; the
head lies in a file of its own.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from torch import Tensor, nn

from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.files import fitting_tokenizer, place_folder, read_folder, read_settings
from amber.model.folder import (
    OnIgnored,
    build_encoder,
    check_rest,
    fill,
    load_plain,
    plain_weights,
    to_file,
)
from amber.model.hugging_face import (
    ENCODER_NAMES,
    ENCODER_PREFIX,
    from_settings,
    to_settings,
    weight_names,
)
from amber.model.init import initialize
from amber.model.task_heads import TaskModel
from amber.model.task_shape import (
    HeadStyle,
    Pooling,
    TaskKind,
    TaskShape,
    head_names,
    read_pooling,
    task_settings,
    task_shape,
)
from amber.tokens.tokenizer import special_ids

TASK_HEAD: Final = "task_head.safetensors"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedModel:
    """A network for a task, started from a pre-trained folder."""

    model: TaskModel
    num_loaded: int
    """Weights (tensors) of the network that came from the folder."""
    num_weights: int
    new: tuple[str, ...]
    """Weights that start anew."""
    ignored: tuple[str, ...]
    """Weights of the folder that were not needed, by their names there."""

    @property
    def share(self) -> float:
        """Part of the network's weights that came from the folder, in [0, 1]."""
        return self.num_loaded / self.num_weights


def save_task_model(
    folder: Path,
    model: TaskModel,
    *,
    tokenizer_dir: Path,
    card: str,
    details: dict[str, Any] | None = None,
) -> None:
    """Write a fine-tuned network.

    Args:
        folder: replaced if it exists.
        model: in any precision; written as float32.
        tokenizer_dir: a tokenizer, written again with the model's inputs and longest sequence.
        card: content of README.md; for a head that `transformers` has no class for, a section on
            that follows.
        details: any JSON values to keep, which `task_details` returns.

    Raises:
        UserError: the tokenizer has more entries than the token table.
    """
    shape, config = model.shape, model.encoder.config
    tokenizer = fitting_tokenizer(tokenizer_dir, config)
    ids = special_ids(tokenizer)
    settings = to_settings(
        config,
        architecture=shape.architecture,
        special={"pad": ids.pad, "cls": ids.cls, "sep": ids.sep},
    )
    settings = task_settings(shape, settings, details or {})
    weights = to_file(model.encoder, shape.model_type, ENCODER_NAMES[shape.model_type])
    files = {"model.safetensors": weights}
    if shape.has_class:
        weights |= to_file(model.head, shape.model_type, head_names(shape))
    else:
        files[TASK_HEAD] = plain_weights(model.head)
        card += head_note(shape)
    place_folder(folder, files, settings, tokenizer, config, card)


def head_note(shape: TaskShape) -> str:
    """Say in a model card what `transformers` does not read."""
    return (
        "\n## The head\n\n"
        f"`transformers` has no class for this head for {shape.kind}, which follows the official "
        f"ELECTRA code: `{shape.architecture}` reads the encoder alone, and the head is in "
        f"`{TASK_HEAD}`, which amber reads.\n"
    )


def load_task_model(folder: Path, *, on_ignored: OnIgnored | None = None) -> TaskModel:
    """Read a fine-tuned network: ours, or a task class of ELECTRA, BERT or ModernBERT.

    Args:
        folder: its config.json says which task it is for.
        on_ignored: is told the names of the weights that were not needed, if any.

    Raises:
        UserError: a file is missing or damaged, the folder is not fine-tuned, or the model has an
            option that our networks do not have.
    """
    settings, weights, where = read_folder(folder)
    config_path = f"{folder / 'config.json'}"
    config = from_settings(settings, where=config_path)
    shape = task_shape(settings, where=config_path)
    model = TaskModel(build_encoder(weights, config, shape.model_type, where=where), shape)
    if shape.has_class:
        fill(model.head, weights, shape.model_type, head_names(shape), where=where)
    else:
        load_plain(folder / TASK_HEAD, model.head)
    check_rest(weights, where=where, on_ignored=on_ignored)
    return model


def task_details(folder: Path) -> dict[str, Any]:
    """Return what was kept with a fine-tuned network; nothing for folders from elsewhere.

    Raises:
        UserError: config.json is missing or damaged.
    """
    return read_settings(folder).get("amber", {}).get("task", {}).get("details", {})


def open_for_task(
    folder: Path,
    *,
    kind: TaskKind,
    labels: tuple[str, ...] = (),
    head: HeadStyle = "hugging_face",
    seed: int,
    hidden_dropout: float = 0.1,
    attention_dropout: float = 0.1,
    head_dropout: float = 0.1,
    pooling: Pooling | None = None,
    is_pretrained: bool = True,
) -> OpenedModel:
    """Start a network for a task from a folder: pre-trained, or fine-tuned for another task.

    The head's layers before the last start from those of the folder, where it has them under the
    same names, as `transformers` does: BERT's pooler, the dense layer and norm of ModernBERT's
    heads, and the dense layer of a fine-tuned ELECTRA. The last layer always starts anew.

    Args:
        folder: of ELECTRA, BERT, or ModernBERT with global attention; ours or from elsewhere.
        kind: of the task.
        labels: names in the order of their numbers.
        head: as in `transformers`, or as in the official code.
        seed: of the weights that start anew.
        hidden_dropout: of the encoder, in place of the folder's.
        attention_dropout: of the encoder, in place of the folder's.
        head_dropout: of the head.
        pooling: the vector of a text; by default as config.json says, else that of [CLS].
        is_pretrained: False starts all weights anew: the same network without pre-training.

    Raises:
        UserError: as `load_discriminator`, or settings that no head can have.
    """
    settings, weights, where = read_folder(folder)
    config = from_settings(settings, where=f"{folder / 'config.json'}")
    config = replace(config, hidden_dropout=hidden_dropout, attention_dropout=attention_dropout)
    model_type = settings["model_type"]
    is_pooled = kind in ("classification", "multilabel", "regression") and head == "hugging_face"
    if pooling is None and model_type == "modernbert" and is_pooled:
        pooling = read_pooling(settings, where=f"{folder / 'config.json'}")
    shape = TaskShape(
        model_type=model_type,
        kind=kind,
        labels=labels,
        head=head,
        dropout=head_dropout,
        pooling=pooling or "cls",
    )
    reused: set[str] = set()
    ignored: list[str] = []
    if is_pretrained:
        model = TaskModel(build_encoder(weights, config, model_type, where=where), shape)
        initialize(model.head, config, seed=seed)
        if head == "hugging_face":
            reused = reuse_head(model.head, shape, weights, where=where)
        check_rest(weights, where=where, on_ignored=ignored.extend)
    else:
        model = TaskModel(Encoder(config, Embeddings(config)), shape)
        initialize(model, config, seed=seed)
    names = list(model.state_dict())
    new = [n for n in names if not is_pretrained or (n.startswith("head.") and n not in reused)]
    return OpenedModel(
        model=model,
        num_loaded=len(names) - len(new),
        num_weights=len(names),
        new=tuple(new),
        ignored=tuple(ignored),
    )


def reuse_head(
    head: nn.Module, shape: TaskShape, weights: dict[str, Tensor], *, where: Path
) -> set[str]:
    """Fill the layers of a head before its last from a folder that has all of their weights.

    What is taken is removed from `weights`.

    Returns:
        The names of the weights filled, as in the network.
    """
    layers = {name: part for name, part in head.named_children() if name in ("dense", "norm")}
    before, table = nn.ModuleDict(layers), head_names(shape)
    for name in before.state_dict():
        (full,) = weight_names(shape.model_type, name, table)
        bare = full.removeprefix(ENCODER_PREFIX[shape.model_type])
        if full not in weights and bare in weights:  # a plain BertModel has no prefix
            weights[full] = weights.pop(bare)
        if full not in weights:
            return set()
    fill(before, weights, shape.model_type, table, where=where)
    return {f"head.{name}" for name in before.state_dict()}
