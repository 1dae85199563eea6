"""Random numbers about data as a pure function of (seed, epoch, example, position).

Nothing is drawn from a state, so resuming, and changing the number of workers, ranks or
micro-batches, changes nothing that is trained on. The mixing function is the finaliser of
SplitMix64 (Steele, Lea and Flood 2014), applied to a counter.
"""

from typing import Final

import numpy as np
from jaxtyping import Float32, Int64, UInt64

ORDER: Final = 1  # of the examples in an epoch
CHOOSE: Final = 2  # which positions are masked
TREAT: Final = 3  # [MASK], kept, or replaced by a random token
RANDOM_TOKEN: Final = 4  # which random token
SAMPLE: Final = 5  # which of the generator's tokens
PAIR_DOCUMENT: Final = 6  # which documents are in the pair layout
PAIR_CUT: Final = 7  # where a pair is cut
DROPOUT: Final = 8  # of torch's generator, once per step
NGRAM: Final = 9  # how many words are masked together

BATCH_STREAMS: Final = (CHOOSE, TREAT, RANDOM_TOKEN, SAMPLE, NGRAM)
"""Those that a batch carries, in this order."""

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)


def uniforms(
    seed: int,
    stream: int,
    epochs: Int64[np.ndarray, " B"],
    examples: Int64[np.ndarray, " B"],
    num_positions: int,
) -> Float32[np.ndarray, "B T"]:
    """Return numbers in [0, 1), with 24 random bits, one per example and position.

    Args:
        seed: of the run, at least 0.
        stream: what the numbers are for: one of the constants above.
        epochs: pass over the data that each example belongs to.
        examples: example numbers.
        num_positions: T; the numbers at a position do not depend on it.
    """
    key = mix(stream_key(seed, stream) + mix(epochs.astype(np.uint64)))
    key = mix(key + examples.astype(np.uint64) * GOLDEN)
    positions = np.arange(1, num_positions + 1, dtype=np.uint64) * GOLDEN
    bits = mix(key[:, None] + positions[None, :])
    return (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def dropout_seed(seed: int, step: int, rank: int) -> int:
    """Return the seed of torch's own numbers in one step of one process."""
    key = mix(stream_key(seed, DROPOUT) + np.uint64(step))
    return int(mix(key + np.uint64(rank))[0] >> np.uint64(1))


def stream_key(seed: int, stream: int) -> UInt64[np.ndarray, " 1"]:
    """Return the 64 bits that a seed and a stream start from."""
    return mix(mix(np.array([seed], dtype=np.uint64)) + np.uint64(stream))


def mix(value: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """Scramble 64 bits reversibly; products and sums are modulo 2^64."""
    value = value + GOLDEN
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
