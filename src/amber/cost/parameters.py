"""How many parameters each part of the networks has, in closed form."""

from amber.cost.flops import Objective
from amber.model.config import EncoderConfig


def parameter_counts(
    main: EncoderConfig,
    generator: EncoderConfig | None,
    *,
    objective: Objective,
    is_sharing_tables: bool = True,
) -> dict[str, int]:
    """Count the parameters by part; the parts add up to what is trained and saved.

    Published sizes (14M, 110M, 335M) are the first two parts alone. The vocabulary head's last
    layer is the token table, so it adds its bias only.

    Args:
        main: the encoder that is kept: the discriminator, or the masked language model.
        generator: where replacements come from; None with `mlm`, and where no network proposes.
        objective: which head is on `main`: `rtd` binary, `mlm` vocabulary.
        is_sharing_tables: the generator has no tables and table norm of its own.
    """
    counts = {"embeddings": embedding_parameters(main), "encoder": encoder_parameters(main)}
    if objective == "mlm":
        return counts | {"MLM head": mlm_head_parameters(main)}
    counts["RTD head"] = rtd_head_parameters(main)
    if generator is None:
        return counts
    if not is_sharing_tables:
        counts["generator embeddings"] = embedding_parameters(generator)
    counts["generator encoder"] = encoder_parameters(generator)
    counts["generator MLM head"] = mlm_head_parameters(generator)
    return counts


def embedding_parameters(config: EncoderConfig) -> int:
    """Count the tables and the norm after them."""
    if config.body == "modern":
        return (config.vocab_size + 1) * config.embedding_size
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    return (rows + 2) * config.embedding_size


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


def mlm_head_parameters(config: EncoderConfig) -> int:
    """Count the vocabulary head without the token table that it shares."""
    hidden, width = config.hidden_size, config.embedding_size
    if config.body == "modern":
        return hidden * hidden + hidden + config.vocab_size
    return hidden * width + width + 2 * width + config.vocab_size
