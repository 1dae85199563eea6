"""Minimal pairs that are won: counted by hand, and through a whole command."""

import json
import math

import numpy as np
import pytest
from small_runs import SmallRun, train_small

from amber.cli import evaluate as command
from amber.errors import UserError
from amber.run.commands import EvaluateConfig
from amber.run.pairs import Pair
from amber.run.score import Score
from amber.run.wins import count_wins, evaluate_pairs, mean_of, wins_of

RECORDS = [
    {"UID": uid, "phenomenon": phenomenon, "sentence_good": good, "sentence_bad": bad}
    for uid, phenomenon, good, bad in (
        ("order", "word order", "the cat sees a dog", "cat the sees dog a"),
        ("order", "word order", "one big tree", "tree big one"),
        ("double", "length", "a cat", "a a cat"),
        ("double", "length", "a  dog", "a dog"),  # the same tokens
    )
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("wins") / "pair")


@pytest.fixture(scope="module")
def pairs_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("wins") / "pairs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def test_wins_by_hand():
    scores = np.array([[-1.0, -2.0], [-3.0, -1.0], [-2.0, -2.0], [5.0, 4.0]])
    lengths = np.array([[3, 3], [4, 5], [2, 2], [6, 5]])
    wins = wins_of(scores, lengths, name="x")
    assert (wins.num_pairs, wins.num_ties) == (4, 1)
    assert wins.accuracy == (1 + 0 + 0.5 + 1) / 4
    deviations = (0.375**2 + 0.625**2 + 0.125**2 + 0.375**2) / 4
    assert wins.standard_error == pytest.approx(math.sqrt(deviations / 4), rel=1e-12)
    assert (wins.num_same_length, wins.same_length_accuracy) == (2, 0.75)
    assert wins.shorter_accuracy == (0.5 + 1 + 0.5 + 0) / 4
    assert wins_of(scores[1:2], lengths[1:2], name="x").same_length_accuracy is None


def test_the_standard_error_of_won_or_lost_is_the_binomial_one():
    scores = np.array([[1.0, 0.0]] * 30 + [[0.0, 1.0]] * 70)
    wins = wins_of(scores, np.full((100, 2), 3), name="x")
    assert wins.standard_error == pytest.approx(math.sqrt(0.3 * 0.7 / 100), rel=1e-12)


def test_the_mean_of_the_paradigms_by_hand():
    assert mean_of([0.5]) == (0.5, None)
    mean, error = mean_of([0.25, 0.5, 0.75])
    assert (mean, error) == (0.5, pytest.approx(0.25 / math.sqrt(3), rel=1e-12))


def test_pairs_are_grouped_whatever_their_order():
    names = [("p", "x"), ("q", "y"), ("p", "x"), ("r", "x")]
    pairs = [Pair("g", "b", paradigm, phenomenon, "") for paradigm, phenomenon in names]
    won, lost = (Score(1.0, 1, (0,)), Score(0.0, 1, (1,))), (Score(0.0, 1, (1,)), Score(1.0, 1, ()))
    scores = [each for two in (won, won, lost, won) for each in two]
    paradigms, phenomena, total = count_wins(pairs, scores)
    assert [(each.name, each.phenomenon, each.accuracy) for each in paradigms] == [
        ("p", "x", 0.5),
        ("r", "x", 1.0),
        ("q", "y", 1.0),
    ]
    assert [(each.name, each.accuracy) for each in phenomena] == [("x", 2 / 3), ("y", 1.0)]
    assert total.accuracy == 0.75


def test_identical_pairs_are_ties_and_are_counted(pair, pairs_path):
    wins = evaluate_pairs(EvaluateConfig(model=pair.out, pairs=pairs_path))
    assert (wins.by, wins.num_identical, wins.total.num_ties) == ("rtd", 1, 1)
    assert [each.name for each in wins.phenomena] == ["length", "word order"]
    assert wins.phenomena[0].shorter_accuracy == 0.75
    assert wins.limit is None
    assert wins.paradigm_mean == pytest.approx(wins.total.accuracy)  # both have two pairs


def test_the_limit_and_the_score_are_those_of_the_command(pair, pairs_path):
    config = EvaluateConfig(model=pair.out, pairs=pairs_path, pairs_limit=1, by="pll", length=4)
    wins = evaluate_pairs(config)
    assert (wins.by, wins.limit, wins.total.num_pairs, wins.length) == ("pll", 1, 2, 4)
    assert wins.num_cut == 3


def test_a_sentence_without_a_token_is_refused_with_its_place(pair, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"sentence_good": "a cat", "sentence_bad": "\u0000"}))
    with pytest.raises(UserError, match="line 1: the sentence .* has no token"):
        evaluate_pairs(EvaluateConfig(model=pair.out, pairs=path))


def test_the_command_prints_a_table_or_one_object(pair, pairs_path, capsys):
    config = EvaluateConfig(model=pair.out, pairs=pairs_path, pairs_limit=2)
    assert command.run(config, is_json=False) == 0
    table = capsys.readouterr().out
    for words in ("word order", "a coin wins 50%", "first 2 pairs", "1 ties"):
        assert words in table
    assert command.run(config, is_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"pairs"}
    assert told["pairs"]["total"]["num_pairs"] == 4


def test_data_and_pairs_can_both_be_measured(pair, pairs_path, capsys):
    config = EvaluateConfig(model=pair.out, data=pair.data, pairs=pairs_path)
    assert command.run(config, is_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"] == pair.summary.after
    assert told["pairs"]["total"]["num_pairs"] == 4
    assert command.run(config, is_json=False) == 0
    table = capsys.readouterr().out
    assert "masked_lm_loss" in table
    assert "word order" in table


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "--data or --pairs must be given"),
        ({"data": "d", "pairs_limit": 3}, "pairs_limit has no effect without pairs"),
        ({"data": "d", "by": "rtd"}, "by has no effect without pairs"),
        ({"pairs": "p", "fraction": 0.2}, "fraction has no effect without data"),
        ({"pairs": "p", "batch_size": 2}, "batch_size has no effect without data"),
        ({"pairs": "p", "pairs_limit": 0}, "pairs_limit must be at least 1"),
    ],
)
def test_settings_without_effect_are_refused(tmp_path, settings, message):
    paths = {key: tmp_path for key in ("data", "pairs") if key in settings}
    with pytest.raises(UserError, match=message):
        EvaluateConfig(model=tmp_path, **settings | paths)
