"""Entities in BIO tags, counted as conlleval counts them: right only with exact span and type.

An I- tag that does not continue an entity of its type starts one, as in conlleval and seqeval.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Entity:
    """A run of words of one type."""

    type: str
    start: int
    """First word."""
    stop: int
    """One past the last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityCounts:
    """How many entities there are, were predicted, and are both."""

    num_correct: int = 0
    num_predicted: int = 0
    num_gold: int = 0

    @property
    def precision(self) -> float:
        """Share of the predicted entities that are right; 0.0 when none was predicted."""
        return self.num_correct / self.num_predicted if self.num_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true entities that were found; 0.0 when there is none."""
        return self.num_correct / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0.0 when both are."""
        total = self.num_predicted + self.num_gold
        return 2 * self.num_correct / total if total else 0.0


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
) -> dict[str, EntityCounts]:
    """Count the entities of each type, over sentences of BIO tags.

    Raises:
        ValueError: another number of sentences or words in the two.
    """
    correct: dict[str, int] = {}
    guessed: dict[str, int] = {}
    true: dict[str, int] = {}
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        if len(gold_tags) != len(predicted_tags):
            raise ValueError(f"{len(predicted_tags)} tags for {len(gold_tags)} words")
        expected, found = set(entities(gold_tags)), set(entities(predicted_tags))
        for counts, group in ((true, expected), (guessed, found), (correct, expected & found)):
            for entity in group:
                counts[entity.type] = counts.get(entity.type, 0) + 1
    return {
        kind: EntityCounts(
            num_correct=correct.get(kind, 0),
            num_predicted=guessed.get(kind, 0),
            num_gold=true.get(kind, 0),
        )
        for kind in sorted(true.keys() | guessed.keys())
    }


def total(counts: dict[str, EntityCounts]) -> EntityCounts:
    """Add up the types: the counts behind the micro-averaged scores."""
    return EntityCounts(
        num_correct=sum(c.num_correct for c in counts.values()),
        num_predicted=sum(c.num_predicted for c in counts.values()),
        num_gold=sum(c.num_gold for c in counts.values()),
    )
