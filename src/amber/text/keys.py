"""A set of document keys in about 16 bytes a document."""

from collections.abc import Sequence

import numpy as np

from amber.text.clean import KEY_BYTES


class KeySet:
    """Sorted runs of keys, merged so that each is at least twice as long as the next.

    A Python set would take about 100 bytes a document. Keys are looked up by binary search, a batch
    at a time.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def __len__(self) -> int:
        """How many different keys were added."""
        return sum(len(run) for run in self._runs)

    def add(self, keys: Sequence[bytes]) -> list[bool]:
        """Add a batch; say which keys were new, the first of equals counting."""
        if not keys:
            return []
        batch = np.frombuffer(b"".join(keys), dtype=f"S{KEY_BYTES}")
        unique, first = np.unique(batch, return_index=True)
        is_known = np.zeros(len(unique), dtype=bool)
        for run in self._runs:
            place = np.searchsorted(run, unique)
            inside = place < len(run)
            is_known[inside] |= run[place[inside]] == unique[inside]
        is_new = np.zeros(len(batch), dtype=bool)
        is_new[first[~is_known]] = True
        if not is_known.all():
            self._runs.append(unique[~is_known])
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort()
            self._runs.append(merged)
        return is_new.tolist()
