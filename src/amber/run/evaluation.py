"""Held-out metrics of a pre-training model, on masks and samples that never change."""

from collections.abc import Iterable

import torch

from amber.data.batch import Batch
from amber.electra.config import LossConfig, MaskConfig
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
) -> dict[str, float]:
    """Return the metrics over all batches of all processes.

    Args:
        model: set to evaluation and back.
        batches: this process's share.
        mask_config: as in training.
        vocabulary: of the data.
        process: where to compute.
        temperature: of the replacements.
    """
    was_training = model.training
    model.eval()
    tally = Tally()
    for cpu_batch in batches:
        batch = cpu_batch.to(process.device)
        masked = mask_batch(batch, mask_config, vocabulary)
        with process.autocast():
            outcome = model(batch, masked, temperature=temperature)
        tally.add(outcome, batch, masked)
    model.train(was_training)
    return merged(process.gather(tally)).metrics()


def merged(tallies: list[Tally]) -> Tally:
    """Add up what the processes counted."""
    total = Tally()
    for tally in tallies:
        total.merge(tally)
    return total


def held_out_loss(metrics: dict[str, float], config: LossConfig) -> float:
    """Return what training minimises, on the held-out text: it tells the best checkpoint."""
    if "disc_loss" not in metrics:
        return metrics["masked_lm_loss"]
    generator = config.generator_weight * metrics["masked_lm_loss"]
    return generator + config.discriminator_weight * metrics["disc_loss"]
