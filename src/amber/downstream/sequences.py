"""Encoded examples without padding, and the batches made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.data.order import shuffled
from amber.tasks.windows import IGNORED

MOST_IN_POOL: Final = 64
LEAST_POOLS: Final = 4
"""Examples are sorted by length in pools, of as many batches as the first says at most; in fewer
pools than the second, the same examples would meet in every epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequences:
    """The tokens of all examples, one after the other, with their labels."""

    input_ids: Int[np.ndarray, " S"]
    token_type_ids: Int[np.ndarray, " S"]
    starts: Int[np.ndarray, " N1"]
    """Where each sequence begins, and where the last one ends."""

    labels: Int[np.ndarray, "..."] | Float[np.ndarray, "..."]
    """Per sequence: a number of a class, a number, one per class (0 or 1), or the first and last
    token of the answer. Per token, for tags: the number of the tag, or `IGNORED`."""

    is_context: Bool[np.ndarray, " S"] | None = None
    """Of questions: the tokens of the context."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " N"]:
        """Tokens of each sequence."""
        return np.diff(self.starts)

    @property
    def has_token_labels(self) -> bool:
        """Whether there is a label for each token."""
        return self.labels.ndim == 1 and len(self.labels) == len(self.input_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskBatch:
    """Sequences side by side; padding is on the right."""

    input_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"] | None
    """None when every token is real: attention then needs no mask."""

    token_type_ids: Int[Tensor, "B T"] | None
    """None when all are 0."""

    labels: Int[Tensor, "B ..."] | Float[Tensor, "B ..."]
    is_context: Bool[Tensor, "B T"] | None

    @property
    def num_labels(self) -> int:
        """What the loss is a mean over: labels, labelled words, or starts and ends of answers."""
        if self.labels.is_floating_point():
            return self.labels.numel()
        return int((self.labels != IGNORED).sum())


def join_sequences(
    input_ids: Sequence[Int[np.ndarray, " _"]],
    token_type_ids: Sequence[Int[np.ndarray, " _"]],
    labels: Int[np.ndarray, "..."] | Float[np.ndarray, "..."],
    *,
    is_context: Sequence[Bool[np.ndarray, " _"]] | None = None,
) -> Sequences:
    """Put sequences one after the other."""
    lengths = np.array([len(ids) for ids in input_ids], dtype=np.int64)
    nothing = [np.zeros(0, dtype=np.int64)]
    return Sequences(
        input_ids=np.concatenate([*nothing, *input_ids]).astype(np.int32),
        token_type_ids=np.concatenate([*nothing, *token_type_ids]).astype(np.int8),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        labels=labels,
        is_context=None if is_context is None else np.concatenate([*is_context]),
    )


def collate(sequences: Sequences, rows: Int[np.ndarray, " B"], *, pad_id: int) -> TaskBatch:
    """Put some sequences side by side."""
    starts, lengths = sequences.starts[rows], sequences.lengths[rows]
    width = int(lengths.max())
    is_real = np.arange(width) < lengths[:, None]  # (B, T)
    places = (starts[:, None] + np.arange(width))[is_real]

    def spread(values: np.ndarray, filler: int) -> Tensor:
        table = np.full(is_real.shape, filler, dtype=np.int64)
        table[is_real] = values[places]
        return torch.from_numpy(table)

    types, labels = spread(sequences.token_type_ids, 0), torch.from_numpy(sequences.labels[rows])
    if sequences.has_token_labels:
        labels = spread(sequences.labels, IGNORED)
    context = None
    if sequences.is_context is not None:
        context = spread(sequences.is_context, 0).bool()
    return TaskBatch(
        input_ids=spread(sequences.input_ids, pad_id),
        attention_mask=None if is_real.all() else torch.from_numpy(is_real),
        token_type_ids=types if types.any() else None,
        labels=labels,
        is_context=context,
    )


def epoch_batches(
    lengths: Int[np.ndarray, " N"], *, batch_size: int, seed: int, epoch: int
) -> list[Int[np.ndarray, " _"]]:
    """Divide the examples of an epoch into batches of near-equal length.

    The examples are shuffled and divided into pools; each pool is sorted by length and cut into
    batches; the batches are shuffled. Each example is in one batch, and all but one are full.

    Args:
        lengths: tokens of each example.
        batch_size: examples per batch.
        seed: of the run.
        epoch: from 0.
    """
    order = permutation(len(lengths), seed=seed, epoch=epoch)
    num_batches, batches = -(-len(order) // batch_size), list[Int[np.ndarray, " _"]]()
    pool_size = batch_size * max(1, min(MOST_IN_POOL, num_batches // LEAST_POOLS))
    for start in range(0, len(order), pool_size):
        pool = order[start : start + pool_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
    places = permutation(len(batches), seed=seed, epoch=epoch)
    return [batches[place] for place in places]


def permutation(count: int, *, seed: int, epoch: int) -> Int[np.ndarray, " N"]:
    """Shuffle 0 to count - 1."""
    return shuffled(np.arange(count), np.full(count, epoch), count=count, seed=seed)


def sorted_batches(
    lengths: Int[np.ndarray, " N"], *, num_tokens: int
) -> Iterator[Int[np.ndarray, " _"]]:
    """Cut the examples, sorted by length, into batches of about as many tokens with padding."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, num_tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size


def micro_parts(rows: Int[np.ndarray, " B"], *, micro_size: int) -> list[Int[np.ndarray, " _"]]:
    """Cut a batch into parts that fit in memory; 0 leaves it whole."""
    size = micro_size or len(rows)
    return [rows[i : i + size] for i in range(0, len(rows), size)]
