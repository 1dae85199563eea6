"""The learning rate of each layer under a recipe."""

from dataclasses import dataclass

from amber.downstream.config import FinetuneConfig
from amber.downstream.points import model_folder, read_shape
from amber.downstream.recipe import SIZES, check_decay, nearest_size
from amber.optim.layer_rates import layer_names, layer_rates


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerRate:
    """The peak rate of one layer."""

    layer: str
    share: float
    """Of the head's rate."""

    learning_rate: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """The peak rates of all layers, from the embeddings to the head."""

    model: str
    size: str
    """Tiny, Small, Base or Large: whose recipe it takes."""

    learning_rate: float
    layer_decay: float
    layer_decay_rule: str
    layers: tuple[LayerRate, ...]


def rates_of(config: FinetuneConfig) -> Rates:
    """Compute the rates; of the model only config.json is read.

    Raises:
        UserError: there is no model that amber can read.
    """
    folder = model_folder(config)
    shape, given = read_shape(folder), config.recipe
    size, num_layers = nearest_size(shape), shape.num_hidden_layers
    rate = given.learning_rate or SIZES[size].learning_rate
    decay = given.layer_decay or SIZES[size].layer_decay
    check_decay(decay, given.layer_decay_rule)
    shares = layer_rates(num_layers, decay, given.layer_decay_rule)
    return Rates(
        model=str(folder),
        size=size,
        learning_rate=rate,
        layer_decay=decay,
        layer_decay_rule=given.layer_decay_rule,
        layers=tuple(
            LayerRate(layer=name, share=share, learning_rate=rate * share)
            for name, share in zip(layer_names(num_layers), shares, strict=True)
        ),
    )
