"""How many parameters each part of the networks has, in closed form."""

from typing import Final

from amber.cost.method import (
    COPY_GATE,
    ENERGY_HEAD,
    MAIN_HEADS,
    MLM_HEAD,
    NETWORK_SOURCES,
    RTD_HEAD,
    Algorithm,
    Objective,
    Sharing,
    Source,
    check_method,
)
from amber.model.config import EncoderConfig

FROZEN: Final = "frozen"
"""First word of the parts that are not trained."""


def parameter_counts(
    main: EncoderConfig,
    generator: EncoderConfig | None,
    *,
    objective: Objective,
    source: Source = "generator",
    sharing: Sharing = "embeddings",
    algorithm: Algorithm = "joint",
) -> dict[str, int]:
    """Count the parameters by part; each parameter is in one part.

    Published sizes (14M, 110M, 335M) are the first two parts alone. A vocabulary head's last
    layer is the token table of its network, so it adds its bias only.

    Args:
        main: the encoder that is kept: the discriminator, or the masked language model.
        generator: the network that proposes replacements (one of the towers, where there are two);
            None with `mlm`, and where no network proposes.
        objective: which head is on `main`.
        source: where replacements come from; the parts of a frozen network begin with `FROZEN`,
            and it shares nothing.
        sharing: what `main` and the generator, or the towers, have in common; the two towers share
            their tables always.
        algorithm: `two_stage`: nothing is shared, since the generator is a copy of what `main`
            started from; `adversarial`: the generator has a second head.

    Returns:
        The parts, those of `main` first.

    Raises:
        ValueError: choices that do not fit, or one network for two shapes.
    """
    has_generator = generator is not None
    check_method(objective, source, algorithm, has_generator=has_generator)
    counts = {"embeddings": embedding_parameters(main), "encoder": encoder_parameters(main)}
    counts |= {head: _main_head_parameters(main, head) for head in MAIN_HEADS[objective]}
    if generator is None or source not in NETWORK_SOURCES:
        return counts
    if source == "frozen":
        parts = _generator_parts(generator, "none")
        return counts | {f"{FROZEN} {part}": count for part, count in parts.items()}
    if algorithm == "two_stage":
        sharing = "none"
    if sharing == "gdes":
        counts["embeddings delta"] = main.vocab_size * main.embedding_size
    if source == "two_tower":
        return counts | _tower_parts(generator, sharing)
    if sharing == "all" and generator != main:
        raise ValueError("with sharing all, the generator has the shape of the main encoder")
    counts |= _generator_parts(generator, sharing)
    if algorithm == "adversarial":
        counts["generator baseline head"] = unit_head_parameters(generator)
    return counts


def embedding_parameters(config: EncoderConfig) -> int:
    """Count the tables and the norm after them."""
    return config.vocab_size * config.embedding_size + place_parameters(config)


def place_parameters(config: EncoderConfig) -> int:
    """Count the tables of positions and segments and the norm after them, which modern has only."""
    if config.body == "modern":
        return config.embedding_size
    return (config.max_position_embeddings + config.type_vocab_size + 2) * config.embedding_size


def encoder_parameters(config: EncoderConfig) -> int:
    """Count what lies between the tables and the heads, the projection of the tables included."""
    hidden, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    if config.body == "modern":
        matrices = layers * (4 * hidden * hidden + 3 * hidden * inner)
        return matrices + 2 * layers * hidden  # two norms a layer: the first lacks one, one ends
    attention = 4 * (hidden * hidden + hidden)
    feed_forward = hidden * inner + inner + inner * hidden + hidden
    count = layers * (attention + feed_forward + 2 * 2 * hidden)
    if config.embedding_size != hidden:
        count += config.embedding_size * hidden + hidden
    return count


def rtd_head_parameters(config: EncoderConfig) -> int:
    """Count the binary head: a square layer and one output; modern: a norm and no first bias."""
    hidden = config.hidden_size
    return hidden * hidden + hidden + hidden + 1


def mlm_head_parameters(config: EncoderConfig, *, num_inputs: int = 1) -> int:
    """Count the vocabulary head without the token table that it shares.

    Args:
        config: of the network.
        num_inputs: hidden states that it reads together: two towers have two.
    """
    width = config.embedding_size
    biases = width if config.body == "modern" else 3 * width  # the norm alone, or all
    return num_inputs * config.hidden_size * width + biases + config.vocab_size


def unit_head_parameters(config: EncoderConfig) -> int:
    """Count a head of one unit: the copy gate, or the baseline."""
    return config.hidden_size + 1


def _main_head_parameters(config: EncoderConfig, head: str) -> int:
    """Count one of the heads that the main encoder may have."""
    return {
        RTD_HEAD: rtd_head_parameters,
        ENERGY_HEAD: rtd_head_parameters,
        MLM_HEAD: mlm_head_parameters,
        COPY_GATE: unit_head_parameters,
    }[head](config)


def _generator_parts(generator: EncoderConfig, sharing: Sharing) -> dict[str, int]:
    """Count what the generator has of its own."""
    parts = _own_tables("generator", generator, sharing)
    if sharing != "all":
        parts["generator encoder"] = encoder_parameters(generator)
    parts["generator MLM head"] = mlm_head_parameters(generator)
    return parts


def _tower_parts(tower: EncoderConfig, sharing: Sharing) -> dict[str, int]:
    """Count what the two towers have of their own."""
    if sharing == "all":
        raise ValueError("two towers see one side each, so they are not the main encoder")
    parts = _own_tables("tower", tower, sharing)
    parts["tower encoders"] = 2 * encoder_parameters(tower)
    parts["tower vocabulary head"] = mlm_head_parameters(tower, num_inputs=2)
    return parts


def _own_tables(network: str, config: EncoderConfig, sharing: Sharing) -> dict[str, int]:
    """Count the tables that a network has of its own."""
    if sharing in ("embeddings", "all"):
        return {}
    if sharing == "none":
        return {f"{network} embeddings": embedding_parameters(config)}
    name = "norm" if config.body == "modern" else "positions, segments, norm"
    return {f"{network} {name}": place_parameters(config)}
