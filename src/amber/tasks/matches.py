"""How often each label or type of entity was there, was predicted, and was both."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchCounts:
    """How many there are, were predicted, and are both."""

    num_correct: int = 0
    num_predicted: int = 0
    num_gold: int = 0

    @property
    def precision(self) -> float:
        """Share of the predicted that are right; 0.0 when none was predicted."""
        return self.num_correct / self.num_predicted if self.num_predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the true that were found; 0.0 when there is none."""
        return self.num_correct / self.num_gold if self.num_gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0.0 when both are."""
        total = self.num_predicted + self.num_gold
        return 2 * self.num_correct / total if total else 0.0


Item = tuple[str, Hashable]
"""A label or type, and what tells it from others of its name in the same example."""


def count_matches(
    gold: Sequence[Iterable[Item]], predicted: Sequence[Iterable[Item]]
) -> dict[str, MatchCounts]:
    """Count by name, over examples, in the order of the names."""
    true, guessed, correct = Counter[str](), Counter[str](), Counter[str]()
    for expected, found in zip(map(set, gold), map(set, predicted), strict=True):
        for counts, items in ((true, expected), (guessed, found), (correct, expected & found)):
            counts.update(name for name, _ in items)
    return {
        name: MatchCounts(
            num_correct=correct[name], num_predicted=guessed[name], num_gold=true[name]
        )
        for name in sorted(true.keys() | guessed.keys())
    }


def total(counts: dict[str, MatchCounts]) -> MatchCounts:
    """Add up the names: the counts behind micro-averaged scores."""
    return MatchCounts(
        num_correct=sum(c.num_correct for c in counts.values()),
        num_predicted=sum(c.num_predicted for c in counts.values()),
        num_gold=sum(c.num_gold for c in counts.values()),
    )
