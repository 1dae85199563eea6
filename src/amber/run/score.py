"""Say how acceptable texts are to a model: sums over their tokens, in nats.

Four scores, each over the ordinary tokens (not [CLS] and [SEP]): the pseudo-log-likelihood, for
which each token is hidden in turn (Salazar et al. 2020); the discriminator's log P(original), in
one pass; minus the energies of Electric, in one pass ("Pre-Training Transformers as Energy-Based
Cloze Models", Clark et al. 2020); and log p with which an encoder that names tokens (replace_mlm,
all_tokens_mlm) names the ones that it sees, in one pass. As in sampling, tokens that never stand in
a text get no probability: [CLS], [SEP], [PAD], [MASK], and rows of the table without a token.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from amber.electra.loss import copy_log_probabilities
from amber.errors import RunError, UserError
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead
from amber.run.commands import ScoreBy
from amber.run.device import Process
from amber.run.folders import OpenedModel
from amber.run.pieces import Piece, cut_texts
from amber.run.setup import Vocabulary, vocabulary_of

TOKENS_PER_PASS = {"cpu": 4096, "cuda": 65_536}
SCORES_PER_PASS = 1 << 26
"""Most scores of vocabulary entries at one time: 256 MB."""

NAMES: dict[str, str] = {
    "pll": "pseudo-log-likelihood",
    "rtd": "log P(original)",
    "energy": "minus the energies",
    "naming": "log p of naming each token",
}

OnProgress = Callable[[float], None]
"""Is told the share of the work that is done, from 0 on."""

OnCount = Callable[[float, int | None], None]
"""Is told how many are done, and how many there are where that is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scorer:
    """A model on its device, and how it is asked."""

    opened: OpenedModel
    by: ScoreBy
    length: int
    """Longest sequence, in tokens, [CLS] and [SEP] included."""

    vocabulary: Vocabulary
    process: Process


@dataclass(frozen=True, slots=True)
class Score:
    """Of one text."""

    value: float | None
    """In nats; None without a token."""

    num_tokens: int
    """Without [CLS] and [SEP]."""

    windows: tuple[int, ...]
    """The sequence that each is, by number: equal where the tokens are, for texts scored
    together."""


def ways_to_score(opened: OpenedModel) -> tuple[ScoreBy, ...]:
    """Return what a model can score by; the first is the default."""
    if opened.kind == "electric":
        return ("energy",)
    ways: list[ScoreBy] = ["rtd"] if opened.rtd_head is not None else []
    if opened.kind == "namer":
        ways.append("naming")
    return (*ways, "pll") if opened.mlm_head is not None else tuple(ways)


def open_scorer(
    opened: OpenedModel, process: Process, *, by: ScoreBy | None, length: int | None
) -> Scorer:
    """Put a model on the device and settle how it is asked.

    Args:
        opened: the model.
        process: where to compute.
        by: None takes what the model has.
        length: None takes that of the model's run.

    Raises:
        UserError: the model has no such score, or takes no sequences of that length.
    """
    ways = ways_to_score(opened)
    if by is None:
        by = ways[0]
    elif by not in ways:
        raise UserError(
            f"by is {by}, but {opened.path} has no {NAMES[by]} (it is of the kind {opened.kind}): "
            f"set it to {' or '.join(ways)}, or leave it out"
        )
    settings, longest = opened.trained_with, opened.encoder.config.max_position_embeddings
    if length is None:
        length = min(settings.batch.length, longest)
    if not 3 <= length <= longest:
        raise UserError(
            f"length is {length}, but {opened.path} takes at least 3 tokens and {longest} at most"
        )
    heads = (opened.rtd_head, opened.vocabulary_head, opened.copy_gate)
    asked = (opened.generator, opened.mlm_head) if by == "pll" else (opened.encoder, *heads)
    for network in asked:
        if network is not None:
            network.to(process.device).eval()
    return Scorer(
        opened=opened,
        by=by,
        length=length,
        vocabulary=vocabulary_of(
            opened.tokenizer, process.device, num_rows=opened.encoder.config.vocab_size
        ),
        process=process,
    )


def score_texts(
    scorer: Scorer, texts: Sequence[str], *, on_progress: OnProgress = lambda share: None
) -> list[Score]:
    """Score texts together.

    Sequences of the same tokens are scored once, so that equal texts get equal scores to the last
    bit. With several processes each scores a share, and all return everything.

    Args:
        scorer: the model.
        texts: of any length; long ones are cut into windows.
        on_progress: is called now and then.

    Raises:
        RunError: a score is no number.
    """
    pieces = cut_texts(
        texts,
        scorer.opened.tokenizer,
        length=scorer.length,
        unicode_form=scorer.opened.trained_with.unicode_form,
    )
    numbers: dict[tuple[int, ...], int] = {}
    places = [numbers.setdefault(tuple(piece.ids), len(numbers)) for piece in pieces]
    process, sequences = scorer.process, list(numbers)
    shares = process.gather(
        score_sequences(scorer, sequences[process.rank :: process.num_ranks], on_progress)
    )
    values = [shares[i % process.num_ranks][i // process.num_ranks] for i in range(len(sequences))]
    if not all(map(math.isfinite, values)):
        raise RunError(f"{scorer.opened.path}: a score is no number: its weights are damaged")
    return add_up(len(texts), pieces, places, values)


def add_up(
    num_texts: int, pieces: Sequence[Piece], places: Sequence[int], values: Sequence[float]
) -> list[Score]:
    """Add up the scores of the windows of each text.

    Args:
        num_texts: how many there are.
        pieces: the windows of all texts.
        places: which sequence each of them is.
        values: the score of each sequence.
    """
    scores = [Score(None, 0, ())] * num_texts
    for piece, place in zip(pieces, places, strict=True):
        before = scores[piece.text - 1]
        scores[piece.text - 1] = Score(
            (before.value or 0.0) + values[place],
            before.num_tokens + len(piece.ids) - 2,
            (*before.windows, place),
        )
    return scores


@torch.no_grad()
def score_sequences(
    scorer: Scorer, sequences: Sequence[Sequence[int]], on_progress: OnProgress
) -> list[float]:
    """Score sequences of ids, those of one length together, so that there is no padding."""
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for number, ids in enumerate(sequences):
        by_length[len(ids)].append(number)
    work = {length: len(rows) * passes(scorer, length) for length, rows in by_length.items()}
    budget = TOKENS_PER_PASS.get(scorer.process.device.type, TOKENS_PER_PASS["cpu"])
    values, done = torch.zeros(len(sequences), dtype=torch.float64), 0
    on_progress(0.0)
    for length, rows in sorted(by_length.items()):
        step = max(1, budget // passes(scorer, length))  # of sequences
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            ids = torch.tensor([sequences[row] for row in some], device=scorer.process.device)
            values[some] = score_batch(scorer, ids, budget).cpu()
            done += len(some) * passes(scorer, length)
            on_progress(done / sum(work.values()))
    return values.tolist()


def passes(scorer: Scorer, length: int) -> int:
    """Count the tokens that the network reads to score a sequence."""
    return length * (length - 2) if scorer.by == "pll" else length


def score_batch(scorer: Scorer, ids: Int[Tensor, "B T"], budget: int) -> Float[Tensor, " B"]:
    """Score sequences of one length, in float64.

    Args:
        scorer: the model.
        ids: [CLS], ordinary tokens, [SEP].
        budget: tokens in one forward pass of the pseudo-log-likelihood.
    """
    opened, process = scorer.opened, scorer.process
    if scorer.by == "pll":
        assert isinstance(opened.generator, Encoder)
        assert opened.mlm_head is not None
        return pseudo_log_likelihood(
            opened.generator, opened.mlm_head, ids, scorer.vocabulary, process, budget
        )
    with process.autocast():
        hidden = opened.encoder(ids)
    if scorer.by == "naming":
        return naming(opened, hidden[:, 1:-1], ids[:, 1:-1], scorer.vocabulary)
    assert opened.rtd_head is not None
    logits = opened.rtd_head(hidden.float())[:, 1:-1]  # (B, T - 2)
    return (-logits if scorer.by == "energy" else F.logsigmoid(-logits)).double().sum(1)


def naming(
    opened: OpenedModel,
    hidden: Float[Tensor, "B T D"],
    ids: Int[Tensor, "B T"],
    vocabulary: Vocabulary,
) -> Float[Tensor, " B"]:
    """Add up log p with which an encoder names each token that it sees, or copies it."""
    assert opened.vocabulary_head is not None
    flat = hidden.float().flatten(0, 1)
    scores = opened.vocabulary_head(flat, opened.encoder.embeddings.table)
    scores.index_fill_(1, vocabulary.forbidden_ids, -torch.inf)
    if opened.copy_gate is None:
        nats = -F.cross_entropy(scores, ids.flatten(), reduction="none")
    else:
        _, nats = copy_log_probabilities(scores, opened.copy_gate(flat), ids.flatten())
    return nats.view_as(ids).double().sum(1)


def pseudo_log_likelihood(
    encoder: Encoder,
    head: MLMHead,
    ids: Int[Tensor, "B T"],
    vocabulary: Vocabulary,
    process: Process,
    budget: int,
) -> Float[Tensor, " B"]:
    """Hide each token in a copy of its own, and add up log P(token) where it was hidden."""
    num_rows, length = ids.shape
    room = length - 2
    step = max(1, min(budget // length, SCORES_PER_PASS // encoder.config.vocab_size))  # of copies
    sums = torch.zeros(num_rows, dtype=torch.float64, device=ids.device)
    for start in range(0, num_rows * room, step):
        copy = torch.arange(start, min(start + step, num_rows * room), device=ids.device)
        row, position = copy // room, copy % room + 1
        shown = ids[row].scatter_(1, position[:, None], vocabulary.special.mask)  # (N, T)
        with process.autocast():
            hidden = encoder(shown)[torch.arange(len(copy), device=ids.device), position]  # (N, D)
        scores = head(hidden.float(), encoder.embeddings.table)  # (N, V)
        scores.index_fill_(1, vocabulary.forbidden_ids, -torch.inf)
        label = ids[row, position]
        sums.index_add_(0, row, -F.cross_entropy(scores, label, reduction="none").double())
    return sums
