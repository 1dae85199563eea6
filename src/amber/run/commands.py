"""The settings of `amber evaluate`, `score`, `inspect` and `demo`; no torch here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from amber.errors import UserError
from amber.tasks.config import DataColumns
from amber.text.lines import OnBad

ScoreBy = Literal["pll", "rtd", "energy", "naming"]
"""What a sentence's score is the sum of, over its tokens."""

HELD_OUT_ONLY = (
    "examples",
    "pair_fraction",
    "fraction",
    "keep_fraction",
    "random_fraction",
    "temperature",
    "top_k",
    "top_p",
    "batch_size",
)
"""Settings of `amber evaluate` without effect on minimal pairs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateConfig:
    """Measure a model on held-out text, on minimal pairs, or on both; a fine-tuned one on its task.

    Masks and samples never change. What is not given is as in the run that trained the model, where
    its config.toml is beside it.
    """

    model: Path
    """A run folder, or a folder with one model; for --data, a discriminator needs its `generator`
    beside it. Or one of `amber finetune`."""

    data: Path | None = None
    """Folder written by `amber prepare`, with the model's tokenizer. For a fine-tuned model:
    labelled data in the layout that it was trained on, a file or a folder."""

    pairs: Path | None = None
    """Minimal pairs (BLiMP, ZhoBLiMP): a JSONL file, a folder of them, or a tar archive, with
    sentence_good and sentence_bad in each record. Counted: how often the good one scores higher."""

    pairs_limit: int | None = None
    """Only the first N pairs of each paradigm (default: all)."""

    by: ScoreBy | None = None
    """How the sentences of pairs are scored, as for `amber score` (default: rtd where there is a
    discriminator)."""

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

    top_k: int | None = None
    """Samples are of the k most probable tokens only; 0 = of all (default: as in the run, else
    0)."""

    top_p: float | None = None
    """Samples are of the most probable tokens that reach this probability together (default: as in
    the run, else 1)."""

    batch_size: int | None = None
    """Sequences per forward pass (default: as in the run, else 32)."""

    task: str | None = None
    """Of a fine-tuned model: name of the task whose files are read, or own (default: that of its
    training)."""

    split: str | None = None
    """Of a fine-tuned model: which file of a folder is scored (default: dev, else test)."""

    out: Path | None = None
    """Of a fine-tuned model: a .jsonl file that gets each example with its truth (gold), its
    prediction, and whether that is right."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] | None = None
    """Of the matrix products (default: as in the run, else auto: bf16 where the chip has it)."""

    own: DataColumns = field(default_factory=DataColumns)
    """Columns of labelled data, where they are not as in the training of a fine-tuned model."""

    def __post_init__(self) -> None:
        """Refuse impossible counts; the shares are checked with those of the run.

        Raises:
            UserError: with the name of the setting.
        """
        if self.examples is not None and self.examples < 0:
            raise UserError(f"examples must be at least 0, got {self.examples}")
        if self.data is None and self.pairs is None:
            raise UserError("--data or --pairs must be given: what to measure the model on")
        missing, idle = "pairs", ("pairs_limit", "by")
        if self.data is None:
            missing, idle = "data", HELD_OUT_ONLY
        for name in idle if getattr(self, missing) is None else ():
            if getattr(self, name) is not None:
                raise UserError(f"{name} has no effect without {missing}: leave it out")
        if self.pairs_limit is not None and self.pairs_limit < 1:
            raise UserError(f"pairs_limit must be at least 1, got {self.pairs_limit}")
        if self.out is None or self.data is None:
            return
        if self.out.suffix != ".jsonl":
            raise UserError(f"out is {self.out}: name a .jsonl file")
        out, data = self.out.resolve(), self.data.resolve()
        if out == data or (out.is_file() and out.parent == data):
            raise UserError(f"out is {self.out}, a file of the data: name another one")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreConfig:
    """Score sentences: the higher, the more acceptable they are to the model.

    A score is a sum over the tokens, in nats, and so falls with the length of the sentence. A line
    of the output is score, number of tokens and sentence, with tabs between; a line without a token
    stays, with an empty score.
    """

    model: Path
    """A run folder, or a folder with one model."""

    file: Path
    """Text with one sentence per line (.txt, also compressed with gz, bz2, zst or xz); - reads
    from stdin."""

    by: ScoreBy | None = None
    """pll: log P(token | all others), each token hidden in turn (a generator or a masked language
    model; [CLS], [SEP], [PAD] and [MASK] get no probability). rtd: log P(original), one pass (a
    discriminator). energy: minus the energy, one pass (Electric; up to a constant per token).
    naming: log P of naming the token that is seen, one pass (replace_mlm, all_tokens_mlm).
    (default: what the model has, pll last)."""

    length: int | None = None
    """Tokens per sequence, [CLS] and [SEP] included: longer sentences are cut into windows without
    overlap, whose scores are added up (default: as in the run, else 128)."""

    on_bad: OnBad = "stop"
    """A line that is not valid text: stop, put a blank for its bad bytes, or leave it unscored."""

    out: Path | None = None
    """Write the lines to this file (default: stdout)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] | None = None
    """Of the matrix products (default: as in the run, else auto: bf16 where the chip has it)."""

    def __post_init__(self) -> None:
        """Refuse to write over the text.

        Raises:
            UserError: with the name of the setting.
        """
        if self.out is not None and self.out.resolve() == self.file.resolve():
            raise UserError(f"out is {self.out}, the text itself: name another file")


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectConfig:
    """Show what a model does with a text, token by token.

    Which tokens are hidden or replaced, what is guessed there and what is drawn, and what the main
    encoder makes of it: replaced or not, the original token, an energy. A model without the network
    that proposes tokens judges the text as it is.
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
    """Go the whole path in minutes: prepare, pretrain, evaluate, inspect, finetune.

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
