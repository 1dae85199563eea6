"""Schemes of entity tags: which one a file uses, and its tags as BIO (IOB2).

BIO begins every entity with B-. IOB1 begins one with I- and uses B- only where an entity follows
another of its type at once. BIOES marks the end with E- and entities of one word with S-; BMES
(its middle is M-) and BILOU (its end is L-, its single U-) are the same in other letters.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

Scheme = Literal["BIO", "IOB1", "BIOES", "BMES", "BILOU"]

OUTSIDE = "O"
_TAG = re.compile(r"([BIESMLU])-(\S.*)")
_LETTERS: dict[Scheme, set[str]] = {
    "BIO": set("BI"),
    "BIOES": set("BIES"),
    "BMES": set("BMES"),
    "BILOU": set("BILU"),
}
_MIDDLE_OR_END = set("IMEL")


def split_tag(tag: str) -> tuple[str, str] | None:
    """The letter and the type of a tag, `("O", "")` for O; None for what is no tag."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    found = _TAG.fullmatch(tag)
    return None if found is None else (found.group(1), found.group(2))


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme | None:
    """Tell the scheme of a file from all its tags.

    With the letters B and I only, a file is IOB1 when some entity begins with I- and every B- has
    an entity of its type just before it, else BIO. Where letters leave a choice (B-, E-, S- only),
    the first of BIOES and BMES is meant: their tags are the same.

    Args:
        sentences: the tags of each sentence, all of them tags by `split_tag`.

    Returns:
        The scheme, or None when the letters belong to no one scheme.
    """
    letters: set[str] = set()
    begins_with_i = has_plain_b = False
    for tags in sentences:
        before = OUTSIDE, ""
        for tag in tags:
            letter, kind = split_tag(tag) or (OUTSIDE, "")
            letters.add(letter)
            continues = before[0] != OUTSIDE and before[1] == kind
            begins_with_i |= letter == "I" and not continues
            has_plain_b |= letter == "B" and not continues
            before = letter, kind
    letters.discard(OUTSIDE)
    for scheme, allowed in _LETTERS.items():
        if letters <= allowed:
            is_iob1 = scheme == "BIO" and begins_with_i and not has_plain_b
            return "IOB1" if is_iob1 else scheme
    return None


def to_bio(tags: Sequence[str], scheme: Scheme) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Write the tags of one sentence as BIO.

    What breaks the scheme is read as conlleval does: a middle or an end that continues no entity of
    its type begins one; an entity that is never closed ends before the next one.

    Returns:
        The BIO tags, and the positions at which the scheme is broken.
    """
    result: list[str] = []
    broken: list[int] = []
    has_ends = scheme in ("BIOES", "BMES", "BILOU")
    open_kind: str | None = None  # type of the entity that may go on
    for position, tag in enumerate(tags):
        letter, kind = split_tag(tag) or (OUTSIDE, "")
        goes_on = letter in _MIDDLE_OR_END and open_kind == kind
        is_left_open = has_ends and open_kind is not None and not goes_on
        begins_wrongly = letter in _MIDDLE_OR_END and not goes_on and scheme != "IOB1"
        if is_left_open or begins_wrongly:
            broken.append(position)
        if letter == OUTSIDE:
            result.append(OUTSIDE)
            open_kind = None
        else:
            result.append(f"{'I' if goes_on else 'B'}-{kind}")
            open_kind = None if letter in "ESLU" else kind
    if has_ends and open_kind is not None:
        broken.append(len(tags) - 1)
    return tuple(result), tuple(broken)
