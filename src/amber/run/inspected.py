"""What `amber inspect` found out about each token; no torch here."""

from dataclasses import dataclass
from typing import Literal

from amber.electra.config import LabelRule, NoiseSource, Objective

Treatment = Literal["mask", "kept", "random"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A token that a network proposes."""

    token: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A token that was chosen: what was seen there of the text and what was put in its place."""

    treatment: Treatment | None
    """Shown as [MASK], as itself, or as a random token; None where nothing is hidden: two towers
    never see the token that they predict, and frequencies see nothing."""

    shown: str | None
    """None where nothing is hidden."""

    guesses: tuple[Guess, ...]
    """The most probable first, at temperature 1; none where no network proposes."""

    original_probability: float
    """Of the token that stands in the text, at temperature 1."""

    sampled: Guess | None
    """What was drawn, with its probability in the draw (temperature, top-k, top-p and so on
    applied); None with a masked language model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Naming:
    """What a main encoder that names tokens says the original one is."""

    guesses: tuple[Guess, ...]
    """The most probable first; copying counts for the token that it sees."""

    original_probability: float
    """Of the token that stands in the text: its loss is -log of this."""

    is_right: bool
    """Whether the first guess is the token that stands in the text."""

    copy_probability: float | None
    """Of copying the token that it sees; None without a copy gate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedToken:
    """A token of the text."""

    token: str
    """As the tokenizer writes it."""

    is_special: bool
    """[CLS] or [SEP]."""

    choice: Choice | None
    """None where the token was not chosen."""

    seen: str | None = None
    """What the main encoder sees here; None where nothing was replaced anywhere."""

    is_replaced: bool | None = None
    """The label. By content: whether another token is seen here than the text has; a sample that
    equals the text is original. By source: these, and all chosen ones. None where nothing was
    replaced anywhere."""

    is_conflict: bool = False
    """Whether it is labelled replaced and yet equals the text."""

    replaced_probability: float | None = None
    """P(replaced) of a discriminator; with electric P(noise). None where the loss does not ask."""

    noise_probability: float | None = None
    """Of the token that is seen, under the noise (electric)."""

    energy: float | None = None
    """Of the token that is seen, given all others that are seen (electric)."""

    text_energy: float | None = None
    """Of the token in the text as it is, in one pass (electric)."""

    naming: Naming | None = None
    """None where nothing is named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedSequence:
    """One sequence, as the networks see it."""

    text: int
    """Number of the text, from 1."""

    part: int
    """Of the text, from 1."""

    num_parts: int
    tokens: tuple[InspectedToken, ...]
    score: float | None = None
    """Minus the sum of the energies of the text as it is, without [CLS] and [SEP] (electric)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """All sequences of all texts."""

    model: str
    kind: Literal["pair", "mlm", "discriminator", "electric", "namer"]
    objective: Objective
    noise: NoiseSource | None
    """What replaced tokens; None where nothing was replaced: with the objective mlm, or since what
    proposed the replacements in training is not there."""

    label_rule: LabelRule
    fraction: float
    """Of the tokens that are chosen, where any are."""

    length: int
    """Longest sequence, in tokens, [CLS] and [SEP] included."""

    seed: int
    sequences: tuple[InspectedSequence, ...]
    notes: tuple[str, ...] = ()
    """What differs from the training, and why."""
