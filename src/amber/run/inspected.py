"""What `amber inspect` found out about each token; no torch here."""

from dataclasses import dataclass
from typing import Literal

Treatment = Literal["mask", "kept", "random"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Guess:
    """A token that the generator proposes."""

    token: str
    probability: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A token that was chosen: what the generator saw there and what it made of it."""

    treatment: Treatment
    """Shown as [MASK], as itself, or as a random token."""

    shown: str
    guesses: tuple[Guess, ...]
    """The most probable first, at temperature 1."""

    original_probability: float
    """Of the token that stands in the text."""

    sampled: Guess | None
    """What was drawn, with its probability at the temperature of the draw; None without a
    discriminator."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedToken:
    """A token of the text."""

    token: str
    """As the tokenizer writes it."""

    is_special: bool
    """[CLS] or [SEP]."""

    choice: Choice | None
    """None where the token was not chosen."""

    is_replaced: bool | None
    """The label: whether the discriminator sees another token here than the text has. A sample
    that equals the text is original. None without a discriminator, or without a generator."""

    replaced_probability: float | None
    """What the discriminator thinks; None without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectedSequence:
    """One sequence, as the networks see it."""

    text: int
    """Number of the text, from 1."""

    part: int
    """Of the text, from 1."""

    num_parts: int
    tokens: tuple[InspectedToken, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inspection:
    """All sequences of all texts."""

    model: str
    kind: Literal["pair", "mlm", "discriminator"]
    fraction: float
    length: int
    """Longest sequence, in tokens, [CLS] and [SEP] included."""

    seed: int
    sequences: tuple[InspectedSequence, ...]
