import random

import pytest

from amber.tasks.entities import count_entities, entities
from amber.tasks.matches import total


def names(tags):
    return [(e.type, e.start, e.stop) for e in entities(tags.split())]


def test_entities_end_where_bio_says():
    assert names("B-x I-x O B-y") == [("x", 0, 2), ("y", 3, 4)]
    assert names("B-x B-x I-x") == [("x", 0, 1), ("x", 1, 3)]
    assert names("O O") == []
    assert entities([]) == []


def test_an_inside_tag_without_a_beginning_starts_an_entity():
    assert names("I-x I-x O I-y") == [("x", 0, 2), ("y", 3, 4)]
    assert names("B-x I-y I-y") == [("x", 0, 1), ("y", 1, 3)]


def test_types_may_hold_dashes():
    assert names("B-creative-work I-creative-work") == [("creative-work", 0, 2)]


def test_counts_worked_out_by_hand():
    gold = [["B-per", "I-per", "O", "B-loc"], ["B-per", "O"], ["O", "B-org", "I-org"]]
    guess = [["B-per", "I-per", "O", "B-per"], ["B-per", "I-per"], ["O", "B-org", "I-org"]]
    # gold: per(0,2) loc(3,4) | per(0,1) | org(1,3); right: per(0,2) and org(1,3)
    counts = count_entities(gold, guess)
    assert {k: (c.num_correct, c.num_predicted, c.num_gold) for k, c in counts.items()} == {
        "loc": (0, 0, 1),
        "org": (1, 1, 1),
        "per": (1, 3, 2),
    }
    whole = total(counts)
    assert (whole.precision, whole.recall, whole.f1) == (0.5, 0.5, 0.5)
    assert counts["per"].f1 == pytest.approx(2 / 5)


def test_scores_equal_those_of_seqeval():
    seqeval = pytest.importorskip("seqeval.metrics")
    rng = random.Random(0)
    tags = ["O", "O", "B-a", "I-a", "B-b-c", "I-b-c"]
    gold = [[rng.choice(tags) for _ in range(rng.randint(1, 12))] for _ in range(200)]
    guess = [[t if rng.random() < 0.7 else rng.choice(tags) for t in s] for s in gold]
    found = total(count_entities(gold, guess))
    assert found.precision == pytest.approx(seqeval.precision_score(gold, guess), abs=1e-12)
    assert found.recall == pytest.approx(seqeval.recall_score(gold, guess), abs=1e-12)
    assert found.f1 == pytest.approx(seqeval.f1_score(gold, guess), abs=1e-12)


def test_another_number_of_tags_than_words_is_refused():
    with pytest.raises(ValueError, match="1 tags for 2 words"):
        count_entities([["O", "O"]], [["O"]])
