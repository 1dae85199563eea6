"""Look at what a model does with a text, token by token: what `amber inspect` does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from tokenizers import Tokenizer
from torch import Tensor

from amber.data import noise
from amber.data.batch import Batch
from amber.electra.config import MaskConfig, NoiseConfig
from amber.electra.mask import Masked
from amber.electra.pretraining import Outcome, PretrainingModel
from amber.errors import UserError
from amber.run.commands import InspectConfig
from amber.run.evaluation import mask_batch
from amber.run.folders import OpenedModel, join, open_model
from amber.run.inspected import (
    Choice,
    Guess,
    InspectedSequence,
    InspectedToken,
    Inspection,
    Treatment,
)
from amber.run.setup import Vocabulary, vocabulary_of
from amber.text.clean import UnicodeForm, normalize_document
from amber.tokens.encode import Encoder
from amber.tokens.tokenizer import SpecialIds, special_ids

BATCH_SIZE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The tokens of one sequence, special ones included."""

    text: int
    part: int
    num_parts: int
    ids: list[int]


def inspect_text(config: InspectConfig) -> Inspection:
    """Mask, guess, draw and judge, with the numbers that the seed gives, in float32 on the CPU.

    Raises:
        UserError: the model cannot be read, a text has no token, or a setting has no effect.
    """
    opened = open_model(config.model)
    refuse_idle(config, opened)
    settings = opened.trained_with
    mask_config, noise_config = settings.mask, settings.noise
    if config.fraction is not None:
        mask_config = replace(mask_config, fraction=config.fraction)
    if config.temperature is not None:
        noise_config = NoiseConfig(temperature=config.temperature)
    length = min(settings.batch.length, opened.encoder.config.max_position_embeddings)
    pieces = cut_texts(
        config.text, opened.tokenizer, length=length, unicode_form=settings.unicode_form
    )
    num_rows = opened.encoder.config.vocab_size
    vocabulary = vocabulary_of(opened.tokenizer, torch.device("cpu"), num_rows=num_rows)
    model = None if opened.kind == "discriminator" else join(opened, vocabulary)
    sequences: list[InspectedSequence] = []
    for start in range(0, len(pieces), BATCH_SIZE):
        some = pieces[start : start + BATCH_SIZE]
        batch = make_batch(some, special_ids(opened.tokenizer), first=start, seed=config.seed)
        if model is None:
            tokens = judge(opened, batch)
        else:
            temperature = noise_config.temperature_at(1.0)
            tokens = play(
                opened, model, vocabulary, batch, mask_config, temperature, top=config.top
            )
        sequences += [
            InspectedSequence(
                text=piece.text,
                part=piece.part,
                num_parts=piece.num_parts,
                tokens=tuple(row[: len(piece.ids)]),
            )
            for piece, row in zip(some, tokens, strict=True)
        ]
    return Inspection(
        model=str(opened.path),
        kind=opened.kind,
        fraction=mask_config.fraction,
        length=length,
        seed=config.seed,
        sequences=tuple(sequences),
    )


def refuse_idle(config: InspectConfig, opened: OpenedModel) -> None:
    """Refuse settings without effect on this kind of model.

    Raises:
        UserError: with the name of the setting.
    """
    if opened.kind == "discriminator" and config.fraction is not None:
        raise UserError(
            f"fraction has no effect: there is no generator beside {opened.path}, so nothing is "
            "hidden; leave it out"
        )
    if opened.kind != "pair" and config.temperature is not None:
        raise UserError(
            f"temperature has no effect: {opened.path} has no generator and discriminator, so "
            "nothing is drawn; leave it out"
        )


def cut_texts(
    texts: Sequence[str], tokenizer: Tokenizer, *, length: int, unicode_form: UnicodeForm
) -> list[Piece]:
    """Tokenise texts as `amber prepare` does, and cut each into sequences.

    Args:
        texts: as the user gave them; a special token's name in them is plain text.
        tokenizer: of the model.
        length: longest sequence, in tokens.
        unicode_form: the normal form of the text that the model was trained on.

    Raises:
        UserError: a text has no token.
    """
    special, encoder = special_ids(tokenizer), Encoder(tokenizer)
    pieces: list[Piece] = []
    for number, text in enumerate(texts, 1):
        ids = encoder.encode([normalize_document(text, form=unicode_form)[0]]).ids.tolist()
        if not ids:
            raise UserError(f"text {number} ({text!r}) has no token: give a sentence")
        room = length - 2
        parts = [ids[start : start + room] for start in range(0, len(ids), room)]
        pieces += [
            Piece(
                text=number,
                part=part,
                num_parts=len(parts),
                ids=[special.cls, *some, special.sep],
            )
            for part, some in enumerate(parts, 1)
        ]
    return pieces


def make_batch(pieces: Sequence[Piece], special: SpecialIds, *, first: int, seed: int) -> Batch:
    """Pad sequences and draw their noise.

    Args:
        pieces: sequences.
        special: for the padding.
        first: number of the first of them, which takes the place of an example number.
        seed: of the noise.
    """
    sizes = np.array([len(piece.ids) for piece in pieces])
    width = int(sizes.max())
    rows = [piece.ids + [special.pad] * (width - len(piece.ids)) for piece in pieces]
    numbers = np.arange(first, first + len(pieces), dtype=np.int64)
    streams = (noise.CHOOSE, noise.TREAT, noise.RANDOM_TOKEN, noise.SAMPLE)
    drawn = [noise.uniforms(seed, s, np.zeros_like(numbers), numbers, width) for s in streams]
    input_ids = torch.tensor(rows)
    return Batch(
        input_ids=input_ids,
        attention_mask=torch.from_numpy(np.arange(width) < sizes[:, None]),
        token_type_ids=torch.zeros_like(input_ids),
        noise=torch.from_numpy(np.stack(drawn)),
        examples=torch.from_numpy(numbers),
    )


@torch.no_grad()
def judge(opened: OpenedModel, batch: Batch) -> list[list[InspectedToken]]:
    """Ask a discriminator alone about the text as it is."""
    assert opened.rtd_head is not None
    encoder, head = opened.encoder.eval(), opened.rtd_head.eval()
    logits = head(encoder(batch.input_ids, batch.attention_mask, batch.token_type_ids))
    return describe(opened.tokenizer, batch, {}, None, logits)


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
) -> list[list[InspectedToken]]:
    """Do what a training step does up to the losses, and write down what each token met.

    Args:
        opened: for the names of the tokens.
        model: its networks, joined.
        vocabulary: of the tokenizer and of all rows of the networks.
        batch: the text.
        mask_config: which tokens are hidden, and how.
        temperature: of the softmax that replacements are drawn from.
        top: how many guesses.
    """
    masked = mask_batch(batch, mask_config, vocabulary)
    outcome: Outcome = model(batch, masked, temperature=temperature)
    scores = outcome.mlm_logits.float()
    scores.index_fill_(-1, vocabulary.forbidden_ids, -torch.inf)
    beliefs, chances = scores.softmax(-1), (scores / temperature).softmax(-1)
    choices = list_choices(
        opened, batch, masked, outcome, beliefs, chances, mask_config=mask_config, top=top
    )
    if outcome.rtd is None:
        return describe(opened.tokenizer, batch, choices, None, None)
    return describe(
        opened.tokenizer, batch, choices, outcome.rtd.is_replaced.tolist(), outcome.rtd.logits
    )


def list_choices(
    opened: OpenedModel,
    batch: Batch,
    masked: Masked,
    outcome: Outcome,
    beliefs: Float[Tensor, "B K V"],
    chances: Float[Tensor, "B K V"],
    *,
    mask_config: MaskConfig,
    top: int,
) -> dict[tuple[int, int], Choice]:
    """Describe every chosen token, by row and position.

    Args:
        opened: for the names of the tokens.
        batch: the text.
        masked: the chosen positions.
        outcome: of the forward pass.
        beliefs: the generator's probabilities, at temperature 1.
        chances: those that replacements are drawn from, at the run's temperature.
        mask_config: as it was used.
        top: how many guesses.
    """
    best = beliefs.topk(min(top, beliefs.shape[-1]), dim=-1)
    tokenizer = opened.tokenizer
    choices: dict[tuple[int, int], Choice] = {}
    for row, slot in masked.is_used.nonzero().tolist():
        at = int(masked.positions[row, slot])
        sampled = None
        if outcome.rtd is not None:
            token = int(outcome.rtd.corrupted[row, at])
            sampled = Guess(
                token=name_of(tokenizer, token), probability=float(chances[row, slot, token])
            )
        guesses = zip(
            best.indices[row, slot].tolist(), best.values[row, slot].tolist(), strict=True
        )
        choices[row, at] = Choice(
            treatment=treatment(float(batch.noise[1, row, at]), mask_config),
            shown=name_of(tokenizer, int(masked.input_ids[row, at])),
            guesses=tuple(Guess(token=name_of(tokenizer, t), probability=p) for t, p in guesses),
            original_probability=float(beliefs[row, slot, batch.input_ids[row, at]]),
            sampled=sampled,
        )
    return choices


def treatment(draw: float, config: MaskConfig) -> Treatment:
    """Say how a chosen token is shown, by its number, as `mask` does."""
    if draw < config.keep_fraction:
        return "kept"
    return "random" if draw < config.keep_fraction + config.random_fraction else "mask"


def describe(
    tokenizer: Tokenizer,
    batch: Batch,
    choices: dict[tuple[int, int], Choice],
    labels: list[list[bool]] | None,
    logits: Float[Tensor, "B T"] | None,
) -> list[list[InspectedToken]]:
    """Put together what is known of each token; padding, too, which the caller cuts off."""
    special = special_ids(tokenizer)
    suspicion = None if logits is None else logits.float().sigmoid().tolist()
    return [
        [
            InspectedToken(
                token=name_of(tokenizer, token),
                is_special=token in (special.cls, special.sep),
                choice=choices.get((row, at)),
                is_replaced=None if labels is None else labels[row][at],
                replaced_probability=None if suspicion is None else suspicion[row][at],
            )
            for at, token in enumerate(ids)
        ]
        for row, ids in enumerate(batch.input_ids.tolist())
    ]


def name_of(tokenizer: Tokenizer, token: int) -> str:
    """Return a token as the tokenizer writes it; rows without one by their number."""
    return tokenizer.id_to_token(token) or f"[row {token}]"
