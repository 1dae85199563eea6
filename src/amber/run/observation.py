"""What one pass through the networks shows at each token of a batch."""

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from tokenizers import Tokenizer
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import MaskConfig
from amber.electra.loss import copy_log_probabilities
from amber.electra.outcome import Corrupted
from amber.electra.pretraining import PretrainingModel
from amber.run.choices import Drawing, Place, guesses, list_choices, name_of
from amber.run.evaluation import mask_batch
from amber.run.folders import OpenedModel
from amber.run.inspected import Choice, InspectedToken, Naming
from amber.run.setup import Vocabulary
from amber.tokens.tokenizer import special_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What is known of the tokens of a batch; numbers are NaN where a token has none."""

    batch: Batch
    choices: dict[Place, Choice] = field(default_factory=dict)
    corrupted: Corrupted | None = None
    replaced_probability: Float[Tensor, "B T"] | None = None
    noise_probability: Float[Tensor, "B T"] | None = None
    energy: Float[Tensor, "B T"] | None = None
    text_energy: Float[Tensor, "B T"] | None = None
    namings: dict[Place, Naming] = field(default_factory=dict)

    def scores(self) -> list[float | None]:
        """Return minus the sum of the text's energies, by row; None without energies."""
        if self.text_energy is None:
            return [None] * len(self.batch.input_ids)
        return (-self.text_energy.double().nansum(dim=1)).tolist()


@torch.no_grad()
def judge(
    opened: OpenedModel, vocabulary: Vocabulary, batch: Batch, *, top: int = 3
) -> Observation:
    """Ask the main encoder alone about the text as it is.

    Args:
        opened: the model.
        vocabulary: of the tokenizer and of all rows of the network.
        batch: the text.
        top: how many guesses where tokens are named.
    """
    is_ordinary = batch.attention_mask & ~torch.isin(batch.input_ids, vocabulary.special_ids)
    has_all = opened.method.loss.include_special and opened.method.objective != "replace_mlm"
    is_asked = batch.attention_mask if has_all else is_ordinary
    if opened.rtd_head is None:
        namings = name(opened, batch, batch.input_ids, is_asked, top=top)
        return Observation(batch=batch, namings=namings)
    scores = head_scores(opened, batch, batch.input_ids)
    if opened.method.objective == "electric":
        return Observation(batch=batch, text_energy=only(is_ordinary, scores))
    return Observation(batch=batch, replaced_probability=only(is_asked, scores.sigmoid()))


@torch.no_grad()
def play(
    opened: OpenedModel,
    model: PretrainingModel,
    vocabulary: Vocabulary,
    batch: Batch,
    mask_config: MaskConfig,
    temperature: float,
    *,
    top: int,
) -> Observation:
    """Do what a training step does up to the losses, and write down what each token met.

    Args:
        opened: the model.
        model: its networks, joined.
        vocabulary: of the tokenizer and of all rows of the networks.
        batch: the text.
        mask_config: which tokens are chosen, and how they are hidden.
        temperature: of the distribution that replacements are drawn from.
        top: how many guesses.
    """
    masked = mask_batch(batch, mask_config, vocabulary)
    outcome = model(batch, masked, temperature=temperature)
    answer = outcome.answer
    corrupted = None if answer is None else answer.corrupted
    drawing = Drawing(model, mask_config, temperature)
    choices = list_choices(opened.tokenizer, batch, masked, outcome, drawing, top=top)
    if answer is None or corrupted is None:
        return Observation(batch=batch, choices=choices)
    parts = {"batch": batch, "choices": choices, "corrupted": corrupted}
    if opened.rtd_head is None:
        is_named = answer.is_scored
        return Observation(
            namings=name(opened, batch, corrupted.input_ids, is_named, top=top), **parts
        )
    assert answer.logits is not None
    is_asked = answer.is_scored
    suspicion = only(is_asked, answer.logits.float().sigmoid())
    if opened.method.objective != "electric":
        return Observation(replaced_probability=suspicion, **parts)
    log_noise = model.log_noise(corrupted, outcome.proposal, masked, temperature)
    return Observation(
        replaced_probability=suspicion,
        noise_probability=only(is_asked, log_noise.exp()),
        energy=only(is_asked, head_scores(opened, batch, corrupted.input_ids)),
        text_energy=only(is_asked, head_scores(opened, batch, batch.input_ids)),
        **parts,
    )


def only(where: Bool[Tensor, "B T"], numbers: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Put NaN at all other tokens."""
    return numbers.masked_fill(~where, torch.nan)


def head_scores(
    opened: OpenedModel, batch: Batch, input_ids: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Ask the head with one score per token."""
    encoder, head = opened.encoder.eval(), opened.rtd_head
    assert head is not None
    return head.eval()(encoder(input_ids, batch.key_mask, batch.token_type_ids)).float()


def name(
    opened: OpenedModel,
    batch: Batch,
    input_ids: Int[Tensor, "B T"],
    where: Bool[Tensor, "B T"],
    *,
    top: int,
) -> dict[Place, Naming]:
    """Let the main encoder name the original tokens, from what it sees.

    Args:
        opened: the model.
        batch: the text.
        input_ids: what the encoder sees.
        where: the tokens that are asked for.
        top: how many guesses.
    """
    encoder, head, gate_head = opened.encoder.eval(), opened.vocabulary_head, opened.copy_gate
    assert head is not None
    hidden = encoder(input_ids, batch.key_mask, batch.token_type_ids)[where]  # (N, D)
    logits = head.eval()(hidden, encoder.embeddings.table).float()  # (N, V)
    copying = [None] * len(hidden)
    if gate_head is None:
        chances = logits.softmax(dim=-1)
    else:
        seen, gate = input_ids[where], gate_head.eval()(hidden)
        generated, same = copy_log_probabilities(logits, gate, seen)
        chances = generated.scatter(-1, seen.unsqueeze(-1), same.unsqueeze(-1)).exp()
        copying = gate.float().sigmoid().tolist()
    best, text = chances.topk(min(top, chances.shape[-1]), dim=-1), batch.input_ids[where]
    of_text = chances.gather(-1, text.unsqueeze(-1)).squeeze(-1).tolist()
    first, original = chances.argmax(dim=-1).tolist(), text.tolist()
    return {
        (row, at): Naming(
            guesses=guesses(opened.tokenizer, best.indices[n], best.values[n]),
            original_probability=of_text[n],
            is_right=first[n] == original[n],
            copy_probability=copying[n],
        )
        for n, (row, at) in enumerate(where.nonzero().tolist())
    }


def describe(tokenizer: Tokenizer, observation: Observation) -> list[list[InspectedToken]]:
    """Put together what is known of each token; padding, too, which the caller cuts off."""
    special, batch, corrupted = special_ids(tokenizer), observation.batch, observation.corrupted
    numbers = {
        key: None if value is None else value.tolist()
        for key in ("replaced_probability", "noise_probability", "energy", "text_energy")
        for value in [getattr(observation, key)]
    }
    labels = seen = None
    if corrupted is not None:
        labels, seen = corrupted.is_replaced.tolist(), corrupted.input_ids.tolist()
    return [
        [
            InspectedToken(
                token=name_of(tokenizer, token),
                is_special=token in (special.cls, special.sep),
                choice=observation.choices.get((row, at)),
                seen=None if seen is None else name_of(tokenizer, seen[row][at]),
                is_replaced=None if labels is None else labels[row][at],
                is_conflict=bool(labels and seen and labels[row][at] and seen[row][at] == token),
                naming=observation.namings.get((row, at)),
                **{key: known(rows, row, at) for key, rows in numbers.items()},
            )
            for at, token in enumerate(ids)
        ]
        for row, ids in enumerate(batch.input_ids.tolist())
    ]


def known(rows: list[list[float]] | None, row: int, at: int) -> float | None:
    """Return a number, or None where there is none."""
    return None if rows is None or math.isnan(rows[row][at]) else rows[row][at]
