"""What a training step costs in floating-point operations, by part, under two counting rules.

`standard`: matrix products only, 2mn for each vector, attention scores and value products
included (2 T D each for a token, causal or not); look-ups, norms and other element-wise work are
free, and so is the difference to another network's table; heads count only where they are computed
(the vocabulary head at the masked slots, the binary head at every position); the backward pass
costs twice the forward pass, and a frozen network has none. The first layer is no exception: its
input gradient is computed too, for the tables. Padding within `length` is counted as text is.
Budgets and utilisation use this rule without padding: `FlopsPerToken` takes each sequence at its
own length.

`paper`: the ELECTRA paper's own, see `amber.cost.paper`. It takes the share of the positions that
have a head as a constant, and so looks at no count of positions.

What the networks share changes no work: two networks with the same weights are still computed
twice. A table of the generator's own changes its `embedding_size`, which is in its shape.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from amber.cost import paper, products
from amber.cost.method import (
    Algorithm,
    Network,
    Objective,
    Source,
    Stage,
    Where,
    check_method,
    passages,
)
from amber.model.config import EncoderConfig

Rule = Literal["standard", "paper"]


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
    source: Source = "generator",
    algorithm: Algorithm = "joint",
    stage: Stage = "both",
    num_ordinary: int | None = None,
    includes_special: bool = True,
    rule: Rule = "standard",
) -> dict[str, Cost]:
    """Count the work that one sequence causes, by part.

    Args:
        main: the encoder that is kept: the discriminator, or the masked language model.
        generator: the network that proposes replacements (one of the towers, where there are two);
            None with `mlm`, and where no network proposes.
        length: tokens in the sequence, padding included.
        num_masked: chosen positions (not used by the paper's rule).
        objective: what `main` learns, which says what head is on it.
        source: where replacements come from.
        algorithm: `two_stage` must be asked for one of its stages; `adversarial` adds a baseline.
        stage: of `two_stage`: `generator` trains it alone, `discriminator` trains the other with
            the generator frozen; `both` with the other algorithms.
        num_ordinary: tokens but [CLS], [SEP] and padding, at which the towers are scored (not used
            by the paper's rule); all but two unless given.
        includes_special: [CLS] and [SEP] are in the loss of `all_tokens_mlm`, whose head is
            computed there too (not used by the paper's rule).
        rule: how to count.

    Returns:
        The parts in the order of the computation, by "network: part".

    Raises:
        ValueError: choices that do not fit, or a generator given or missing against them.
    """
    has_generator = generator is not None
    check_method(objective, source, algorithm, has_generator=has_generator, stage=stage)
    ordinary = max(0, length - 2) if num_ordinary is None else num_ordinary
    places: dict[Where, int] = {
        "everywhere": length,
        "scored": length if includes_special else ordinary,
        "chosen": num_masked,
        "ordinary": ordinary,
    }
    costs: dict[str, Cost] = {}
    for passage in passages(objective, source, algorithm, stage):
        is_main = passage.network in ("encoder", "discriminator")
        shape = main if is_main or generator is None else generator
        if rule == "paper":
            counts = paper.passage_flops(shape, passage, length=length)
            factor = paper.TRAIN_FACTOR
        else:
            counts = products.passage_products(shape, passage, length=length, places=places)
            factor = products.TRAIN_FACTOR
        costs |= _costs(passage.network, counts, factor=1 if passage.is_frozen else factor)
    return costs


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
    """Of the heads at one chosen position."""

    per_ordinary: int
    """Of the heads at one token that is neither [CLS] nor [SEP]."""

    def total(self, *, num_tokens: int, squares: int, num_masked: int, num_ordinary: int) -> int:
        """Count the work on some sequences.

        Args:
            num_tokens: sum of their lengths.
            squares: sum of their squared lengths.
            num_masked: chosen positions.
            num_ordinary: tokens but [CLS] and [SEP].
        """
        return (
            self.per_token * num_tokens
            + self.per_square * squares
            + self.per_masked * num_masked
            + self.per_ordinary * num_ordinary
        )


def flops_per_token(
    main: EncoderConfig,
    generator: EncoderConfig | None,
    *,
    objective: Objective,
    source: Source = "generator",
    algorithm: Algorithm = "joint",
    stage: Stage = "both",
    includes_special: bool = True,
) -> FlopsPerToken:
    """Reduce the standard rule to its four numbers.

    Args:
        main: as in `training_flops_per_sequence`, and so are the others.
        generator: shape.
        objective: what `main` learns.
        source: of replacements.
        algorithm: of training.
        stage: of `two_stage`, which has two such costs.
        includes_special: in the loss over all tokens.

    Raises:
        ValueError: as `training_flops_per_sequence`.
    """

    def train(length: int, num_masked: int, num_ordinary: int) -> int:
        costs = training_flops_per_sequence(
            main,
            generator,
            length=length,
            num_masked=num_masked,
            objective=objective,
            source=source,
            algorithm=algorithm,
            stage=stage,
            num_ordinary=num_ordinary,
            includes_special=includes_special,
        )
        return total(costs).train

    one, two = train(1, 0, 0), train(2, 0, 0)
    square = (two - 2 * one) // 2  # f(n) = a n + b n^2, so f(2) - 2 f(1) = 2 b
    return FlopsPerToken(
        per_token=one - square,
        per_square=square,
        per_masked=train(1, 1, 0) - one,
        per_ordinary=train(1, 0, 1) - one,
    )


def matched_steps(num_steps: int, *, step_flops: int, other_step_flops: int) -> int:
    """Return how many steps of another training cost as much as `num_steps` of this one.

    Args:
        num_steps: steps of this training.
        step_flops: cost of one of its steps.
        other_step_flops: cost of a step of the other, by the same rule.
    """
    return round(num_steps * step_flops / other_step_flops)


def _costs(network: Network, counts: Mapping[str, int], *, factor: int) -> dict[str, Cost]:
    """Name one network's forward counts and add what training makes of them."""
    return {
        f"{network}: {part}": Cost(network=network, part=part, forward=n, train=factor * n)
        for part, n in counts.items()
    }
