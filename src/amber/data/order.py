"""The order of the examples in an epoch: a permutation that is computed, not stored.

A balanced Feistel network over the next even power of two, walked until it lands below `count`
(Black and Rogaway 2002), so that the order of a billion examples needs no memory and the example
at any place is found at once: that is all that resuming needs.
"""

import numpy as np
from jaxtyping import Int64

from amber.data.noise import ORDER, mix, stream_key

NUM_ROUNDS = 6


def shuffled(
    places: Int64[np.ndarray, " B"], epochs: Int64[np.ndarray, " B"], *, count: int, seed: int
) -> Int64[np.ndarray, " B"]:
    """Return the example at each place of its epoch's order.

    Args:
        places: in [0, count).
        epochs: the pass over the data that each place belongs to.
        count: number of examples in an epoch.
        seed: of the run.
    """
    half = np.uint64(max(1, (int(count - 1).bit_length() + 1) // 2))
    low_bits = np.uint64((1 << int(half)) - 1)
    key = mix(stream_key(seed, ORDER) + mix(epochs.astype(np.uint64)))
    value = places.astype(np.uint64)
    outside = np.ones(len(value), dtype=bool)
    while outside.any():
        left, right = value[outside] >> half, value[outside] & low_bits
        for round_number in range(NUM_ROUNDS):
            scrambled = mix(right + mix(key[outside] + np.uint64(round_number)))
            left, right = right, left ^ (scrambled & low_bits)
        value[outside] = (left << half) | right
        outside = value >= np.uint64(count)
    return value.astype(np.int64)
