"""The recipe of fine-tuning with every value filled in, by the size of the model and the task.

Clark et al. 2020, appendix B and table 7, for the sizes that the paper has; for smaller ones our
own measurements (docs/results/finetune.md). No torch here.
"""

from dataclasses import dataclass, fields
from typing import Final, Literal, NamedTuple

from amber.downstream.config import Head, RecipeConfig
from amber.errors import UserError
from amber.model.config import Body, EncoderConfig
from amber.model.task_shape import Pooling
from amber.optim.config import OptimConfig
from amber.tasks.example import Kind

Size = Literal["Tiny", "Small", "Base", "Large"]


class SizeRecipe(NamedTuple):
    """What was found best for a size, and the shape that it was found for."""

    learning_rate: float
    layer_decay: float
    layers: int
    hidden_size: int


SIZES: Final[dict[Size, SizeRecipe]] = {
    "Tiny": SizeRecipe(1e-3, 1.0, 6, 192),
    "Small": SizeRecipe(3e-4, 0.8, 12, 256),
    "Base": SizeRecipe(1e-4, 0.8, 12, 768),
    "Large": SizeRecipe(5e-5, 0.9, 24, 1024),
}
"""Tiny is the preset of that name; the others are the paper's."""
LENGTHS: Final[dict[Kind, int]] = {"tagging": 256, "qa": 512}
"""Tokens read at most; 128 for texts (the official code's)."""
TEXT_KINDS: Final = ("classification", "multilabel", "regression")
QUESTION_STRIDE: Final = 128
SHORTEST_SPECIAL: Final = 3
"""[CLS] and two [SEP] around a pair."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """As `RecipeConfig`, without anything left open but what this kind of task does not have."""

    size: Size
    """Of `SIZES`, the one that this model is nearest to."""

    learning_rate: float
    layer_decay: float
    layer_decay_rule: Literal["paper", "official"]
    weight_decay: float
    warmup_fraction: float
    epochs: int
    batch_size: int
    micro_size: int
    length: int
    stride: int | None
    max_question: int | None
    max_answer: int | None
    hidden_dropout: float
    attention_dropout: float
    head_dropout: float | None
    pooling: Pooling | None
    max_grad_norm: float
    bias_correction: bool
    both_orders: bool | None

    @property
    def optim(self) -> OptimConfig:
        """The settings of AdamW and its schedule."""
        return OptimConfig(
            learning_rate=self.learning_rate,
            warmup_fraction=self.warmup_fraction,
            weight_decay=self.weight_decay,
            bias_correction=self.bias_correction,
            max_grad_norm=self.max_grad_norm,
        )


def nearest_size(shape: EncoderConfig) -> Size:
    """Find the size whose layers hold the most similar number of weights.

    The weights of the layers grow as layers * width^2; compared is their ratio.
    """
    weights = shape.num_hidden_layers * shape.hidden_size**2

    def distance(size: Size) -> float:
        other = SIZES[size].layers * SIZES[size].hidden_size ** 2
        return max(weights / other, other / weights)

    return min(SIZES, key=distance)


def fill_recipe(
    given: RecipeConfig,
    *,
    kind: Kind,
    epochs: int,
    shape: EncoderConfig,
    head: Head,
    is_unordered: bool = False,
    pooling: Pooling = "cls",
) -> Recipe:
    """Fill in what was not given, and refuse what has no effect on this task.

    Args:
        given: the settings.
        kind: of the task.
        epochs: of the task.
        shape: of the model.
        head: of the network.
        is_unordered: the order of the task's pairs means nothing.
        pooling: the model's, where none is given.

    Raises:
        UserError: a setting without effect, or longer sequences than the model reads.
    """
    for name, why in idle_settings(
        given, kind=kind, head=head, body=shape.body, is_unordered=is_unordered
    ).items():
        raise UserError(f"recipe.{name} has no effect {why}: leave it out")
    has_dropout, is_pooled = (
        has_head_dropout(kind, head, shape.body),
        has_pooling(kind, head, shape.body),
    )
    size = nearest_size(shape)
    longest = shape.max_position_embeddings
    if given.length is not None and given.length > longest:
        raise UserError(
            f"recipe.length is {given.length}, and the model reads {longest} tokens at most: "
            "lower it"
        )
    length = given.length or min(LENGTHS.get(kind, 128), longest)
    is_qa = kind == "qa"
    layer_decay = given.layer_decay or SIZES[size].layer_decay
    check_decay(layer_decay, given.layer_decay_rule)
    values = {part.name: getattr(given, part.name) for part in fields(given)}
    return Recipe(
        **values
        | {
            "size": size,
            "learning_rate": given.learning_rate or SIZES[size].learning_rate,
            "layer_decay": layer_decay,
            "epochs": given.epochs or epochs,
            "length": length,
            "stride": given.stride or usual_stride(kind, length, max_question=given.max_question),
            "max_question": given.max_question if is_qa else None,
            "max_answer": given.max_answer if is_qa else None,
            "head_dropout": given.head_dropout if has_dropout else None,
            "pooling": (given.pooling or pooling) if is_pooled else None,
            "both_orders": given.both_orders if is_unordered else None,
        }
    )


def check_decay(decay: float, rule: str) -> None:
    """Refuse a rule for a decay that there is none of.

    Raises:
        UserError: the rule is not the default.
    """
    if decay == 1 and rule != "paper":
        raise UserError(
            "recipe.layer_decay_rule has no effect while the layer decay is 1, as it is for models "
            "near tiny: leave it out, or give recipe.layer_decay"
        )


def usual_stride(kind: Kind, length: int, *, max_question: int) -> int | None:
    """Return the tokens from one window to the next; None of a kind whose long texts are cut."""
    if kind == "qa":
        return max(1, min(QUESTION_STRIDE, length - max_question - SHORTEST_SPECIAL))
    return max(1, length // 2) if kind == "tagging" else None


def has_head_dropout(kind: Kind, head: Head, body: Body) -> bool:
    """Whether the head drops some of what its output layer reads."""
    if head == "official":
        return kind not in ("tagging", "qa")
    return kind != "qa" or body == "modern"


def has_pooling(kind: Kind, head: Head, body: Body) -> bool:
    """Whether the head can take the mean over the tokens."""
    return kind in TEXT_KINDS and head == "hf" and body == "modern"


def idle_settings(
    given: RecipeConfig, *, kind: Kind, head: Head, body: Body, is_unordered: bool
) -> dict[str, str]:
    """Find the settings that were given and change nothing for this task, and say why."""
    has_dropout = has_head_dropout(kind, head, body)
    rules = (
        (("max_question", "max_answer"), kind == "qa", f"for {kind}"),
        (("stride",), kind in ("tagging", "qa"), f"for {kind}, whose long texts are cut"),
        (("both_orders",), is_unordered, "on a task without pairs that mean the same turned round"),
        (
            ("pooling",),
            has_pooling(kind, head, body),
            f"on this head for {kind}: ModernBERT's for texts alone has it",
        ),
        (("head_dropout",), has_dropout, f"on this head for {kind}, which has no dropout"),
    )
    defaults = {part.name: part.default for part in fields(RecipeConfig)}
    return {
        name: why
        for names, is_used, why in rules
        for name in names
        if not is_used and getattr(given, name) != defaults[name]
    }
