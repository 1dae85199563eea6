"""The documents of a whole corpus: read, normalised, duplicates dropped, a part held out.

Which documents are kept, and which are held out, depends on their text alone: not on the order or
number of files, nor on the number of processes. Held out are the documents whose key, as a number
in [0, 1), lies below the fraction, and always the one with the smallest key, so that a small corpus
has one too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from amber.text.clean import UnicodeForm, document_key, is_held_out, normalize_document
from amber.text.documents import Separator, read_documents
from amber.text.files import Source
from amber.text.keys import KeySet
from amber.text.lines import OnBad

LOOKUP_DOCUMENTS = 1024
LOOKUP_CHARACTERS = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingRule:
    """How files become documents."""

    separator: Separator = "blank_line"
    text_field: str = "text"
    on_bad: OnBad = "stop"
    unicode_form: UnicodeForm = "NFC"
    dedup: bool = True
    held_out_fraction: float = 0.01


@dataclass(frozen=True, slots=True)
class Document:
    """A normalised document."""

    text: str
    key: bytes
    is_held_out: bool = False


def read_corpus(
    sources: Sequence[Source],
    rule: ReadingRule,
    *,
    counts: Counter[str],
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[Document]:
    """Yield the kept documents.

    Args:
        sources: the files, in order.
        rule: how to read them.
        counts: gets `documents_read`, `documents_empty`, `documents_duplicate`, `controls_removed`,
            `characters_read` and what the readers count.
        on_bytes: is told the bytes read from the disk.
    """
    documents = _normalized(sources, rule, counts, on_bytes)
    if rule.dedup:
        documents = _without_duplicates(documents, counts)
    if rule.held_out_fraction > 0:
        documents = _hold_out(documents, rule.held_out_fraction)
    return documents


def _normalized(
    sources: Sequence[Source],
    rule: ReadingRule,
    counts: Counter[str],
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Document]:
    for source in sources:
        for raw in read_documents(
            source,
            separator=rule.separator,
            text_field=rule.text_field,
            on_bad=rule.on_bad,
            counts=counts,
            on_bytes=on_bytes,
        ):
            text, num_controls = normalize_document(raw, form=rule.unicode_form)
            counts["documents_read"] += 1
            counts["characters_read"] += len(raw)
            counts["controls_removed"] += num_controls
            if text:
                yield Document(text, document_key(text))
            else:
                counts["documents_empty"] += 1


def _without_duplicates(documents: Iterable[Document], counts: Counter[str]) -> Iterator[Document]:
    known = KeySet()
    held: list[Document] = []

    def fresh() -> Iterator[Document]:
        is_new = known.add([document.key for document in held])
        counts["documents_duplicate"] += is_new.count(False)
        yield from (d for d, new in zip(held, is_new, strict=True) if new)
        held.clear()

    size = 0
    for document in documents:
        held.append(document)
        size += len(document.text)
        if len(held) >= LOOKUP_DOCUMENTS or size >= LOOKUP_CHARACTERS:
            yield from fresh()
            size = 0
    yield from fresh()


def _hold_out(documents: Iterable[Document], fraction: float) -> Iterator[Document]:
    """Set the flag; the document with the smallest key so far waits to the end, with its copies."""
    smallest: Document | None = None
    num_copies = num_others = 0
    for document in documents:
        if smallest is None or document.key == smallest.key:
            smallest = document
            num_copies += 1
            continue
        others = [document]
        if document.key < smallest.key:
            others = [smallest] * num_copies
            smallest, num_copies = document, 1
        num_others += len(others)
        for other in others:
            yield Document(other.text, other.key, is_held_out(other.key, fraction))
    if smallest is not None:
        for _ in range(num_copies):
            yield Document(smallest.text, smallest.key, num_others > 0)
