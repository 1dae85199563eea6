"""The chosen tokens of a batch: what was seen of them, believed, and drawn."""

from typing import NamedTuple

from jaxtyping import Float, Int
from tokenizers import Tokenizer
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import MaskConfig
from amber.electra.mask import Masked
from amber.electra.outcome import Outcome, Proposal
from amber.electra.pretraining import PretrainingModel
from amber.electra.sample import restrict
from amber.model.encoder import Encoder
from amber.run.inspected import Choice, Guess, Treatment

Place = tuple[int, int]
"""Row and position."""


class Drawing(NamedTuple):
    """What proposes tokens, and how."""

    model: PretrainingModel
    mask_config: MaskConfig
    """As it was used."""

    temperature: float
    """Of the distribution that replacements are drawn from."""


def list_choices(
    tokenizer: Tokenizer,
    batch: Batch,
    masked: Masked,
    outcome: Outcome,
    drawing: Drawing,
    *,
    top: int,
) -> dict[Place, Choice]:
    """Describe every chosen token.

    Args:
        tokenizer: for the names of the tokens.
        batch: the text.
        masked: the chosen positions.
        outcome: of the forward pass.
        drawing: how it came about.
        top: how many guesses.
    """
    proposal, answer = outcome.proposal, outcome.answer
    labels = batch.input_ids.gather(1, masked.positions)
    beliefs, chances = distributions(drawing.model, proposal, labels, drawing.temperature)
    best = beliefs.topk(min(top, beliefs.shape[-1]), dim=-1)
    is_hiding = isinstance(drawing.model.generator, Encoder)
    choices: dict[Place, Choice] = {}
    for row, slot in masked.is_used.nonzero().tolist():
        at = int(masked.positions[row, slot])
        sampled = way = shown = None
        if answer is not None:
            token = int(answer.corrupted.input_ids[row, at])
            chance = float(chances[row, slot, token])
            sampled = Guess(token=name_of(tokenizer, token), probability=chance)
        if is_hiding:
            way = treatment(float(batch.noise[1, row, at]), drawing.mask_config)
            shown = name_of(tokenizer, int(masked.input_ids[row, at]))
        likely = best.indices[row, slot], best.values[row, slot]
        choices[row, at] = Choice(
            treatment=way,
            shown=shown,
            guesses=() if proposal is None else guesses(tokenizer, *likely),
            original_probability=float(beliefs[row, slot, batch.input_ids[row, at]]),
            sampled=sampled,
        )
    return choices


def distributions(
    model: PretrainingModel,
    proposal: Proposal | None,
    labels: Int[Tensor, "B K"],
    temperature: float,
) -> tuple[Float[Tensor, "B K V"], Float[Tensor, "B K V"]]:
    """Return what is believed of each chosen token, and what replacements are drawn from.

    Args:
        model: with its settings of the draw.
        proposal: of its generator; None where no network proposes.
        labels: the chosen tokens of the text.
        temperature: of the draw; beliefs have temperature 1.
    """
    noise, forbidden_ids = model.method.noise, model.forbidden_ids
    excluded = labels if noise.forbid_original else None
    if proposal is None:
        assert model.fixed_scores is not None
        beliefs = restrict(model.fixed_scores, forbidden_ids=forbidden_ids)
        beliefs = beliefs.expand(*labels.shape, -1)
        scores = model.fixed_distribution(temperature).expand(*labels.shape, -1)
        scores = restrict(scores, forbidden_ids=forbidden_ids, excluded=excluded)
    else:
        beliefs = restrict(proposal.logits, forbidden_ids=forbidden_ids)
        scores = restrict(
            proposal.logits,
            forbidden_ids=forbidden_ids,
            temperature=temperature,
            top_k=noise.top_k,
            top_p=noise.top_p,
            excluded=excluded,
        )
    # A row without a token that may be drawn keeps its own: NaN, from a softmax of nothing.
    return beliefs.softmax(dim=-1), scores.softmax(dim=-1).nan_to_num(0.0)


def treatment(draw: float, config: MaskConfig) -> Treatment:
    """Say how a chosen token is shown, by its number, as `mask` does."""
    if draw < config.keep_fraction:
        return "kept"
    return "random" if draw < config.keep_fraction + config.random_fraction else "mask"


def guesses(
    tokenizer: Tokenizer, ids: Int[Tensor, " N"], chances: Float[Tensor, " N"]
) -> tuple[Guess, ...]:
    """Write tokens with their probabilities."""
    return tuple(
        Guess(token=name_of(tokenizer, token), probability=chance)
        for token, chance in zip(ids.tolist(), chances.tolist(), strict=True)
    )


def name_of(tokenizer: Tokenizer, token: int) -> str:
    """Return a token as the tokenizer writes it; rows without one by their number."""
    return tokenizer.id_to_token(token) or f"[row {token}]"
