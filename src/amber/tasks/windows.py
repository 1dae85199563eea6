"""Overlapping windows over a text that is longer than the model reads at once."""

import numpy as np
from jaxtyping import Int

from amber.errors import UserError

IGNORED = -100  # label of a token that counts in no loss


def windows(num_pieces: int, *, capacity: int, stride: int) -> list[tuple[int, int]]:
    """Cover a text: the first window that reaches its end is the last.

    Args:
        num_pieces: of the text; an empty text has one empty window.
        capacity: pieces that fit in one window.
        stride: pieces from the start of a window to the start of the next, as `doc_stride` in
            BERT's and ELECTRA's code (the `stride` of transformers is the overlap instead).

    Returns:
        Start and end of each window.
    """
    if not 0 < stride <= capacity:
        raise ValueError(f"stride must be from 1 to {capacity}, got {stride}")
    found = [(0, min(capacity, num_pieces))]
    while found[-1][1] < num_pieces:
        start = found[-1][0] + stride
        found.append((start, min(start + capacity, num_pieces)))
    return found


def roomiest(places: Int[np.ndarray, " W"], spans: list[tuple[int, int]]) -> Int[np.ndarray, " W"]:
    """Choose for each piece the window in which the nearer end is farthest away.

    Args:
        places: pieces of the text.
        spans: from `windows`; together they hold every piece.

    Returns:
        The number of the window; of equally good ones the first.
    """
    starts, stops = np.array(spans, dtype=np.int64).T
    left = places[:, None] - starts
    right = stops - 1 - places[:, None]
    return np.minimum(left, right).argmax(axis=1)


def check_window(capacity: int, stride: int, *, max_length: int, reason: str) -> None:
    """Refuse settings under which windows hold nothing or leave gaps.

    Args:
        capacity: pieces that fit in one window at least.
        stride: pieces from one window to the next.
        max_length: tokens, for the message.
        reason: what the rest of `max_length` is for.
    """
    if capacity < 1:
        raise UserError(
            f"length is {max_length}, which leaves no room beside {reason}: raise the length"
        )
    if not 0 < stride <= capacity:
        raise UserError(
            f"stride is {stride}, and length {max_length} less {reason} leaves {capacity}: "
            f"set it from 1 to {capacity}"
        )
