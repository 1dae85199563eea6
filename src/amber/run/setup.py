"""Build everything that a pre-training run needs, and refuse before step 1 what cannot work."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from amber.cost.flops import FlopsPerToken, flops_per_token
from amber.cost.peak import measured_peak
from amber.data.loader import Source, open_source
from amber.electra.config import MaskConfig, Method, generator_shape
from amber.electra.outcome import Stage
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.encoder import Encoder
from amber.model.folder import load_generator
from amber.model.heads import MLMHead
from amber.optim.optimizer import build_optimizers
from amber.run.combination import check_combination
from amber.run.config import PretrainConfig
from amber.run.device import Process
from amber.tokens.shards import Manifest, Split, load_manifest, open_shards
from amber.tokens.tokenizer import (
    SpecialIds,
    fingerprint,
    is_ordinary,
    load_tokenizer,
    special_ids,
)

HELD_OUT_SEED = 0
"""The held-out masks are the same for every run, whatever its seed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """What the method must know of the tokens, on the device."""

    special: SpecialIds
    special_ids: Int[Tensor, " S"]
    """[CLS], [SEP], [PAD], [MASK]: never masked."""

    forbidden_ids: Int[Tensor, " F"]
    """Never sampled: the special ones, and rows of the table that are no token."""

    ordinary_ids: Int[Tensor, " N"]
    """What a random replacement may be."""

    log_frequencies: Float[Tensor, " V"] | None = None
    """Natural logarithm of each token's share of the training text, where the masks ask for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A pre-training run, built and ready."""

    config: PretrainConfig
    process: Process
    manifest: Manifest
    vocabulary: Vocabulary
    model: PretrainingModel
    parallel: torch.nn.Module
    """`model`, wrapped so that gradients are averaged over the processes."""

    optimizers: list[Optimizer]
    train: Source
    held_out: Source
    cost: dict[Stage, FlopsPerToken]
    """By what learns: both networks, or one of them alone."""

    peak: float
    """FLOP/s of matrix products that the devices of all processes reach together."""


def build_run(config: PretrainConfig, process: Process) -> Run:
    """Open the data and build networks and optimisers.

    Args:
        config: settings, checked here against the data and each other.
        process: where to compute.

    Raises:
        UserError: the data is missing, or settings do not fit it or each other.
    """
    check_budget(config)
    check_combination(config)
    manifest = load_manifest(config.data)
    encoder, generator = shapes(config, manifest.vocab_size)
    vocabulary = vocabulary_of(
        load_tokenizer(config.data / "tokenizer"),
        process.device,
        token_counts=token_counts(config.data) if config.mask.frequency_power else None,
    )
    seeds: dict[Split, int] = {"train": config.seed, "held_out": HELD_OUT_SEED}
    sources = [
        open_source(
            open_shards(config.data, split),
            manifest.special,
            length=config.batch.length,
            pair_fraction=config.batch.pair_fraction,
            seed=seed,
            with_words=needs_words(config.mask, manifest),
            multiple=config.batch.length if config.compile else 8,  # one width, one compilation
        )
        for split, seed in seeds.items()
    ]
    method, frozen = config.method, None
    if config.noise.checkpoint is not None:
        frozen = open_frozen(config.noise.checkpoint, manifest, length=config.batch.length)
    model = PretrainingModel(
        encoder,
        generator,
        method,
        forbidden_ids=vocabulary.forbidden_ids,
        ordinary_ids=vocabulary.ordinary_ids,
        token_counts=token_counts(config.data) if config.noise.source == "unigram" else None,
        frozen=frozen,
        seed=config.seed,
    ).to(process.device)
    check_space(config, model)
    if config.compile:
        model.compile_encoders()
    parallel = model
    if process.num_ranks > 1:
        parallel = DistributedDataParallel(
            model,
            gradient_as_bucket_view=True,
            find_unused_parameters=config.algorithm == "two_stage",  # one network at a time
        )
    return Run(
        config=config,
        process=process,
        manifest=manifest,
        vocabulary=vocabulary,
        model=model,
        parallel=parallel,
        optimizers=build_optimizers(model, config.optim),
        train=sources[0],
        held_out=sources[1],
        cost=cost_by_stage(encoder, frozen[0].config if frozen else generator, method),
        peak=sum(process.gather(measured_peak(process.device, process.dtype, seconds=0.2))),
    )


def shapes(config: PretrainConfig, vocab_size: int) -> tuple[EncoderConfig, EncoderConfig | None]:
    """Return the shapes of the main encoder and of the network trained beside it, if there is one.

    Raises:
        UserError: the vocabulary differs from the one asked for, or sizes do not fit.
    """
    if config.model.vocab_size not in (0, vocab_size):
        raise UserError(
            f"model.vocab_size is {config.model.vocab_size}, but {config.data} was prepared with "
            f"{vocab_size} tokens: leave the setting out"
        )
    encoder = config.model.resolved(vocab_size)
    if not config.method.is_generator_trained:
        return encoder, None
    return encoder, generator_shape(encoder, config.generator, sharing=config.sharing)


def cost_by_stage(
    encoder: EncoderConfig, generator: EncoderConfig | None, method: Method
) -> dict[Stage, FlopsPerToken]:
    """Return what a token costs, by what learns."""
    stages: tuple[Stage, ...] = ("both",)
    if method.algorithm == "two_stage":
        stages = ("generator", "discriminator")
    return {
        stage: flops_per_token(
            encoder,
            generator,
            objective=method.objective,
            source=method.noise.source,
            algorithm=method.algorithm,
            stage=stage,
            includes_special=method.loss.include_special,
        )
        for stage in stages
    }


def open_frozen(path: Path, manifest: Manifest, *, length: int) -> tuple[Encoder, MLMHead]:
    """Open the model that proposes replacements without learning.

    Args:
        path: a model folder, or a run folder: its generator or masked language model is taken.
        manifest: of the data.
        length: tokens of the sequences.

    Raises:
        UserError: it cannot be read, fills in no masked tokens, or knows other tokens.
    """
    names = ("generator", "encoder")
    path = next((path / n for n in names if (path / n / "config.json").is_file()), path)
    if not path.is_dir():
        raise UserError(f"noise.checkpoint: {path} is no folder: give a model folder on this disk")
    encoder, head = load_generator(path)
    if head is None:
        raise UserError(
            f"noise.checkpoint: {path} has no vocabulary head: give a masked language model"
        )
    if fingerprint(load_tokenizer(path)) != manifest.tokenizer_fingerprint:
        raise UserError(
            f"noise.checkpoint: {path} was trained with another tokenizer than the data: run amber "
            f"prepare with --tokenizer {path}"
        )
    if length > encoder.config.max_position_embeddings:
        raise UserError(
            f"noise.checkpoint: {path} takes {encoder.config.max_position_embeddings} tokens, "
            f"batch.length is {length}: lower it"
        )
    return encoder, head


def token_counts(data: Path) -> Int[Tensor, " V"]:
    """Read how often each token occurs in the training text."""
    return torch.from_numpy(np.load(data / "token_counts.npy"))


def needs_words(config: MaskConfig, manifest: Manifest) -> bool:
    """Whether batches must say where words begin: n-grams are of words where the data has them."""
    has_words = manifest.words != "none"
    return config.unit == "word" or (config.unit == "ngram" and has_words)


def vocabulary_of(
    tokenizer: Tokenizer,
    device: torch.device,
    *,
    num_rows: int | None = None,
    token_counts: Int[Tensor, " V"] | None = None,
) -> Vocabulary:
    """Sort the rows of a token table into what the method may do with them.

    Args:
        tokenizer: of the data.
        device: where the ids shall be.
        num_rows: of the table, where it is longer than the tokenizer needs.
        token_counts: occurrences in the training text, where masks depend on them.
    """
    log_frequencies = None
    if token_counts is not None:
        counts = F.pad(token_counts, (0, max(0, (num_rows or 0) - len(token_counts))))
        log_frequencies = (counts.double() / counts.sum()).log().float().to(device)
    special = special_ids(tokenizer)
    special_rows = [special.cls, special.sep, special.pad, special.mask]
    tokens = set(tokenizer.get_vocab(with_added_tokens=True).values())
    holes = sorted(set(range(num_rows or max(tokens) + 1)) - tokens)
    return Vocabulary(
        special=special,
        special_ids=torch.tensor(special_rows, device=device),
        forbidden_ids=torch.tensor(special_rows + holes, device=device),
        ordinary_ids=torch.from_numpy(is_ordinary(tokenizer).nonzero()[0]).to(device),
        log_frequencies=log_frequencies,
    )


def check_budget(config: PretrainConfig) -> None:
    """Refuse a budget that is none, and a warm-up or segments that do not fit.

    Raises:
        UserError: with the names of the settings.
    """
    budget = config.budget
    given = [name for name in ("steps", "tokens", "flops", "hours") if getattr(budget, name) > 0]
    if len(given) != 1:
        raise UserError(
            f"exactly one budget is needed, got {', '.join(given) or 'none'}: "
            "give one of --budget.steps, --budget.tokens, --budget.flops, --budget.hours"
        )
    warmup, sequence = config.optim.warmup_steps, config.batch.size * config.batch.length
    if budget.steps and warmup >= budget.steps:
        raise UserError(
            f"optim.warmup_steps ({warmup}) must be less than budget.steps "
            f"({budget.steps}): lower the first or raise the second"
        )
    if warmup and (budget.hours or budget.flops or 0 < budget.tokens <= warmup * sequence):
        raise UserError(
            f"optim.warmup_steps ({warmup}) may be longer than the whole budget of "
            f"{given[0]}: give optim.warmup_fraction, for example 0.01, instead"
        )
    if config.model.type_vocab_size < 2 and config.batch.pair_fraction > 0:
        raise UserError(
            f"batch.pair_fraction is {config.batch.pair_fraction}, but the model tells no segments "
            "apart (model.type_vocab_size): set it to 0"
        )


def check_space(config: PretrainConfig, model: torch.nn.Module) -> None:
    """Refuse a disk without room for the checkpoints: weights and two moments, in float32.

    Raises:
        UserError: with the bytes needed and free.
    """
    size = 12 * sum(parameter.numel() for parameter in model.parameters())
    needed = size * (config.checkpoint.keep + 2)
    folder = config.out.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{config.out}: {config.checkpoint.keep + 2} checkpoints need {needed / 1e9:.2f} GB, "
            f"{free / 1e9:.2f} GB are free: free some space or lower checkpoint.keep"
        )
