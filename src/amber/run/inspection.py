"""Look at what a model does with a text, token by token: what `amber inspect` does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from amber.config import read_toml
from amber.data import noise
from amber.data.batch import Batch
from amber.errors import UserError
from amber.run.commands import InspectConfig
from amber.run.folders import OpenedModel, TrainedWith, join, open_model
from amber.run.inspected import InspectedSequence, Inspection
from amber.run.observation import describe, judge, play
from amber.run.pieces import Piece, cut_texts
from amber.run.setup import token_counts, vocabulary_of
from amber.tokens.config import Words
from amber.tokens.shards import load_manifest
from amber.tokens.tokenizer import SpecialIds, special_ids

BATCH_SIZE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """What is still known of the text that a model was trained on."""

    token_counts: Int[Tensor, " V"] | None = None
    words: Words = "none"


def inspect_text(config: InspectConfig) -> Inspection:
    """Mask, guess, draw and judge, with the numbers that the seed gives, in float32 on the CPU.

    Raises:
        UserError: the model cannot be read, a text has no token, or a setting has no effect.
    """
    opened = open_model(config.model)
    num_rows = opened.encoder.config.vocab_size
    corpus = known_corpus(opened.trained_with.path, num_rows=num_rows)
    missing = missing_noise(opened, corpus)
    refuse_idle(config, opened, missing)
    settings, notes = as_trained(opened.trained_with, corpus)
    notes = [f"{missing}: the text is judged as it is"] if missing else notes
    mask_config, temperature = settings.mask, settings.noise.temperature_at(1.0)
    if config.fraction is not None:
        mask_config = replace(mask_config, fraction=config.fraction)
    if config.temperature is not None:
        temperature = config.temperature
    length = min(settings.batch.length, opened.encoder.config.max_position_embeddings)
    pieces = cut_texts(
        config.text,
        opened.tokenizer,
        length=length,
        unicode_form=settings.unicode_form,
        words=corpus.words if mask_config.unit != "token" else "none",
    )
    refuse_empty(config.text, pieces)
    counts, cpu = corpus.token_counts, torch.device("cpu")
    vocabulary = vocabulary_of(opened.tokenizer, cpu, num_rows=num_rows, token_counts=counts)
    model = None if missing else join(opened, vocabulary, token_counts=counts)
    sequences: list[InspectedSequence] = []
    for start in range(0, len(pieces), BATCH_SIZE):
        some = pieces[start : start + BATCH_SIZE]
        batch = make_batch(some, special_ids(opened.tokenizer), first=start, seed=config.seed)
        if model is None:
            seen = judge(opened, vocabulary, batch, top=config.top)
        else:
            seen = play(opened, model, vocabulary, batch, mask_config, temperature, top=config.top)
        rows = describe(opened.tokenizer, seen)
        sequences += [
            InspectedSequence(
                text=piece.text,
                part=piece.part,
                num_parts=piece.num_parts,
                tokens=tuple(row[: len(piece.ids)]),
                score=score,
            )
            for piece, row, score in zip(some, rows, seen.scores(), strict=True)
        ]
    objective = opened.method.objective
    return Inspection(
        model=str(opened.path),
        kind=opened.kind,
        objective=objective,
        noise=None if missing or objective == "mlm" else opened.method.noise.source,
        label_rule="source" if objective == "electric" else opened.method.label_rule,
        fraction=mask_config.fraction,
        length=length,
        seed=config.seed,
        sequences=tuple(sequences),
        notes=tuple(notes),
    )


def known_corpus(path: Path | None, *, num_rows: int) -> Corpus:
    """Look up a run's data; what is gone, or is not the same any more, is not known.

    Args:
        path: of the run's config.toml; None where there is none.
        num_rows: of the token tables, which may be longer than the vocabulary.
    """
    if path is None:
        return Corpus()
    values = read_toml(path)
    data = Path(str(values.get("data")))
    try:
        manifest = load_manifest(data)
    except UserError:
        return Corpus()
    if manifest.fingerprint != values.get("data_fingerprint"):
        return Corpus()
    counts = token_counts(data)
    counts = F.pad(counts, (0, max(0, num_rows - len(counts))))
    return Corpus(token_counts=counts, words=manifest.words)


def missing_noise(opened: OpenedModel, corpus: Corpus) -> str:
    """Say what is not there that proposed the replacements in training; nothing if all is there."""
    if not opened.has_noise:
        is_two = opened.method.noise.source == "two_tower"
        what = "are no towers" if is_two else "is no generator"
        return f"there {what} beside {opened.path}"
    is_unigram = opened.method.objective != "mlm" and opened.method.noise.source == "unigram"
    if is_unigram and corpus.token_counts is None:
        return (
            f"the data that {opened.trained_with.path} names is gone or was changed, and with it "
            "the token frequencies that replacements are drawn by"
        )
    return ""


def as_trained(settings: TrainedWith, corpus: Corpus) -> tuple[TrainedWith, list[str]]:
    """Return a run's settings as far as they can be followed without its data, and what cannot."""
    mask, notes = settings.mask, list[str]()
    if mask.unit == "word" and corpus.words == "none":
        mask = replace(mask, unit="token")
        notes.append("where words begin is not known without the run's data: tokens are chosen")
    if mask.unit == "ngram" and corpus.token_counts is None:
        notes.append(
            "the run's data is not there: n-grams are of tokens, whether it had words or not"
        )
    if mask.frequency_power and corpus.token_counts is None:
        mask = replace(mask, frequency_power=0.0)
        notes.append("token frequencies are not known without the run's data: none is preferred")
    return replace(settings, mask=mask), notes


def refuse_idle(config: InspectConfig, opened: OpenedModel, missing: str) -> None:
    """Refuse settings without effect on this model.

    Args:
        config: of the command.
        opened: the model.
        missing: what proposes tokens and is not there.

    Raises:
        UserError: with the name of the setting.
    """
    if missing and config.fraction is not None:
        raise UserError(f"fraction has no effect: {missing}, so nothing is hidden; leave it out")
    if config.temperature is None:
        return
    why = missing
    if opened.kind == "mlm":
        why = f"{opened.path} is a masked language model"
    if why:
        raise UserError(f"temperature has no effect: {why}, so nothing is drawn; leave it out")
    if opened.method.noise.source == "uniform":
        raise UserError(
            f"temperature has no effect: {opened.path} was trained with noise.source uniform, by "
            "which all tokens are drawn alike; leave it out"
        )


def refuse_empty(texts: Sequence[str], pieces: Sequence[Piece]) -> None:
    """Refuse texts without a token.

    Raises:
        UserError: with the first of them.
    """
    empty = set(range(1, len(texts) + 1)) - {piece.text for piece in pieces}
    if empty:
        number = min(empty)
        raise UserError(f"text {number} ({texts[number - 1]!r}) has no token: give a sentence")


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
    epochs = np.zeros_like(numbers)
    drawn = [noise.uniforms(seed, s, epochs, numbers, width) for s in noise.BATCH_STREAMS]
    input_ids = torch.tensor(rows)
    starts = [piece.is_word_start for piece in pieces if piece.is_word_start is not None]
    starts = [row + [True] * (width - len(row)) for row in starts]
    return Batch(
        input_ids=input_ids,
        attention_mask=torch.from_numpy(np.arange(width) < sizes[:, None]),
        token_type_ids=torch.zeros_like(input_ids),
        noise=torch.from_numpy(np.stack(drawn)),
        examples=torch.from_numpy(numbers),
        is_word_start=torch.tensor(starts) if starts else None,
    )
