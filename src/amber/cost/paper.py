"""What training costs by the rule of the ELECTRA paper's own script, and its published figures.

The rule (Clark et al. 2020, appendix E): every mathematical operation counts as one, so a product
with an m x n matrix is 2mn; the backward pass costs as much as the forward pass, so training is
twice the forward pass; look-ups are products with one-hot vectors; the vocabulary head is computed
at 0.15625 of the positions whatever the share of masks. Element-wise work is counted, the
optimiser, sampling and the binary loss are not. Two quirks are kept because the published figures
contain them: the LayerNorm after attention costs 5 for a token instead of 5 for each unit, and the
vocabulary bias is free. Budgets and utilisation use the other rule, in `amber.cost.products`.

The script knows one objective with a generator, and masked language models. Where it is silent:

- a head at the chosen positions is counted at the script's share of the positions, whatever it is
  (`rtd_masked`, `replace_mlm`, the baseline of the adversarial algorithm);
- a head over the text is counted at all positions, [CLS] and [SEP] too (`all_tokens_mlm`, the
  towers), with a softmax and a target wherever the vocabulary is scored;
- one unit on top of a network costs its product, 2 for each unit of the width, as the last unit of
  the discriminator's head does; its sigmoid, and what is mixed or compared with it, are free, as
  the binary loss is. The energy head is the discriminator's head;
- a frozen network has its forward pass only;
- each of two towers looks up its input for itself, as generator and discriminator do, and its
  causal attention counts in full: the products are computed and then masked;
- a difference to another network's table (`gdes`) is free.
"""

from dataclasses import dataclass, replace

from amber.cost.method import (
    BASELINE_HEAD,
    COPY_GATE,
    ENERGY_HEAD,
    RTD_HEAD,
    VOCABULARY_HEAD,
    Head,
    Passage,
    Where,
)
from amber.model.config import Body, EncoderConfig

DROPOUT = 4  # draw, compare, multiply by the mask, rescale
LAYER_NORM = 5  # mean, two for the variance, shift, scale
GELU = 8
SOFTMAX = 5  # two for the maximum, exponential, sum, divide
ROTARY = 3  # two products and a sum for each unit of a query or key

HEAD_FRACTION = 0.15625
"""Share of the positions at which the vocabulary head is counted: 20 of 128, 80 of 512."""

TRAIN_FACTOR = 2
"""Training over forward: the backward pass counts as much as the forward pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What the paper's script knows about a network; 0 means: derived from the width."""

    hidden_size: int
    num_hidden_layers: int
    length: int = 512
    """Tokens in a sequence."""

    vocab_size: int = 30_522
    embedding_size: int = 0
    """0: `hidden_size`."""

    intermediate_size: int = 0
    """0: four times `hidden_size`."""

    num_attention_heads: int = 0
    """0: one for each 64 of `hidden_size`, at least one."""

    attention_size: int = 0
    """Width of all queries of a token together; 0: `hidden_size`."""

    head_fraction: float = HEAD_FRACTION
    """Share of the positions at which the vocabulary head is computed."""

    is_decoder: bool = False
    """Attends to an encoder too: all attention work twice (T5)."""

    body: Body = "bert"
    """The script knows `bert` only. For `modern` the same prices are applied to its own parts: a
    third feed-forward matrix and the gate's product are added, rotary angles replace the position
    and segment tables; the rest is left as it is."""


def shape_of(config: EncoderConfig, *, length: int) -> Shape:
    """Describe an encoder in the script's terms.

    Args:
        config: the encoder.
        length: tokens in a sequence.
    """
    return Shape(
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        length=length,
        vocab_size=config.vocab_size,
        embedding_size=config.embedding_size,
        intermediate_size=config.intermediate_size,
        num_attention_heads=config.num_attention_heads,
        body=config.body,
    )


def block_flops(shape: Shape) -> dict[str, int]:
    """Count one layer's forward pass over a sequence, by part."""
    hidden, length = shape.hidden_size, shape.length
    inner = shape.intermediate_size or 4 * hidden
    attention = shape.attention_size or hidden
    heads = shape.num_attention_heads or max(hidden // 64, 1)
    times = 2 if shape.is_decoder else 1

    projections = 3 * (2 * hidden * attention + attention)
    projections += 2 * hidden * hidden + hidden + DROPOUT * hidden + hidden + LAYER_NORM
    scores = 2 * attention * length + 2 * hidden * length
    scores += (SOFTMAX + DROPOUT + 1) * length * heads  # 1: the division by the root of the width
    feed_forward = 2 * 2 * hidden * inner + (GELU + 1) * inner
    feed_forward += (1 + DROPOUT + 1 + LAYER_NORM) * hidden
    if shape.body == "modern":
        feed_forward += 2 * hidden * inner + inner
        projections += 2 * ROTARY * hidden
    return {
        "attention projections": times * projections * length,
        "attention scores": times * scores * length,
        "feed-forward": feed_forward * length,
    }


def body_flops(shape: Shape) -> dict[str, int]:
    """Count the forward pass over a sequence, from the ids to the last hidden state, by part."""
    width, hidden = shape.embedding_size or shape.hidden_size, shape.hidden_size
    tables = 2 * width * shape.vocab_size + (LAYER_NORM + DROPOUT) * width
    if shape.body == "bert":
        tables += 2 * width * (shape.length + 2) + 2 * width
    parts = {"embedding tables": tables * shape.length}
    if width != hidden:
        parts["embedding projection"] = (2 * width * hidden + hidden) * shape.length
    layers = {part: shape.num_hidden_layers * n for part, n in block_flops(shape).items()}
    return parts | layers


def mlm_head_flops(shape: Shape, *, num_inputs: int = 1) -> int:
    """Count the vocabulary head's forward pass over a sequence, with its loss.

    Args:
        shape: of the network; its `head_fraction` says at how many positions.
        num_inputs: hidden states that the head reads together: two towers have two.
    """
    width, vocabulary = shape.embedding_size or shape.hidden_size, shape.vocab_size
    each = 2 * width * vocabulary + 2 * num_inputs * shape.hidden_size * width
    each += (1 + GELU + LAYER_NORM) * width + (SOFTMAX + 2) * vocabulary
    return round(shape.head_fraction * shape.length * each)


def rtd_head_flops(shape: Shape, *, fraction: float = 1.0) -> int:
    """Count the discriminator head's forward pass over a sequence.

    Args:
        shape: of the discriminator.
        fraction: share of the positions at which it is computed.
    """
    hidden = shape.hidden_size
    each = 2 * hidden * hidden + (1 + GELU) * hidden + 2 * hidden
    return round(fraction * shape.length * each)


def passage_flops(config: EncoderConfig, passage: Passage, *, length: int) -> dict[str, int]:
    """Count one network's forward pass with its heads, by part.

    Args:
        config: its shape; of one tower where there are two.
        passage: its heads, and where they are computed.
        length: tokens in the sequence.
    """
    shape = shape_of(config, length=length)
    times = 2 if passage.network == "towers" else 1
    parts = {name: times * n for name, n in body_flops(shape).items()}
    return parts | {head: head_flops(shape, head, where) for head, where in passage.heads.items()}


def head_flops(shape: Shape, head: Head, where: Where) -> int:
    """Count a head's forward pass over a sequence, at the positions where it is computed."""
    fraction = HEAD_FRACTION if where == "chosen" else 1.0
    if head in (RTD_HEAD, ENERGY_HEAD):
        return rtd_head_flops(shape, fraction=fraction)
    if head in (COPY_GATE, BASELINE_HEAD):
        return round(fraction * shape.length * 2 * shape.hidden_size)
    num_inputs = 2 if head == VOCABULARY_HEAD else 1
    return mlm_head_flops(replace(shape, head_fraction=fraction), num_inputs=num_inputs)


def inference_flops(shape: Shape) -> int:
    """Count one forward pass over a sequence, the discriminator head included."""
    return sum(body_flops(shape).values()) + rtd_head_flops(shape)


def mlm_step_flops(shape: Shape, *, batch_size: int) -> int:
    """Count one training step of a masked language model."""
    forward = sum(body_flops(shape).values()) + mlm_head_flops(shape)
    return TRAIN_FACTOR * batch_size * forward


def rtd_step_flops(shape: Shape, generator: Shape, *, batch_size: int) -> int:
    """Count one training step of a discriminator together with its generator."""
    discriminator = TRAIN_FACTOR * batch_size * inference_flops(shape)
    return discriminator + mlm_step_flops(generator, batch_size=batch_size)


def narrower(shape: Shape, hidden_size: int) -> Shape:
    """Return the generator of that width: same depth, tables of the discriminator's width."""
    width = shape.embedding_size or shape.hidden_size
    return replace(shape, hidden_size=hidden_size, embedding_size=width)
