"""Measure a model folder on held-out text: what `amber evaluate` does."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int64

from amber.data.loader import held_out_batches, open_source
from amber.electra.config import NoiseSource, Objective
from amber.errors import UserError
from amber.run.commands import EvaluateConfig
from amber.run.device import open_process
from amber.run.evaluation import evaluate, known_frequencies
from amber.run.folders import Kind, OpenedModel, TrainedWith, join, open_model
from amber.run.setup import HELD_OUT_SEED, needs_words, token_counts, vocabulary_of
from amber.tokens.shards import load_manifest, open_shards
from amber.tokens.tokenizer import fingerprint


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """The metrics of a model, and what could be had without learning anything."""

    model: str
    kind: Kind
    objective: Objective
    noise: NoiseSource
    """Without effect where the objective is mlm."""

    metrics: dict[str, float]
    baselines: dict[str, float]
    """By the name of a metric: what token frequencies alone, or one constant answer, reach."""

    unigram_entropy: float
    """Of the training text's tokens, in nats."""

    num_examples: int
    num_held_out_examples: int
    """In the whole split."""

    length: int
    fraction: float
    settings_from: str
    """The config.toml of the model's run; empty where there is none."""


def evaluate_folder(config: EvaluateConfig) -> HeldOut:
    """Measure a pair, or a masked language model, on the held-out part of a data folder.

    A finished run gives the numbers of its last evaluation.

    Raises:
        UserError: the model or the data cannot be read, or they do not fit each other.
    """
    assert config.data is not None
    opened = open_model(config.model)
    if not opened.has_noise:
        needed = "towers" if opened.method.noise.source == "two_tower" else "generator"
        raise UserError(
            f"{opened.path}: is measured on the samples of another network, but there is no model "
            f"in {opened.path.parent / needed}: put it there, or give the run folder"
        )
    settings = chosen_settings(config, opened)
    opened = replace(opened, method=replace(opened.method, noise=settings.noise))
    manifest = load_manifest(config.data)
    if fingerprint(opened.tokenizer) != manifest.tokenizer_fingerprint:
        raise UserError(
            f"{config.data}: was prepared with another tokenizer than {opened.path}: run amber "
            f"prepare with --tokenizer {opened.path}"
        )
    source = open_source(
        open_shards(config.data, "held_out"),
        manifest.special,
        length=settings.batch.length,
        pair_fraction=settings.batch.pair_fraction,
        seed=HELD_OUT_SEED,
        with_words=needs_words(settings.mask, manifest),
    )
    num_examples = settings.evaluation.examples
    counts = token_counts(config.data)
    with open_process(config.device, settings.precision) as process:
        vocabulary = vocabulary_of(
            opened.tokenizer,
            process.device,
            num_rows=opened.encoder.config.vocab_size,
            token_counts=counts if settings.mask.frequency_power else None,
        )
        batches = held_out_batches(
            source,
            num_examples=num_examples,
            batch_size=settings.evaluation.batch_size,
            rank=process.rank,
            num_ranks=process.num_ranks,
        )
        metrics = evaluate(
            join(opened, vocabulary, token_counts=counts),
            batches,
            mask_config=settings.mask,
            vocabulary=vocabulary,
            temperature=settings.noise.temperature_at(1.0),
            process=process,
            log_frequencies=known_frequencies(opened.method, counts, process.device),
        )
    return HeldOut(
        model=str(opened.path),
        kind=opened.kind,
        objective=opened.method.objective,
        noise=opened.method.noise.source,
        metrics=metrics,
        baselines=baselines(metrics, counts.numpy(), manifest.unigram_entropy),
        unigram_entropy=manifest.unigram_entropy,
        num_examples=min(num_examples or source.layout.count, source.layout.count),
        num_held_out_examples=source.layout.count,
        length=settings.batch.length,
        fraction=settings.mask.fraction,
        settings_from=str(settings.path or ""),
    )


def chosen_settings(config: EvaluateConfig, opened: OpenedModel) -> TrainedWith:
    """Return the settings of the model's run with those of the command put in.

    Raises:
        UserError: a value that cannot be, or one without effect.
    """
    settings = opened.trained_with
    sampler = given(config, "temperature", "top_k", "top_p")
    refuse_sampler(sampler, opened)
    if "temperature" in sampler:
        sampler["final_temperature"] = 0.0
    longest = opened.encoder.config.max_position_embeddings
    batch = replace(settings.batch, **given(config, "length", "pair_fraction"))
    if config.length is None and settings.path is None:
        batch = replace(batch, length=min(batch.length, longest))
    if batch.length > longest:
        raise UserError(f"length is {batch.length}, but {opened.path} takes {longest} tokens")
    if batch.pair_fraction > 0 and opened.encoder.config.type_vocab_size < 2:
        raise UserError(
            f"pair_fraction is {batch.pair_fraction}, but {opened.path} tells no segments apart: "
            "set it to 0"
        )
    shares = given(config, "fraction", "keep_fraction", "random_fraction")
    return replace(
        settings,
        batch=batch,
        mask=replace(settings.mask, **shares),
        noise=replace(settings.noise, **sampler),
        evaluation=replace(settings.evaluation, **given(config, "examples", "batch_size")),
        precision=config.precision or settings.precision,
    )


def refuse_sampler(sampler: dict[str, Any], opened: OpenedModel) -> None:
    """Refuse settings of the samples that change nothing, or that the objective cannot have.

    Raises:
        UserError: with the first of them.
    """
    objective, source = opened.method.objective, opened.method.noise.source
    for name in sampler:
        if objective == "mlm":
            raise UserError(
                f"{name} has no effect: {opened.path} is a masked language model, from which "
                "nothing is drawn; leave it out"
            )
        if source == "uniform":
            raise UserError(
                f"{name} has no effect: {opened.path} is tested with uniform noise; leave it out"
            )
        if objective == "electric" and name != "temperature":
            raise UserError(
                f"{name} is not for {opened.path}: the loss of electric needs noise that can give "
                "every token; leave it out"
            )


def given(config: EvaluateConfig, *names: str) -> dict[str, Any]:
    """Return those of the named settings that the user gave."""
    return {name: value for name in names if (value := getattr(config, name)) is not None}


def baselines(
    metrics: dict[str, float], counts: Int64[np.ndarray, " V"], unigram_entropy: float
) -> dict[str, float]:
    """Return what each metric is without learning.

    For masked tokens: the frequencies of the training text as the prediction, its most frequent
    token as the answer, a draw by frequency as the sample. For replaced tokens: the share of
    replaced tokens as the probability at each token, and "original" as the answer.

    Args:
        metrics: of the model; only its shares of replaced tokens are used, and for electric what
            frequencies reach.
        counts: occurrences of each token in the training text.
        unigram_entropy: of these, in nats.
    """
    share = counts / counts.sum()
    frequent = {"loss": unigram_entropy, "accuracy": float(share.max())}
    result: dict[str, float] = {}
    if "masked_lm_loss" in metrics:
        result["masked_lm_loss"] = frequent["loss"]
        result["masked_lm_accuracy"] = frequent["accuracy"]
    if "sampled_masked_lm_accuracy" in metrics:
        result["sampled_masked_lm_accuracy"] = float((share**2).sum())
    if "encoder_lm_loss" in metrics:
        result["encoder_lm_loss"] = frequent["loss"]
        result["encoder_lm_accuracy"] = frequent["accuracy"]
    if "majority_accuracy" in metrics:
        replaced = 1.0 - metrics["majority_accuracy"]
        if "frequency_disc_loss" in metrics:
            result["disc_loss"] = metrics["frequency_disc_loss"]
        elif "encoder_lm_loss" in metrics:  # copy with the share of the original, else by frequency
            differing = metrics["replaced_fraction"]
            result["encoder_lm_loss"] = binary_entropy(differing) + differing * unigram_entropy
            result["encoder_lm_accuracy"] = metrics["sampled_masked_lm_accuracy"]
        else:
            result["disc_loss"] = binary_entropy(replaced)
        result |= {
            "disc_accuracy": max(replaced, 1.0 - replaced),
            "disc_auc": 0.5,
            "disc_precision": replaced,
            "disc_recall": float(replaced > 0.5),
        }
    return result


def binary_entropy(probability: float) -> float:
    """Return the entropy of a yes with this probability, in nats."""
    if probability in (0.0, 1.0):
        return 0.0
    other = 1.0 - probability
    return -probability * math.log(probability) - other * math.log(other)
