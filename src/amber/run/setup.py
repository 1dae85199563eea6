"""Build everything that a pre-training run needs, and refuse before step 1 what cannot work."""

import shutil
from dataclasses import dataclass

import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from amber.cost.flops import FlopsPerToken, flops_per_token
from amber.cost.peak import measured_peak
from amber.data.loader import Source, open_source
from amber.electra.config import GeneratorConfig, LossConfig, NoiseConfig, generator_shape
from amber.electra.pretraining import PretrainingModel
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.optim.optimizer import build_optimizers
from amber.run.config import PretrainConfig
from amber.run.device import Process
from amber.tokens.shards import Manifest, Split, load_manifest, open_shards
from amber.tokens.tokenizer import SpecialIds, is_ordinary, load_tokenizer, special_ids

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
    cost: FlopsPerToken
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
    check_settings(config)
    manifest = load_manifest(config.data)
    encoder, generator = shapes(config, manifest.vocab_size)
    vocabulary = vocabulary_of(load_tokenizer(config.data / "tokenizer"), process.device)
    seeds: dict[Split, int] = {"train": config.seed, "held_out": HELD_OUT_SEED}
    sources = [
        open_source(
            open_shards(config.data, split),
            manifest.special,
            length=config.batch.length,
            pair_fraction=config.batch.pair_fraction,
            seed=seed,
            multiple=config.batch.length if config.compile else 8,  # one width, one compilation
        )
        for split, seed in seeds.items()
    ]
    model = PretrainingModel(
        encoder,
        generator,
        forbidden_ids=vocabulary.forbidden_ids,
        seed=config.seed,
    ).to(process.device)
    check_space(config, model)
    if config.compile:
        model.compile_encoders()
    parallel = model
    if process.num_ranks > 1:
        parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
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
        cost=flops_per_token(encoder, generator, objective=config.objective),
        peak=sum(process.gather(measured_peak(process.device, process.dtype, seconds=0.2))),
    )


def shapes(config: PretrainConfig, vocab_size: int) -> tuple[EncoderConfig, EncoderConfig | None]:
    """Return the shapes of the main encoder and of the generator, if there is one.

    Raises:
        UserError: the vocabulary differs from the one asked for, or sizes do not fit.
    """
    if config.model.vocab_size not in (0, vocab_size):
        raise UserError(
            f"model.vocab_size is {config.model.vocab_size}, but {config.data} was prepared with "
            f"{vocab_size} tokens: leave the setting out"
        )
    encoder = config.model.resolved(vocab_size)
    if config.objective == "mlm":
        return encoder, None
    return encoder, generator_shape(encoder, config.generator)


def vocabulary_of(
    tokenizer: Tokenizer, device: torch.device, *, num_rows: int | None = None
) -> Vocabulary:
    """Sort the rows of a token table into what the method may do with them.

    Args:
        tokenizer: of the data.
        device: where the ids shall be.
        num_rows: of the table, where it is longer than the tokenizer needs.
    """
    special = special_ids(tokenizer)
    special_rows = [special.cls, special.sep, special.pad, special.mask]
    tokens = set(tokenizer.get_vocab(with_added_tokens=True).values())
    holes = sorted(set(range(num_rows or max(tokens) + 1)) - tokens)
    return Vocabulary(
        special=special,
        special_ids=torch.tensor(special_rows, device=device),
        forbidden_ids=torch.tensor(special_rows + holes, device=device),
        ordinary_ids=torch.from_numpy(is_ordinary(tokenizer).nonzero()[0]).to(device),
    )


def check_settings(config: PretrainConfig) -> None:
    """Refuse contradictory settings and settings without effect.

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
    if config.objective == "mlm":
        plain = {"generator": GeneratorConfig(), "noise": NoiseConfig(), "loss": LossConfig()}
        for name, unset in plain.items():
            if getattr(config, name) != unset:
                raise UserError(
                    f"the settings under {name} have no effect with objective mlm: leave them out"
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
