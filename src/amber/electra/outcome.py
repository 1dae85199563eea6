"""What one forward pass gives, part by part."""

from typing import Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

Stage = Literal["both", "generator", "discriminator"]
"""Which networks learn: with two_stage first the generator, then the discriminator."""

Predictions = Literal["masked", "ordinary", "real"]
"""What a loss is a mean over: chosen tokens, all but [CLS] and [SEP], or all."""


class Proposal(NamedTuple):
    """What the network that proposes replacements (or the masked language model) said."""

    loss: Float[Tensor, ""]
    """Sum of what it learns, in nats."""

    nats: Float[Tensor, ""]
    """Sum of -log p of the original tokens: `loss`, unless it learns something else."""

    logits: Float[Tensor, "B K V"]
    """At the chosen positions."""

    everywhere: Float[Tensor, "N V"] | None = None
    """At all ordinary tokens, in the order of rows and positions (two towers)."""

    expected: Float[Tensor, "B K"] | None = None
    """Scores of the rewards that are expected at the chosen positions (adversarial)."""

    reward: Float[Tensor, ""] | None = None
    """Sum of the rewards over the chosen positions (adversarial)."""


class Corrupted(NamedTuple):
    """A text with replacements."""

    text: Int[Tensor, "B T"]
    input_ids: Int[Tensor, "B T"]
    """What the main encoder sees."""

    is_replaced: Bool[Tensor, "B T"]
    """The labels."""

    is_chosen: Bool[Tensor, "B T"]


class Answer(NamedTuple):
    """What the main encoder made of a corrupted text."""

    corrupted: Corrupted
    loss: Float[Tensor, ""]
    """Sum over the predictions, in nats."""

    is_scored: Bool[Tensor, "B T"]
    """The tokens that are in the loss."""

    logits: Float[Tensor, "B T"] | None = None
    """Positive: replaced, noise, or not to be copied. None with replace_mlm. No gradient."""

    offset: Float[Tensor, "B T"] | None = None
    """log(k q / n) of each token: the logit without the energy (electric). No gradient."""

    named: Int[Tensor, "B T"] | None = None
    """The most probable token at each scored position; None with a binary head."""


class Outcome(NamedTuple):
    """What one batch gave: loss sums, and what the metrics need."""

    proposal: Proposal | None
    """None where no network proposes."""

    answer: Answer | None
    """None with the objective mlm, and while the generator learns alone."""
