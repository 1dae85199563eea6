"""A sample of documents that does not depend on their order."""

import heapq

from amber.text.corpus import Document


class HashSample:
    """Keeps the documents of the smallest hashes, up to a number of characters.

    The hash is the second half of the key; the first half decides what is held out, so the two
    choices are independent.
    """

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        self._heap: list[tuple[int, bytes, str]] = []
        self._known: set[bytes] = set()
        self._size = 0

    def add(self, document: Document) -> None:
        """Offer a document; equal ones count once."""
        order = -int.from_bytes(document.key[8:], "big")
        if self._heap and self._size >= self._max_characters and order <= self._heap[0][0]:
            return
        if document.key in self._known:
            return
        self._known.add(document.key)
        heapq.heappush(self._heap, (order, document.key, document.text))
        self._size += len(document.text)
        while self._size - len(self._heap[0][2]) >= self._max_characters:
            _, key, text = heapq.heappop(self._heap)
            self._known.discard(key)
            self._size -= len(text)

    def texts(self) -> list[str]:
        """The documents, the smallest hash first."""
        return [text for _, _, text in sorted(self._heap, key=lambda item: (-item[0], item[1]))]
