"""The standard counting rule: matrix products of a forward pass, 2mn for each vector."""

from collections.abc import Mapping

from amber.cost.method import (
    BASELINE_HEAD,
    COPY_GATE,
    ENERGY_HEAD,
    MLM_HEAD,
    RTD_HEAD,
    VOCABULARY_HEAD,
    Head,
    Passage,
    Where,
)
from amber.model.config import EncoderConfig

TRAIN_FACTOR = 3
"""Training over forward: one product forward, two backward."""


def passage_products(
    config: EncoderConfig, passage: Passage, *, length: int, places: Mapping[Where, int]
) -> dict[str, int]:
    """Count one network's forward pass with its heads, by part.

    Args:
        config: its shape; of one tower where there are two.
        passage: its heads, and where they are computed.
        length: tokens in the sequence.
        places: how many positions each of the places has.
    """
    times = 2 if passage.network == "towers" else 1
    parts = {name: times * n for name, n in body_products(config, length=length).items()}
    heads = {
        name: places[where] * head_products(config, name) for name, where in passage.heads.items()
    }
    return parts | heads


def body_products(config: EncoderConfig, *, length: int) -> dict[str, int]:
    """Count the forward pass from the ids to the last hidden state, by part."""
    hidden, layers = config.hidden_size, config.num_hidden_layers
    num_matrices = 3 if config.body == "modern" else 2  # the gate is a third one
    parts: dict[str, int] = {}
    if config.embedding_size != hidden:
        parts["embedding projection"] = length * 2 * config.embedding_size * hidden
    parts["attention projections"] = layers * length * 4 * 2 * hidden * hidden
    parts["attention scores"] = layers * length * 2 * 2 * length * hidden
    parts["feed-forward"] = layers * length * num_matrices * 2 * hidden * config.intermediate_size
    return parts


def head_products(config: EncoderConfig, head: Head) -> int:
    """Count a head at one position."""
    hidden, width = config.hidden_size, config.embedding_size
    square, one, table = 2 * hidden * hidden, 2 * hidden, 2 * width * config.vocab_size
    return {
        RTD_HEAD: square + one,
        ENERGY_HEAD: square + one,
        MLM_HEAD: 2 * hidden * width + table,
        VOCABULARY_HEAD: 2 * 2 * hidden * width + table,  # the states of two towers
        COPY_GATE: one,
        BASELINE_HEAD: one,
    }[head]
