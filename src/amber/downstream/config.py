"""The settings of `amber finetune`; nothing here imports torch."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from amber.errors import UserError
from amber.model.task_shape import Pooling
from amber.tasks.config import OwnData

Head = Literal["hf", "official"]
Keep = Literal["last", "best"]
ScoredSplit = Literal["dev", "test"]

ABOVE_ZERO: Final = ("learning_rate", "layer_decay", "epochs", "batch_size", "length", "stride")
AT_LEAST_ZERO: Final = ("weight_decay", "micro_size", "max_grad_norm")
SHARES: Final = ("hidden_dropout", "attention_dropout", "head_dropout")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeConfig:
    """How a task is trained; what is not given goes by the size of the model, as in the paper.

    For models smaller than the paper's it is what we found (docs/results/finetune.md).
    """

    learning_rate: float | None = None
    """Peak rate of the head (default: 1e-3 for models near the preset tiny, 3e-4 near
    ELECTRA-Small, 1e-4 near Base, 5e-5 near Large)."""

    layer_decay: float | None = None
    """Rate of each layer as a multiple of the one above it; 1 = all the same (default: near tiny 1,
    near Large 0.9, else 0.8)."""

    layer_decay_rule: Literal["paper", "official"] = "paper"
    """paper: the top layer has the head's rate times the decay; official: the decay once more
    everywhere below the head, as the official code has it."""

    weight_decay: float = 0.0
    """Decoupled; not applied to norms and biases. The official code has 0.01."""

    warmup_fraction: float = 0.1
    """Share of the steps over which the rate rises; it is (1 - progress) * min(1, warm-up)."""

    epochs: int | None = None
    """Passes over the training examples (default: the paper's: 10 for RTE and STS-B, 2 for the
    named tasks of questions, else 3)."""

    batch_size: int = 32
    """Examples, or windows of long ones, per step."""

    micro_size: int = 0
    """Examples per forward pass, where memory is short; 0 = the whole batch."""

    length: int | None = None
    """Tokens that are read at most, [CLS] and [SEP] included (default: texts 128, tags 256,
    questions 512, as far as the model goes)."""

    stride: int | None = None
    """Tokens from one window of a long sentence or context to the next (default: tags half the
    length, questions 128)."""

    max_question: int = 64
    """Tokens of a question that are read."""

    max_answer: int = 30
    """Tokens of the longest answer that is given."""

    hidden_dropout: float = 0.1
    """After the embeddings, the attention and the feed-forward layers."""

    attention_dropout: float = 0.1
    """On the attention weights."""

    head_dropout: float = 0.1
    """Before the output layer."""

    pooling: Pooling | None = None
    """The vector of a text, in ModernBERT's head (our modern body): cls: that of [CLS]; mean: the
    mean over its tokens (default: as the model's config.json says)."""

    max_grad_norm: float = 1.0
    """Global norm to which the gradient is clipped; 0 = not clipped."""

    bias_correction: bool = True
    """Adam's correction of the early moments; the official code has none, which makes small tasks
    unstable (Zhang et al. 2021)."""

    both_orders: bool = True
    """Train on each pair in both orders where the task has no order (MRPC, STS-B), as the official
    code does."""

    def __post_init__(self) -> None:
        """Refuse impossible values.

        Raises:
            UserError: with the name of the setting.
        """
        for name in ABOVE_ZERO:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"recipe.{name} must be above 0, got {value}")
        for name in AT_LEAST_ZERO:
            if getattr(self, name) < 0:
                raise UserError(f"recipe.{name} must be at least 0, got {getattr(self, name)}")
        for name in SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"recipe.{name} must be in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.warmup_fraction <= 1:
            raise UserError(f"recipe.warmup_fraction must be in [0, 1], got {self.warmup_fraction}")
        if self.layer_decay is not None and self.layer_decay > 1:
            raise UserError(f"recipe.layer_decay must be at most 1, got {self.layer_decay}")
        if self.max_question < 1 or self.max_answer < 1:
            raise UserError("recipe.max_question and recipe.max_answer must be at least 1")
        if self.micro_size > self.batch_size:
            raise UserError(
                f"recipe.micro_size {self.micro_size} has no effect with recipe.batch_size "
                f"{self.batch_size}: lower it"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneConfig:
    """Train a model for a task, with one seed or several, and score it on the dev examples."""

    model: Path
    """A run folder, or a model folder: ours, or an ELECTRA, BERT or ModernBERT from elsewhere."""

    task: str | None = None
    """Name of a task (cola, sst2, mrpc, stsb, squad2, conll2003, tnews ...), glue or clue for all
    of their tasks that are there, own for own data, or hub:NAME for a data set of the Hugging Face
    hub."""

    data: tuple[Path, ...] = ()
    """Folder with the task's files; for own data a folder, or the files of train, dev and test, in
    this order (--data TRAIN DEV TEST)."""

    out: Path | None = None
    """Folder of the results: settings, scores, one fine-tuned model per seed."""

    seeds: int = 1
    """Runs with different seeds; the paper takes the median of 10."""

    seed: int = 0
    """The first seed: of the head's first weights, the order of the examples and the dropout."""

    jobs: int = 0
    """Processes that train at the same time; 0 = as many as cores (or GPUs) and memory allow.
    Results do not depend on it."""

    threads: int = 0
    """Of each process; 0 = the cores shared out among the seeds. The last digits of results depend
    on it."""

    head: Head = "hf"
    """hf: the layers of the task classes of transformers; official: those of the official code."""

    from_scratch: bool = False
    """Start at random weights in the model's shape: what is the pre-training worth?"""

    keep: Keep = "last"
    """The weights after the last epoch, or those of the epoch with the best score on dev."""

    patience: int = 0
    """Stop a run after this many epochs without a better score on dev; 0 = never."""

    limit_train: int = 0
    """Train on this many examples only, drawn once for all seeds; 0 = on all."""

    dev_fraction: float = 0.0
    """Share of the training examples that become dev where a named task has no dev file."""

    score_on: ScoredSplit = "dev"
    """Where the scores come from; test where there is no dev."""

    sweep: Path | None = None
    """TOML file with lists of values for settings of --recipe (learning_rate = [1e-4, 3e-4]): every
    combination is run, and the one with the best median on dev is chosen."""

    show_rates: bool = False
    """Print the learning rate of each layer, and train nothing."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""

    precision: Literal["auto", "float32", "bf16"] = "auto"
    """Of the matrix products; losses and weights are always float32. auto: bf16 where the chip has
    it."""

    recipe: RecipeConfig = field(default_factory=RecipeConfig)
    own: OwnData = field(default_factory=OwnData)
    """Files and columns of own data."""

    def __post_init__(self) -> None:
        """Refuse what does not fit together.

        Raises:
            UserError: with the names of the settings.
        """
        for name in ("task", "out"):
            if getattr(self, name) is None and not self.show_rates:
                raise UserError(f"--{name} must be given; --help describes the settings")
        for name, least in (("seeds", 1), ("seed", 0), ("jobs", 0), ("threads", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("patience", "limit_train"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.seed + self.seeds > 2**62:
            raise UserError(f"seed must be below 2^62, got {self.seed}")
        if not 0 <= self.dev_fraction < 1:
            raise UserError(f"dev_fraction must be in [0, 1), got {self.dev_fraction}")
        if self.show_rates and self.sweep is not None:
            raise UserError(
                "sweep has no effect with show_rates, which prints the rates of one recipe: leave "
                "one of them out"
            )
        if self.score_on == "test":
            self._refuse_choice_on_test()
        if self.task is not None:
            self._refuse_idle_data()

    def _refuse_choice_on_test(self) -> None:
        for name, is_on in (
            ("keep best", self.keep == "best"),
            ("patience", self.patience > 0),
            ("sweep", self.sweep is not None),
        ):
            if is_on:
                raise UserError(
                    f"{name} would choose by the test examples, since score_on is test: leave it "
                    "out, or give a dev file"
                )

    def _refuse_idle_data(self) -> None:
        """Refuse settings about files that this task does not read."""
        is_own, is_hub = self.task == "own", str(self.task).startswith("hub:")
        given = [f.name for f in fields(self.own) if getattr(self.own, f.name) != _default(f)]
        files = ("train", "dev", "test", "folder")
        unread = (*files, "dev_fraction", "header", "encoding")  # by a data set of the hub
        idle = [name for name in given if not (is_own or (is_hub and name not in unread))]
        if idle:
            is_share = is_hub and idle[0] == "dev_fraction"
            other = "give --dev-fraction" if is_share else "leave it out"
            raise UserError(f"own.{idle[0]} has no effect with task {self.task}: {other}")
        if is_hub and self.data:
            raise UserError(f"data has no effect with task {self.task}: leave it out")
        columns = [c for c in (self.own.text, self.own.pair, self.own.label) if c is not None]
        if len(set(columns)) < len(columns):
            raise UserError(
                f"own.text, own.pair and own.label are {', '.join(columns)}: name different columns"
            )
        if "epochs" in given and self.recipe.epochs is not None:
            raise UserError("own.epochs has no effect with recipe.epochs: leave one of them out")
        if is_own and self.data and any(name in files for name in given):
            raise UserError("data and own.train, own.dev, own.test or own.folder: give one of them")
        if self.dev_fraction and (is_own or self.score_on == "test"):
            hint = "own.dev_fraction does this" if is_own else "score_on is test"
            raise UserError(f"dev_fraction has no effect with task {self.task}: {hint}")
        if not (is_own or is_hub) and len(self.data) != 1 and not self.show_rates:
            raise UserError(
                f"--data must be one folder, the one with the files of {self.task}; "
                f"got {len(self.data)}"
            )


def _default(part: Any) -> Any:
    return part.default


RESUMABLE: Final = frozenset({"out", "seeds", "seed", "jobs", "threads", "device", "data", "model"})
"""Settings that may change when a command is given again: finished seeds are kept. The model and
the data are known by their fingerprints, not by their paths, the device by what auto came to."""
