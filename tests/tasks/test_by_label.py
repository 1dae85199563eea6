import random

import pytest
from sklearn.metrics import precision_recall_fscore_support

from amber.tasks.by_label import Mistake, label_scores, mistakes


def rows(kind, gold, predicted, labels=()):
    return {
        each.label: (each.num_gold, each.num_predicted, each.precision, each.recall, each.f1)
        for each in label_scores(kind, gold, predicted, labels=labels)
    }


def test_labels_are_scored_as_by_scikit_learn_in_the_order_of_the_task():
    rng = random.Random(0)
    labels = ["c", "a", "b", "never"]
    gold = [rng.choice("abc") for _ in range(200)]
    predicted = [one if rng.random() < 0.6 else rng.choice("ab") for one in gold]
    found = rows("classification", gold, predicted, labels)
    assert list(found) == ["c", "a", "b"]  # what neither side has is left out
    precision, recall, f1, support = precision_recall_fscore_support(
        gold, predicted, labels=labels[:3], zero_division=0.0
    )
    for index, name in enumerate(labels[:3]):
        expected = (support[index], predicted.count(name), precision[index], recall[index])
        assert found[name] == pytest.approx((*expected, f1[index]))


def test_sets_of_labels_are_scored_label_by_label():
    gold, predicted = [("x",), ("x", "y"), ()], [("x", "y"), ("y",), ()]
    found = rows("multilabel", gold, predicted, ["x", "y"])
    assert found == {"x": (2, 1, 1.0, 0.5, 2 / 3), "y": (1, 2, 0.5, 1.0, 2 / 3)}


def test_entities_are_scored_by_type():
    gold = [["B-per", "I-per", "O", "B-loc"], ["B-per", "O"]]
    predicted = [["B-per", "I-per", "O", "B-per"], ["B-per", "I-per"]]
    found = rows("tagging", gold, predicted)
    assert found == {"loc": (1, 0, 0.0, 0.0, 0.0), "per": (2, 3, 1 / 3, 0.5, 0.4)}


def test_numbers_and_answers_have_no_labels():
    assert rows("regression", [1.0], [2.0]) == {}
    assert rows("qa", [("a",)], ["a"]) == {}
    assert mistakes("tagging", [["O"]], [["B-x"]]) == ()


def test_the_most_frequent_mistake_comes_first():
    gold, predicted = list("aabbcca"), list("abaacca")
    assert mistakes("classification", gold, predicted) == (
        Mistake(gold="b", predicted="a", count=2),
        Mistake(gold="a", predicted="b", count=1),
    )
