"""Held-out metrics of a pre-training model, on masks and samples that never change."""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import MaskConfig, Method
from amber.electra.mask import Masked, mask
from amber.electra.metrics import Tally
from amber.electra.pretraining import PretrainingModel
from amber.run.device import Process
from amber.run.setup import Vocabulary


def mask_batch(batch: Batch, config: MaskConfig, vocabulary: Vocabulary) -> Masked:
    """Choose and hide positions of a batch by the numbers that it carries."""
    is_special = torch.isin(batch.input_ids, vocabulary.special_ids)
    return mask(
        batch.input_ids,
        batch.attention_mask & ~is_special,
        batch.noise,
        config,
        mask_id=vocabulary.special.mask,
        ordinary_ids=vocabulary.ordinary_ids,
        is_word_start=batch.is_word_start,
        log_frequencies=vocabulary.log_frequencies,
    )


@torch.no_grad()
def evaluate(
    model: PretrainingModel,
    batches: Iterable[Batch],
    *,
    mask_config: MaskConfig,
    vocabulary: Vocabulary,
    process: Process,
    temperature: float,
    log_frequencies: Float[Tensor, " V"] | None = None,
) -> dict[str, float]:
    """Return the metrics over all batches of all processes.

    Args:
        model: set to evaluation and back.
        batches: this process's share.
        mask_config: as in training.
        vocabulary: of the data.
        process: where to compute.
        temperature: of the replacements.
        log_frequencies: as for `Tally`.
    """
    was_training = model.training
    model.eval()
    tally = Tally(log_frequencies)
    for cpu_batch in batches:
        batch = cpu_batch.to(process.device)
        masked = mask_batch(batch, mask_config, vocabulary)
        with process.autocast():
            outcome = model(batch, masked, temperature=temperature)
        tally.add(outcome, batch, masked)
    model.train(was_training)
    return merged(process.gather(tally)).metrics(model.predictions)


def merged(tallies: list[Tally]) -> Tally:
    """Add up what the processes counted."""
    total = Tally()
    for tally in tallies:
        total.merge(tally)
    return total


def held_out_loss(metrics: dict[str, float], method: Method) -> float:
    """Return what training minimises, on the held-out text: it tells the best checkpoint.

    Weights are those of the end of the budget. A generator that learns nothing, or something else
    than the hidden tokens (adversarial), is left out, and so is one that learns alone no more.
    """
    main = metrics.get("disc_loss", metrics.get("encoder_lm_loss"))
    if main is None:
        return metrics["masked_lm_loss"]
    first, second = method.weights_at(1.0)
    is_learning = method.is_generator_trained and method.algorithm == "joint"
    return second * main + (first * metrics["masked_lm_loss"] if is_learning else 0.0)


def known_frequencies(
    method: Method, counts: Int[Tensor, " V"], device: torch.device
) -> Float[Tensor, " V"] | None:
    """Return the logarithms of the tokens' shares for electric, None for all else.

    None of them is 0: each token has one more occurrence.
    """
    if method.objective != "electric":
        return None
    more = counts.double() + 1
    return (more / more.sum()).log().float().to(device)
