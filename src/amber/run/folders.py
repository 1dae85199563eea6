"""Open what a user calls MODEL: a run folder, or a folder with one model."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor

from amber.config import read_toml, update
from amber.data.config import BatchConfig
from amber.electra.config import (
    LabelRule,
    LossConfig,
    MaskConfig,
    Method,
    NoiseConfig,
    Objective,
)
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.encoder import Encoder
from amber.model.folder import (
    load_copy_gate,
    load_discriminator,
    load_generator,
    score_meaning,
)
from amber.model.heads import MLMHead, RTDHead, UnitHead
from amber.model.towers import TwoTowers, load_towers
from amber.run.config import EvaluationConfig
from amber.run.device import Precision
from amber.run.setup import Vocabulary
from amber.text.clean import UnicodeForm
from amber.tokens.shards import load_manifest
from amber.tokens.tokenizer import (
    fingerprint,
    load_tokenizer,
    vocab_size,
)

Kind = Literal["pair", "mlm", "discriminator", "electric", "namer"]
"""What a model can do: find replaced tokens and fill in hidden ones; one of these alone; give
energies; or name the original tokens of a corrupted text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedWith:
    """Settings of the run that trained a model; defaults where nothing is known of it."""

    path: Path | None = None
    """The config.toml that they come from."""

    mask: MaskConfig = field(default_factory=MaskConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    objective: Objective = "rtd"
    label_rule: LabelRule = "content"
    batch: BatchConfig = field(default_factory=BatchConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    precision: Precision = "auto"
    unicode_form: UnicodeForm = "NFC"
    """Of the training text; the default where the data is no longer there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedModel:
    """One network or two, with their tokenizer."""

    path: Path
    """Folder of the main network."""

    tokenizer: Tokenizer
    encoder: Encoder
    rtd_head: RTDHead | None
    """Of one score per token: replaced, or an energy."""

    vocabulary_head: MLMHead | None
    """On `encoder`."""

    copy_gate: UnitHead | None
    generator: Encoder | TwoTowers | None
    """Proposes tokens; for a masked language model, `encoder` itself."""

    mlm_head: MLMHead | None
    """On `generator`, where it is one encoder."""

    method: Method
    """What it was trained to do, as far as a measurement needs to know."""

    trained_with: TrainedWith

    @property
    def kind(self) -> Kind:
        """What it can do."""
        if self.method.objective == "electric":
            return "electric"
        if self.rtd_head is None:
            return "mlm" if self.method.objective == "mlm" else "namer"
        return "discriminator" if self.generator is None else "pair"

    @property
    def has_noise(self) -> bool:
        """Whether what it is tested with is there: a network, or the frequencies of its data."""
        return not self.method.has_network or self.generator is not None


def open_model(path: Path) -> OpenedModel:
    """Open a run folder, or a folder with one model.

    A discriminator is joined by the folder `generator` beside it, if there is one.

    Raises:
        UserError: there is no model, it cannot be read, or its parts do not belong together.
    """
    main, beside = locate(path)
    trained_with = read_training_settings(main.parent / "config.toml")
    encoder, rtd_head = load_discriminator(main)
    vocabulary_head, copy_gate = None, None
    if rtd_head is None:
        encoder, vocabulary_head = load_generator(main)
        copy_gate = load_copy_gate(main, encoder.config)
        if vocabulary_head is None:
            raise UserError(
                f"{main}: has neither a head for replaced tokens nor one for masked tokens: give a "
                "pre-trained model, or a run folder"
            )
    is_energy = rtd_head is not None and score_meaning(main) == "energy"
    method = method_of(
        trained_with,
        is_binary=rtd_head is not None,
        is_energy=is_energy,
        has_gate=copy_gate is not None,
        beside=beside,
    )
    generator, mlm_head = None, None
    if method.objective == "mlm":
        generator, mlm_head, beside = encoder, vocabulary_head, None
    elif beside is not None and beside.name == "towers":
        generator = load_towers(beside)
    elif beside is not None:
        generator, mlm_head = load_generator(beside)
        if mlm_head is None:
            raise UserError(f"{beside}: has no vocabulary head: give its masked LM folder")
    opened = OpenedModel(
        path=main,
        tokenizer=load_tokenizer(main),
        encoder=encoder,
        rtd_head=rtd_head,
        vocabulary_head=vocabulary_head,
        copy_gate=copy_gate,
        generator=generator,
        mlm_head=mlm_head,
        method=method,
        trained_with=trained_with,
    )
    check(opened, beside)
    return opened


def method_of(
    trained_with: TrainedWith,
    *,
    is_binary: bool,
    is_energy: bool,
    has_gate: bool,
    beside: Path | None,
) -> Method:
    """Say what a model was trained to do, by its run's settings where they fit its head.

    Args:
        trained_with: of the run; defaults where there is none.
        is_binary: whether the model has one score per token.
        is_energy: whether that score is an energy.
        has_gate: whether there is a copy gate.
        beside: folder of the network that proposes tokens, if there is one.
    """
    objective = trained_with.objective
    fitting = ("electric",) if is_energy else ("rtd", "rtd_masked")
    if not is_binary:
        fitting = ("all_tokens_mlm",) if has_gate else ("mlm", "replace_mlm")
    noise = trained_with.noise
    if objective not in fitting or trained_with.path is None:
        objective = fitting[0]
        source = "two_tower" if is_energy or (beside and beside.name == "towers") else "generator"
        noise = NoiseConfig(source=source)
    return Method(
        objective=objective,
        sharing="none",
        label_rule=trained_with.label_rule,
        noise=noise,
        loss=trained_with.loss,
    )


def locate(path: Path) -> tuple[Path, Path | None]:
    """Return the folder of the main network, and the one of what proposes tokens beside it, if any.

    Raises:
        UserError: there is no such folder, or no model in it.
    """
    if not path.is_dir():
        raise UserError(f"{path}: is no folder: give a run folder or a model folder on this disk")
    for name in ("discriminator", "encoder"):
        if (path / name / "config.json").is_file():
            path = path / name
            break
    else:
        if not (path / "config.json").is_file():
            hint = "give a run folder or a model folder"
            if (path / "checkpoints").is_dir():
                hint = "the run was cut off: finish it with amber pretrain --resume"
            raise UserError(f"{path}: holds no model (config.json): {hint}")
    for name in ("generator", "towers"):
        beside = path.parent / name
        if (beside / "config.json").is_file() and beside.resolve() != path.resolve():
            return path, beside
    return path, None


def check(opened: OpenedModel, generator_path: Path | None) -> None:
    """Refuse networks and tokenizers that do not belong together.

    Raises:
        UserError: with the folder and the sizes.
    """
    num_tokens, rows = vocab_size(opened.tokenizer), opened.encoder.config.vocab_size
    if num_tokens > rows:
        raise UserError(
            f"{opened.path}: its tokenizer has {num_tokens} tokens, its network {rows} rows: one "
            "of the two is from another model"
        )
    if opened.generator is None or generator_path is None:
        return
    other = fingerprint(load_tokenizer(generator_path))
    second = opened.generator
    shape = second.left.config if isinstance(second, TwoTowers) else second.config
    rows_there = shape.vocab_size
    if other != fingerprint(opened.tokenizer) or rows_there != rows:
        raise UserError(
            f"{generator_path}: its vocabulary differs from that of {opened.path}: the two were "
            "not trained together"
        )


def read_training_settings(path: Path) -> TrainedWith:
    """Read what matters for measuring from the config.toml of a run; defaults if it is not there.

    Raises:
        UserError: the file is damaged.
    """
    if not path.is_file():
        return TrainedWith()
    values: dict[str, Any] = read_toml(path)
    names = ("mask", "noise", "loss", "objective", "label_rule", "batch", "evaluation", "precision")
    known = {name: values[name] for name in names if name in values}
    form = unicode_form_of(Path(str(values.get("data"))), values.get("data_fingerprint"))
    known |= {"unicode_form": form} if form else {}
    return update(TrainedWith(path=path), known, where=str(path))


def unicode_form_of(data: Path, data_fingerprint: object) -> str | None:
    """Look up how a run's text was normalised; None if its data is gone or is not the same."""
    try:
        manifest = load_manifest(data)
    except UserError:
        return None
    is_same = manifest.fingerprint == data_fingerprint
    return manifest.settings.get("unicode_form") if is_same else None


def join(
    opened: OpenedModel, vocabulary: Vocabulary, *, token_counts: Int[Tensor, " V"] | None = None
) -> PretrainingModel:
    """Put the networks together as they were in training.

    Args:
        opened: a model with what it is tested with.
        vocabulary: on the device on which the networks shall be.
        token_counts: occurrences in the training text (noise source unigram).
    """
    model = PretrainingModel(
        opened.encoder.config,
        None,
        opened.method,
        forbidden_ids=vocabulary.forbidden_ids,
        ordinary_ids=vocabulary.ordinary_ids,
        token_counts=token_counts,
        seed=0,
    )
    model.encoder, model.generator = opened.encoder, opened.generator
    model.mlm_head, model.rtd_head = opened.mlm_head, opened.rtd_head
    model.copy_gate = opened.copy_gate
    if opened.method.objective != "mlm":
        model.vocabulary_head = opened.vocabulary_head
    return model.to(vocabulary.special_ids.device).eval()
