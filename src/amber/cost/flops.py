"""What a training step costs in floating-point operations, by part, under two counting rules.

`standard`: matrix products only, 2mn for each vector, attention scores and value products
included (2 T D each for a token); look-ups, norms and other element-wise work are free; heads count
only where they are computed (the vocabulary head at the masked slots, the binary head at every
position); the backward pass costs twice the forward pass, and a frozen network has none. The first
layer is no exception: its input gradient is computed too, for the tables. Padding within `length`
is counted as text is. Budgets and utilisation use this rule without padding: `FlopsPerToken` takes
each sequence at its own length.

`paper`: the ELECTRA paper's own, see `amber.cost.paper`. It takes the vocabulary head's share of
the positions as a constant and so does not look at `num_masked`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from amber.cost import paper
from amber.model.config import EncoderConfig

Rule = Literal["standard", "paper"]
Objective = Literal["rtd", "mlm"]  # as in amber.electra, which is no layer below this one
Network = Literal["encoder", "discriminator", "generator", "all"]
Head = Literal["RTD head", "MLM head"]

TRAIN_FACTOR = 3
"""Training over forward, standard rule: one product forward, two backward."""

RTD_HEAD: Final = "RTD head"
MLM_HEAD: Final = "MLM head"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Floating-point operations of one part of the networks."""

    network: Network
    part: str
    forward: int
    train: int
    """Forward and backward; equal to `forward` where the network is frozen."""


def training_flops_per_sequence(
    main: EncoderConfig,
    generator: EncoderConfig | None,
    *,
    length: int,
    num_masked: int,
    objective: Objective,
    rule: Rule = "standard",
    is_generator_frozen: bool = False,
) -> dict[str, Cost]:
    """Count the work that one sequence causes, by part.

    Args:
        main: the encoder that is kept: the discriminator, or the masked language model.
        generator: where replacements come from; None with `mlm`, and where no network proposes.
        length: tokens in the sequence, padding included.
        num_masked: slots at which the vocabulary head is computed (not used by the paper's rule).
        objective: `rtd`: binary head on `main`; `mlm`: vocabulary head on `main`.
        rule: how to count.
        is_generator_frozen: the generator proposes but does not learn: forward pass only.

    Returns:
        The parts in the order of the computation, by "network: part".

    Raises:
        ValueError: a generator given with `mlm`.
    """
    count = _count_by_paper if rule == "paper" else _count_products
    if objective == "mlm":
        if generator is not None:
            raise ValueError("the mlm objective has no generator, got one")
        counts = count(main, head=MLM_HEAD, length=length, num_masked=num_masked)
        return _costs("encoder", counts, rule=rule)
    costs: dict[str, Cost] = {}
    if generator is not None:
        counts = count(generator, head=MLM_HEAD, length=length, num_masked=num_masked)
        costs |= _costs("generator", counts, rule=rule, is_frozen=is_generator_frozen)
    counts = count(main, head=RTD_HEAD, length=length, num_masked=num_masked)
    return costs | _costs("discriminator", counts, rule=rule)


def total(costs: Mapping[str, Cost]) -> Cost:
    """Add up the parts."""
    return Cost(
        network="all",
        part="total",
        forward=sum(cost.forward for cost in costs.values()),
        train=sum(cost.train for cost in costs.values()),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FlopsPerToken:
    """Training cost, standard rule, of sequences of any lengths, without their padding."""

    per_token: int
    per_square: int
    """Times the sum of the squared lengths: attention."""

    per_masked: int
    """Of the vocabulary head at one chosen position."""

    def total(self, *, num_tokens: int, squares: int, num_masked: int) -> int:
        """Count the work on some sequences.

        Args:
            num_tokens: sum of their lengths.
            squares: sum of their squared lengths.
            num_masked: chosen positions.
        """
        return (
            self.per_token * num_tokens + self.per_square * squares + self.per_masked * num_masked
        )


def flops_per_token(
    main: EncoderConfig, generator: EncoderConfig | None, *, objective: Objective
) -> FlopsPerToken:
    """Reduce the standard rule to its three numbers.

    Args:
        main: as in `training_flops_per_sequence`.
        generator: as in `training_flops_per_sequence`.
        objective: as in `training_flops_per_sequence`.
    """

    def train(length: int, num_masked: int) -> int:
        costs = training_flops_per_sequence(
            main, generator, length=length, num_masked=num_masked, objective=objective
        )
        return total(costs).train

    one, two = train(1, 0), train(2, 0)
    square = (two - 2 * one) // 2  # f(n) = a n + b n^2, so f(2) - 2 f(1) = 2 b
    return FlopsPerToken(per_token=one - square, per_square=square, per_masked=train(1, 1) - one)


def matched_steps(num_steps: int, *, step_flops: int, other_step_flops: int) -> int:
    """Return how many steps of another training cost as much as `num_steps` of this one.

    Args:
        num_steps: steps of this training.
        step_flops: cost of one of its steps.
        other_step_flops: cost of a step of the other, by the same rule.
    """
    return round(num_steps * step_flops / other_step_flops)


def _costs(
    network: Network, counts: Mapping[str, int], *, rule: Rule, is_frozen: bool = False
) -> dict[str, Cost]:
    """Name one network's forward counts and add what training makes of them."""
    factor = paper.TRAIN_FACTOR if rule == "paper" else TRAIN_FACTOR
    factor = 1 if is_frozen else factor
    return {
        f"{network}: {part}": Cost(network=network, part=part, forward=n, train=factor * n)
        for part, n in counts.items()
    }


def _count_by_paper(
    config: EncoderConfig, *, head: Head, length: int, num_masked: int
) -> dict[str, int]:
    """Count a forward pass of one network with one head, paper's rule, by part."""
    del num_masked  # that rule has its own share of the positions
    shape = paper.shape_of(config, length=length)
    head_flops = paper.mlm_head_flops if head == MLM_HEAD else paper.rtd_head_flops
    return paper.body_flops(shape) | {head: head_flops(shape)}


def _count_products(
    config: EncoderConfig, *, head: Head, length: int, num_masked: int
) -> dict[str, int]:
    """Count a forward pass of one network with one head, standard rule, by part."""
    parts = _body_flops(config, length=length)
    if head == MLM_HEAD:
        parts[head] = num_masked * _mlm_head_flops(config)
    else:
        parts[head] = length * _rtd_head_flops(config)
    return parts


def _body_flops(config: EncoderConfig, *, length: int) -> dict[str, int]:
    """Count the forward pass from the ids to the last hidden state, standard rule, by part."""
    hidden, layers = config.hidden_size, config.num_hidden_layers
    num_matrices = 3 if config.body == "modern" else 2  # the gate is a third one
    parts: dict[str, int] = {}
    if config.embedding_size != hidden:
        parts["embedding projection"] = length * 2 * config.embedding_size * hidden
    parts["attention projections"] = layers * length * 4 * 2 * hidden * hidden
    parts["attention scores"] = layers * length * 2 * 2 * length * hidden
    parts["feed-forward"] = layers * length * num_matrices * 2 * hidden * config.intermediate_size
    return parts


def _mlm_head_flops(config: EncoderConfig) -> int:
    """Count the vocabulary head at one position: a square or narrowing layer, then the table."""
    width = config.embedding_size
    return 2 * config.hidden_size * width + 2 * width * config.vocab_size


def _rtd_head_flops(config: EncoderConfig) -> int:
    """Count the binary head at one position: a square layer, then one output."""
    return 2 * config.hidden_size * config.hidden_size + 2 * config.hidden_size
