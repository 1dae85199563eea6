"""Entities in BIO tags, counted as conlleval counts them: right only with exact span and type.

An I- tag that does not continue an entity of its type starts one, as in conlleval and seqeval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amber.tasks.matches import MatchCounts, count_matches


@dataclass(frozen=True, kw_only=True, slots=True)
class Entity:
    """A run of words of one type."""

    type: str
    start: int
    """First word."""
    stop: int
    """One past the last."""


def entities(tags: Sequence[str]) -> list[Entity]:
    """Find the entities of one sentence, in words.

    Args:
        tags: `O`, `B-type` or `I-type`; a type may hold a dash.
    """
    found: list[Entity] = []
    start, open_type = 0, None
    for index, tag in enumerate((*tags, "O")):
        prefix, _, kind = tag.partition("-")
        if open_type is not None and (prefix != "I" or kind != open_type):
            found.append(Entity(type=open_type, start=start, stop=index))
            open_type = None
        if prefix in ("B", "I") and open_type is None:
            start, open_type = index, kind
    return found


def count_entities(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, MatchCounts]:
    """Count the entities of each type, over sentences of BIO tags.

    Raises:
        ValueError: another number of sentences or words in the two.
    """
    for true, guessed in zip(gold, predicted, strict=True):
        if len(true) != len(guessed):
            raise ValueError(f"{len(guessed)} tags for {len(true)} words")
    sides = [
        [[(e.type, (e.start, e.stop)) for e in entities(tags)] for tags in part]
        for part in (gold, predicted)
    ]
    return count_matches(*sides)
