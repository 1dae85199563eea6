"""Open what a user calls MODEL: a run folder, or a folder with one model."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer

from amber.config import read_toml, update
from amber.data.config import BatchConfig
from amber.electra.config import MaskConfig, NoiseConfig
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.encoder import Encoder
from amber.model.folder import load_discriminator, load_generator
from amber.model.heads import MLMHead, RTDHead
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

Kind = Literal["pair", "mlm", "discriminator"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedWith:
    """Settings of the run that trained a model; defaults where nothing is known of it."""

    path: Path | None = None
    """The config.toml that they come from."""

    mask: MaskConfig = field(default_factory=MaskConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
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
    generator: Encoder | None
    """Fills in masked tokens; for a masked language model, `encoder` itself."""

    mlm_head: MLMHead | None
    trained_with: TrainedWith

    @property
    def kind(self) -> Kind:
        """What it can do: both tasks, masked tokens only, or replaced tokens only."""
        if self.rtd_head is None:
            return "mlm"
        return "discriminator" if self.generator is None else "pair"


def open_model(path: Path) -> OpenedModel:
    """Open a run folder, or a folder with one model.

    A discriminator is joined by the folder `generator` beside it, if there is one.

    Raises:
        UserError: there is no model, it cannot be read, or its parts do not belong together.
    """
    main, generator_path = locate(path)
    encoder, rtd_head = load_discriminator(main)
    generator, mlm_head = None, None
    if rtd_head is None:
        generator, mlm_head = load_generator(main)
        encoder = generator
        if mlm_head is None:
            raise UserError(
                f"{main}: has neither a head for replaced tokens nor one for masked tokens: give a "
                "pre-trained model, or a run folder"
            )
    elif generator_path is not None:
        generator, mlm_head = load_generator(generator_path)
        if mlm_head is None:
            raise UserError(f"{generator_path}: has no vocabulary head: give its masked LM folder")
    opened = OpenedModel(
        path=main,
        tokenizer=load_tokenizer(main),
        encoder=encoder,
        rtd_head=rtd_head,
        generator=generator,
        mlm_head=mlm_head,
        trained_with=read_training_settings(main.parent / "config.toml"),
    )
    check(opened, generator_path)
    return opened


def locate(path: Path) -> tuple[Path, Path | None]:
    """Return the folder of the main network, and the one of a generator beside it, if any.

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
    beside = path.parent / "generator"
    is_pair = (beside / "config.json").is_file() and beside.resolve() != path.resolve()
    return path, beside if is_pair else None


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
    if opened.kind != "pair" or opened.generator is None or generator_path is None:
        return
    other = fingerprint(load_tokenizer(generator_path))
    rows_there = opened.generator.config.vocab_size
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
    names = ("mask", "noise", "batch", "evaluation", "precision")
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


def join(opened: OpenedModel, vocabulary: Vocabulary) -> PretrainingModel:
    """Put the networks together as they were in training.

    Args:
        opened: a pair, or a masked language model.
        vocabulary: on the device on which the networks shall be.
    """
    assert opened.generator is not None
    assert opened.mlm_head is not None
    model = PretrainingModel(
        opened.encoder.config,
        None if opened.rtd_head is None else opened.generator.config,
        forbidden_ids=vocabulary.forbidden_ids,
        seed=0,
    )
    model.encoder, model.generator = opened.encoder, opened.generator
    model.mlm_head, model.rtd_head = opened.mlm_head, opened.rtd_head
    return model.to(vocabulary.special_ids.device).eval()
