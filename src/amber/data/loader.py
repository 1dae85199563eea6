"""The batches of each step, for one rank: a pure function of the step number.

Place p of the endless stream of examples is place p mod N of epoch p div N. Step s takes places
s * size to (s + 1) * size - 1, so each example is used once per epoch whatever the number of
ranks, steps straddle epochs, and nothing is dropped or repeated. Within a step the examples are
sorted by length and dealt out as micro-batches of near-equal length: less padding, the same sums.
Every rank has the same number of micro-batches; where the examples do not suffice, one is a row of
padding, which counts nothing.
"""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from amber.data.batch import Batch, build_batch, empty_batch
from amber.data.config import BatchConfig
from amber.data.examples import Examples, index_examples
from amber.data.order import shuffled
from amber.errors import UserError
from amber.tokens.shards import Shards
from amber.tokens.tokenizer import SpecialIds


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One split of a data set, laid out as examples."""

    shards: Shards
    layout: Examples
    special: SpecialIds
    seed: int
    multiple: int
    """Widths of batches come in steps of this many tokens."""
    with_words: bool = False
    """Whether batches say where words begin."""


def open_source(
    shards: Shards,
    special: SpecialIds,
    *,
    length: int,
    pair_fraction: float,
    seed: int,
    multiple: int = 8,
    with_words: bool = False,
) -> Source:
    """Lay out a split as examples.

    Raises:
        UserError: the split holds no tokens, or not where words begin when that is asked for.
    """
    if shards.num_tokens == 0:
        raise UserError(
            f"{shards.data_dir}: the split {shards.split} holds no tokens: prepare the text with a "
            "held-out fraction above 0 and at most 0.5"
        )
    if with_words and not shards.has_words:
        raise UserError(
            f"{shards.data_dir}: does not say where words begin: prepare the text again with "
            "amber prepare --words tokenizer, or --words jieba for Chinese"
        )
    layout = index_examples(shards.offsets, length=length, pair_fraction=pair_fraction, seed=seed)
    return Source(
        shards=shards,
        layout=layout,
        special=special,
        seed=seed,
        multiple=multiple,
        with_words=with_words,
    )


def step_batches(
    source: Source, step: int, *, size: int, micro_size: int, rank: int = 0, num_ranks: int = 1
) -> list[Batch]:
    """Return one rank's micro-batches of a step; every rank gets the same number of them.

    Args:
        source: the training split.
        step: counted from 0.
        size: sequences of the step, over all ranks.
        micro_size: most sequences in one micro-batch; 0 = no limit.
        rank: of this process.
        num_ranks: number of processes.

    Raises:
        UserError: fewer sequences than ranks.
    """
    if size < num_ranks:
        raise UserError(f"batch.size ({size}) is below the number of processes ({num_ranks})")
    places = np.arange(step * size, (step + 1) * size, dtype=np.int64)
    epochs, within = np.divmod(places, source.layout.count)
    examples = shuffled(within, epochs, count=source.layout.count, seed=source.seed)
    starts, stops, _ = source.layout.spans(examples)
    by_length = np.argsort(starts - stops, kind="stable")  # longest first
    share = -(-size // num_ranks)
    rounds = 1 if micro_size == 0 else -(-share // micro_size)
    pieces = np.array_split(by_length, rounds * num_ranks)
    return [
        _build(source, examples=examples[piece], epochs=epochs[piece])
        for piece in pieces[rank::num_ranks]
    ]


def train_batches(
    source: Source, config: BatchConfig, *, first_step: int, rank: int, num_ranks: int
) -> Generator[list[Batch], None, None]:
    """Yield the micro-batches of each step for ever, prepared ahead by threads."""

    def make(step: int) -> list[Batch]:
        return step_batches(
            source,
            step,
            size=config.size,
            micro_size=config.micro_size,
            rank=rank,
            num_ranks=num_ranks,
        )

    if config.num_workers == 0:
        step = first_step
        while True:
            yield make(step)
            step += 1
    with ThreadPoolExecutor(config.num_workers, thread_name_prefix="loader") as pool:
        ahead = config.num_workers + 1
        coming = [pool.submit(make, step) for step in range(first_step, first_step + ahead)]
        step = first_step + ahead
        try:
            while True:
                coming.append(pool.submit(make, step))
                step += 1
                yield coming.pop(0).result()
        finally:
            for future in coming:
                future.cancel()


def held_out_batches(
    source: Source, *, num_examples: int, batch_size: int, rank: int = 0, num_ranks: int = 1
) -> Iterator[Batch]:
    """Yield the first examples of a fixed order once, with fixed noise: the same for every run.

    Args:
        source: the held-out split.
        num_examples: how many in all, over all ranks; 0 = every one.
        batch_size: sequences per batch.
        rank: of this process; rank r takes batches r, r + num_ranks, ...
        num_ranks: number of processes.
    """
    count = source.layout.count
    places = np.arange(min(num_examples or count, count), dtype=np.int64)
    epochs = np.zeros_like(places)
    examples = shuffled(places, epochs, count=count, seed=source.seed)
    starts, stops, _ = source.layout.spans(examples)
    examples = examples[np.argsort(starts - stops, kind="stable")]
    for start in range(rank * batch_size, len(examples), num_ranks * batch_size):
        chosen = examples[start : start + batch_size]
        yield _build(source, examples=chosen, epochs=np.zeros_like(chosen))


def _build(source: Source, *, examples: np.ndarray, epochs: np.ndarray) -> Batch:
    """Read examples of a source; none gives a row of padding."""
    if len(examples) == 0:
        width = min(source.multiple, source.layout.length)
        return empty_batch(source.special, width=width, with_words=source.with_words)
    return build_batch(
        source.shards,
        source.layout,
        source.special,
        examples=examples,
        epochs=epochs,
        seed=source.seed,
        multiple=source.multiple,
        with_words=source.with_words,
    )
