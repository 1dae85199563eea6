"""The settings of `amber evaluate`, `amber inspect` and `amber demo`; no torch here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amber.errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateConfig:
    """Measure a model on held-out text, with masks and samples that never change.

    What is not given is as in the run that trained the model, where its config.toml is beside it.
    """

    model: Path
    """A run folder, or a folder with one model; a discriminator needs its `generator` beside it."""

    data: Path
    """Folder written by `amber prepare`, with the model's tokenizer."""

    examples: int | None = None
    """Held-out sequences used; 0 = all (default: as in the run, else 512)."""

    length: int | None = None
    """Tokens per sequence, [CLS] and [SEP] included (default: as in the run, else 128)."""

    pair_fraction: float | None = None
    """Share of documents in the pair layout (default: as in the run, else 0)."""

    fraction: float | None = None
    """Share of the ordinary tokens that are chosen (default: as in the run, else 0.15)."""

    keep_fraction: float | None = None
    """Share of the chosen tokens that stay as they are (default: as in the run, else 0.15)."""

    random_fraction: float | None = None
    """Share of the chosen tokens shown as a random token (default: as in the run, else 0)."""

    temperature: float | None = None
    """Of the generator's samples (default: as in the run, else 1)."""

    batch_size: int | None = None
    """Sequences per forward pass (default: as in the run, else 32)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] | None = None
    """Of the matrix products (default: as in the run, else auto: bf16 where the chip has it)."""

    def __post_init__(self) -> None:
        """Refuse impossible counts; the shares are checked with those of the run.

        Raises:
            UserError: with the name of the setting.
        """
        if self.examples is not None and self.examples < 0:
            raise UserError(f"examples must be at least 0, got {self.examples}")


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectConfig:
    """Show what a model does with a text, token by token.

    With a generator and a discriminator: which tokens are hidden, what the generator guesses, what
    is drawn from its guesses, and what the discriminator thinks of each token. With one model: its
    part of this.
    """

    model: Path
    """A run folder, or a folder with one model."""

    text: tuple[str, ...]
    """One or more texts; each longer than the model's sequences is cut."""

    fraction: float | None = None
    """Share of the tokens that are hidden (default: as in the run, else 0.15)."""

    temperature: float | None = None
    """Of the generator's samples (default: as in the run, else 1)."""

    top: int = 3
    """Guesses shown for each hidden token."""

    seed: int = 0
    """Decides what is hidden and what is drawn; the same seed gives the same result."""

    def __post_init__(self) -> None:
        """Refuse impossible values and texts without text.

        Raises:
            UserError: with the name of the setting.
        """
        if not self.text:
            raise UserError('TEXT must be given: amber inspect MODEL "a sentence"')
        for number, text in enumerate(self.text, 1):
            if not text.strip():
                which = f"text {number}" if len(self.text) > 1 else "the text"
                raise UserError(f"{which} is empty: give a sentence")
        if self.top < 1:
            raise UserError(f"top must be at least 1, got {self.top}")
        if not 0 <= self.seed < 2**63:
            raise UserError(f"seed must be in [0, 2^63), got {self.seed}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoConfig:
    """Go the whole path in minutes: prepare, pretrain, evaluate, inspect.

    The text is one that every Python installation has: the language reference, and the docstrings
    of the standard library, numpy and torch.
    """

    out: Path = Path("amber-demo")
    """Folder for the text, the prepared data and the run; it must not exist or be empty, or hold a
    demo that was stopped, which then goes on."""

    minutes: float = 0.0
    """Train for this long instead of a fixed number of steps (0), which is repeatable."""

    def __post_init__(self) -> None:
        """Refuse a negative time.

        Raises:
            UserError: with the name of the setting.
        """
        if self.minutes < 0:
            raise UserError(f"minutes must be at least 0, got {self.minutes}")
