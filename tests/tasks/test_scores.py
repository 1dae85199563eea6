import math
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics

from amber.errors import UserError
from amber.tasks.baseline import baseline
from amber.tasks.metrics import METRICS, score

GOLD = ["no", "yes", "yes", "no", "yes", "no"]
GUESS = ["no", "yes", "no", "no", "yes", "yes"]


def test_label_scores_worked_out_by_hand():
    assert score("accuracy", GOLD, GUESS).value == pytest.approx(4 / 6)
    # 2 true positives, 1 false positive, 1 false negative, 2 true negatives
    assert score("f1", GOLD, GUESS, labels=("no", "yes")).value == pytest.approx(2 / 3)
    assert score("mcc", GOLD, GUESS).value == pytest.approx((2 * 2 - 1 * 1) / 9)
    assert score("macro_f1", GOLD, GUESS).value == pytest.approx(2 / 3)
    assert score("accuracy", GOLD, GUESS).note == ""


def test_f1_is_that_of_the_last_label():
    gold, guess = ["a", "a", "b"], ["a", "b", "b"]
    assert score("f1", gold, guess, labels=("a", "b")).value == pytest.approx(2 / 3)
    assert score("f1", gold, guess, labels=("b", "a")).value == pytest.approx(2 / 3)
    assert score("f1", ["a", "a", "a", "b"], ["a", "a", "a", "a"], labels=("b", "a")).value == (
        pytest.approx(6 / 7)
    )
    with pytest.raises(UserError, match="'f1' is for two labels and there are 3"):
        score("f1", gold, guess, labels=("a", "b", "c"))


@pytest.mark.parametrize("num_labels", [2, 5])
def test_label_scores_equal_those_of_sklearn(num_labels):
    rng = np.random.default_rng(num_labels)
    gold = [str(x) for x in rng.integers(num_labels, size=200)]
    guess = [g if rng.random() < 0.6 else str(rng.integers(num_labels)) for g in gold]
    assert score("mcc", gold, guess).value == pytest.approx(
        sklearn_metrics.matthews_corrcoef(gold, guess)
    )
    assert score("macro_f1", gold, guess).value == pytest.approx(
        sklearn_metrics.f1_score(gold, guess, average="macro")
    )


def test_number_scores_equal_those_of_scipy():
    rng = np.random.default_rng(0)
    gold = rng.uniform(0, 5, size=50)
    guess = gold + rng.normal(size=50)
    values = {name: score(name, gold.tolist(), guess.tolist()).value for name in METRICS[5:8]}
    assert values["pearson"] == pytest.approx(stats.pearsonr(gold, guess)[0])
    assert values["spearman"] == pytest.approx(stats.spearmanr(gold, guess)[0])
    assert values["mse"] == pytest.approx(np.mean((gold - guess) ** 2))


def test_label_sets_are_scored_over_all_labels():
    gold = [("a", "b"), ("c",), (), ("a",)]
    guess = [("b", "a"), ("a",), (), ("a", "c")]
    # shared: 2 + 0 + 0 + 1; true: 4; predicted: 5
    assert score("micro_f1", gold, guess).value == pytest.approx(6 / 9)
    assert score("accuracy", gold, guess).value == 0.5  # the first and the third
    order = ["a", "b", "c"]
    table = [[[label in group for label in order] for group in side] for side in (gold, guess)]
    assert score("micro_f1", gold, guess).value == pytest.approx(
        sklearn_metrics.f1_score(np.array(table[0]), np.array(table[1]), average="micro")
    )


@pytest.mark.parametrize(
    ("name", "gold", "guess", "value", "note"),
    [
        ("mcc", ["a", "b"], ["a", "a"], 0.0, "every prediction is 'a'"),
        ("mcc", ["a", "a"], ["a", "b"], 0.0, "every example is 'a'"),
        ("mcc", ["a", "a"], ["a", "a"], 0.0, "every prediction is 'a'"),
        ("accuracy", ["a", "b"], ["b", "b"], 0.5, "every prediction is 'b'"),
        ("f1", ["a", "b"], ["a", "a"], 0.0, "every prediction is 'a'"),
        ("f1", ["a"], ["a"], 1.0, ""),
        ("macro_f1", ["a", "b"], ["c", "c"], 0.0, "every prediction is 'c'"),
        ("micro_f1", [("a",), ()], [(), ()], 0.0, "no label was predicted"),
        ("micro_f1", [()], [()], 0.0, "no label was predicted"),
        ("pearson", [1.0, 2.0], [3.0, 3.0], 0.0, "every prediction is 3"),
        ("spearman", [1.0, 1.0], [1.0, 2.0], 0.0, "every example is 1"),
        ("spearman", [1.0], [1.0], 0.0, "a correlation takes at least two examples"),
        ("pearson", [1.0, 2.0], [math.nan, 1.0], 0.0, "1 of 2 predictions are not finite numbers"),
        ("mse", [1.0, 2.0], [math.inf, 1.0], sys.float_info.max, "1 of 2 predictions"),
        ("mse", [0.0], [1e300], sys.float_info.max, ""),
        ("entity_f1", [("B-x",)], [("O",)], 0.0, "no entity was predicted"),
        ("entity_f1", [("O",)], [("O",)], 0.0, "no example holds an entity"),
        ("exact_match", [("a b",), ()], ["", ""], 0.5, "every prediction is 'no answer'"),
    ],
)
def test_degenerate_predictions_give_a_finite_number_and_a_note(name, gold, guess, value, note):
    found = score(name, gold, guess)
    assert found.value == value
    assert note in found.note if note else True


def test_nearly_equal_predictions_are_no_crash():
    guess = [2.5, 2.5 + 1e-15, 2.5]
    assert abs(score("pearson", [1.0, 2.0, 3.0], guess).value) <= 1


@pytest.mark.parametrize("name", METRICS)
def test_no_examples_score_nothing(name):
    assert score(name, [], []).note == "no examples"
    assert score(name, [], []).value == 0.0


def test_wrong_calls_are_refused():
    with pytest.raises(UserError, match="metric 'f2' is not known"):
        score("f2", ["a"], ["a"])
    with pytest.raises(ValueError, match="1 predictions for 2 examples"):
        score("accuracy", ["a", "b"], ["a"])


def test_answers_are_scored_as_a_mean():
    gold = [("a cat",), ("a dog", "hound")]
    assert score("exact_match", gold, ["cat", "the dogs"]).value == 0.5
    assert score("answer_f1", gold, ["cat", "dog hound"]).value == pytest.approx((1 + 2 / 3) / 2)


def test_the_baseline_predicts_what_is_most_frequent_in_train():
    found = baseline("classification", "accuracy", ["b", "a", "b"], ["a", "b", "a", "a"])
    assert (found.value, found.note) == (0.25, "always 'b'")
    majority = baseline("classification", "f1", ["1", "1", "0"], ["1", "0"], labels=("0", "1"))
    assert majority.value == pytest.approx(2 / 3)
    assert baseline("classification", "mcc", ["1", "1", "0"], ["1", "0"]).value == 0.0


def test_equally_frequent_labels_go_by_their_order():
    for labels, first in ((("x", "y"), "x"), (("y", "x"), "y")):
        found = baseline("classification", "accuracy", ["x", "y"], ["x"], labels=labels)
        assert found.note == f"always '{first}'"


def test_the_baseline_of_other_kinds():
    assert baseline("regression", "mse", [1.0, 3.0], [2.0, 4.0]).value == 2.0
    assert baseline("regression", "pearson", [1.0, 3.0], [2.0, 4.0]).value == 0.0
    assert baseline("multilabel", "accuracy", [(), (), ("a",)], [()]).note == "no label"
    sets = baseline("multilabel", "micro_f1", [("b", "a"), ("a", "b"), ("c",)], [("a",)])
    assert (sets.value, sets.note) == (pytest.approx(2 / 3), "always 'a, b'")
    assert baseline("tagging", "entity_f1", [("B-x",)], [("B-x", "O")]).value == 0.0
    assert baseline("qa", "exact_match", [("cat",)], [("cat",), ()]).value == 0.5
    with pytest.raises(ValueError, match="at least one"):
        baseline("classification", "accuracy", [], ["a"])
