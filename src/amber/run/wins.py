"""Count the minimal pairs that a model wins: what `amber evaluate --pairs` does."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from amber.errors import UserError
from amber.run.commands import EvaluateConfig, ScoreBy
from amber.run.device import open_process
from amber.run.folders import open_model
from amber.run.pairs import Pair, read_pairs
from amber.run.score import OnCount, Score, open_scorer, score_texts

CHANCE = 0.5
"""The accuracy of a coin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wins:
    """Of the pairs of one paradigm, one phenomenon, or all."""

    name: str
    phenomenon: str
    """Of a paradigm; empty for the others, and where the data names none."""

    num_pairs: int
    num_ties: int
    """Pairs with equal scores, which count half."""

    accuracy: float
    """Share of the pairs whose good sentence has the higher score."""

    standard_error: float
    """Of the accuracy, were the pairs drawn independently."""

    num_same_length: int
    """Pairs whose sentences have equally many tokens."""

    same_length_accuracy: float | None
    """In those pairs; None where there are none."""

    shorter_accuracy: float
    """What the choice of the sentence with fewer tokens reaches; equally many count half."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairWins:
    """What was counted on one set of pairs."""

    model: str
    pairs: str
    by: ScoreBy
    length: int
    """Longest sequence, in tokens; longer sentences were cut into windows."""

    num_cut: int
    """Sentences that were."""

    limit: int | None
    """Pairs of each paradigm, at most; None: all."""

    num_identical: int
    """Pairs whose two sentences are the same tokens to the model: ties in any case."""

    chance: float
    total: Wins
    paradigm_mean: float
    """Of the accuracies of the paradigms, each counted once."""

    paradigm_standard_error: float | None
    """Of that mean, from the spread of the paradigms; None where there is one only."""

    phenomena: tuple[Wins, ...]
    paradigms: tuple[Wins, ...]


def evaluate_pairs(
    config: EvaluateConfig, *, on_count: OnCount = lambda done, total: None
) -> PairWins:
    """Score the sentences of minimal pairs and count how often the good one scores higher.

    Args:
        config: which model, which pairs.
        on_count: is called now and then with the pairs done, and how many there are.

    Raises:
        UserError: the model or the pairs cannot be read, or a sentence has no token.
    """
    assert config.pairs is not None
    pairs = read_pairs(config.pairs, limit=config.pairs_limit)
    opened = open_model(config.model)
    precision = config.precision or opened.trained_with.precision
    with open_process(config.device, precision) as process:
        scorer = open_scorer(opened, process, by=config.by, length=config.length)
        texts = [text for pair in pairs for text in (pair.good, pair.bad)]
        scores = score_texts(
            scorer, texts, on_progress=lambda share: on_count(share * len(pairs), len(pairs))
        )
    refuse_empty(pairs, scores)
    paradigms, phenomena, total = count_wins(pairs, scores)
    mean, error = mean_of([wins.accuracy for wins in paradigms])
    return PairWins(
        model=str(opened.path),
        pairs=str(config.pairs),
        by=scorer.by,
        length=scorer.length,
        num_cut=sum(len(score.windows) > 1 for score in scores),
        limit=config.pairs_limit,
        num_identical=sum(
            good.windows == bad.windows for good, bad in zip(scores[::2], scores[1::2], strict=True)
        ),
        chance=CHANCE,
        total=total,
        paradigm_mean=mean,
        paradigm_standard_error=error,
        phenomena=tuple(phenomena),
        paradigms=tuple(paradigms),
    )


def refuse_empty(pairs: Sequence[Pair], scores: Sequence[Score]) -> None:
    """Refuse sentences without a token.

    Args:
        pairs: as they were read.
        scores: two for each pair: of the good sentence, then of the bad one.

    Raises:
        UserError: with the place of the first.
    """
    for number, score in enumerate(scores):
        if score.value is None:
            pair = pairs[number // 2]
            text = pair.bad if number % 2 else pair.good
            raise UserError(f"{pair.place}: the sentence {text!r} has no token: mend the record")


def count_wins(
    pairs: Sequence[Pair], scores: Sequence[Score]
) -> tuple[list[Wins], list[Wins], Wins]:
    """Count by paradigm, by phenomenon, and in all.

    Args:
        pairs: in any order.
        scores: two for each pair: of the good sentence, then of the bad one.
    """
    values = np.array([score.value for score in scores], dtype=np.float64).reshape(-1, 2)
    lengths = np.array([score.num_tokens for score in scores], dtype=np.int64).reshape(-1, 2)
    paradigms: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    phenomena: defaultdict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        paradigms[pair.phenomenon, pair.paradigm].append(number)
        phenomena[pair.phenomenon].append(number)
    return (
        [
            wins_of(values[rows], lengths[rows], name=paradigm, phenomenon=phenomenon)
            for (phenomenon, paradigm), rows in sorted(paradigms.items())
        ],
        [
            wins_of(values[rows], lengths[rows], name=name)
            for name, rows in sorted(phenomena.items())
        ],
        wins_of(values, lengths, name="all"),
    )


def wins_of(
    values: Float64[np.ndarray, "N 2"],
    lengths: Int64[np.ndarray, "N 2"],
    *,
    name: str,
    phenomenon: str = "",
) -> Wins:
    """Count the pairs that are won.

    Args:
        values: scores of the good and the bad sentence.
        lengths: their tokens.
        name: of the pairs.
        phenomenon: of a paradigm.
    """
    points = (1.0 + np.sign(values[:, 0] - values[:, 1])) / 2  # 0, 1/2 or 1
    shorter = (1.0 + np.sign(lengths[:, 1] - lengths[:, 0])) / 2
    is_same = lengths[:, 0] == lengths[:, 1]
    return Wins(
        name=name,
        phenomenon=phenomenon,
        num_pairs=len(points),
        num_ties=int((points == 0.5).sum()),
        accuracy=float(points.mean()),
        standard_error=float(points.std() / math.sqrt(len(points))),
        num_same_length=int(is_same.sum()),
        same_length_accuracy=float(points[is_same].mean()) if is_same.any() else None,
        shorter_accuracy=float(shorter.mean()),
    )


def mean_of(accuracies: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of the paradigms, and its standard error by their spread."""
    values = np.array(accuracies)
    if len(values) < 2:
        return float(values.mean()), None
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
