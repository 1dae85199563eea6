"""Which tokens form which training example: a table over the documents, made once.

Rule: a document is cut into runs of as many tokens as fit, the last one shorter. Every token is in
exactly one example, no example crosses a document, and only a document's last example is padded.

- single layout, `[CLS] a [SEP]`: runs of `length - 2` tokens;
- pair layout, `[CLS] a [SEP] b [SEP]`: runs of `length - 3` tokens, each cut in two at a place
  drawn evenly from its middle half; token types 0 and 1. A run of one token stays single.

Each document is wholly of one layout, drawn once per seed with probability `pair_fraction`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from amber.data.noise import PAIR_CUT, PAIR_DOCUMENT, uniforms


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """The examples of one split; example numbers run from 0 to `count` - 1."""

    length: int
    """Tokens of a full example, special ones included."""

    seed: int

    offsets: Int64[np.ndarray, " N1"]
    """First token of each document, and the end of the last."""

    first: Int64[np.ndarray, " N1"]
    """Number of the first example of each document, and the count of all."""

    capacity: Int64[np.ndarray, " N"]
    """Text tokens in a full example of each document."""

    @property
    def count(self) -> int:
        """Number of examples in one epoch."""
        return int(self.first[-1])

    def spans(
        self, examples: Int64[np.ndarray, " B"]
    ) -> tuple[Int64[np.ndarray, " B"], Int64[np.ndarray, " B"], Int64[np.ndarray, " B"]]:
        """Return where each example's tokens start and stop, and how many of them are segment a.

        Tokens count over the whole split. In the single layout all tokens are segment a.
        """
        document = np.searchsorted(self.first, examples, side="right") - 1
        capacity = self.capacity[document]
        start = self.offsets[document] + (examples - self.first[document]) * capacity
        stop = np.minimum(start + capacity, self.offsets[document + 1])
        count = stop - start
        cut = uniforms(self.seed, PAIR_CUT, np.zeros_like(examples), examples, 1)[:, 0]
        low = np.maximum(count // 4, 1)
        high = np.maximum(count - count // 4, low + 1)  # the first segment ends in [low, high)
        in_a = low + (cut * (high - low)).astype(np.int64)
        is_pair = capacity == self.length - 3  # of a single token, all is segment a
        return start, stop, np.where(is_pair, in_a, count)

    def padding(self) -> int:
        """Return the padded places in one epoch at full length."""
        lengths = np.diff(self.offsets)
        places = np.diff(self.first) * self.capacity
        # A pair document's last token that stands alone has no second [SEP].
        has_single = (self.capacity == self.length - 3) & (lengths % self.capacity == 1)
        return int((places - lengths + has_single).sum())


def index_examples(
    offsets: Int64[np.ndarray, " N1"], *, length: int, pair_fraction: float, seed: int
) -> Examples:
    """Lay out the examples of a split.

    Args:
        offsets: first token of each document, and the end of the last.
        length: tokens of an example, special ones included; at least 5.
        pair_fraction: share of documents in the pair layout.
        seed: decides which documents are pairs, and where they are cut.
    """
    lengths = np.diff(offsets)
    documents = np.arange(len(lengths), dtype=np.int64)
    draw = uniforms(seed, PAIR_DOCUMENT, np.zeros_like(documents), documents, 1)[:, 0]
    capacity = np.where(draw < pair_fraction, length - 3, length - 2)
    counts = -(-lengths // capacity)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Examples(length=length, seed=seed, offsets=offsets, first=first, capacity=capacity)
