"""Sweeps: every combination is run and shown, and the best median on dev is chosen."""

from dataclasses import replace
from pathlib import Path

import pytest
from toy_tasks import RECIPE, toy_config, write_model, write_texts

from amber.downstream.config import RecipeConfig
from amber.downstream.finetune import finetune
from amber.downstream.results import Point, best_point, find_model
from amber.downstream.statistics import spread
from amber.downstream.sweep import read_sweep
from amber.errors import UserError


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_all_values_are_combined_with_all_others(tmp_path: Path):
    path = write(tmp_path / "s.toml", "learning_rate = [1e-4, 1]\nepochs = [2, 3]\n")
    found = read_sweep(path, RecipeConfig(batch_size=16))
    assert [changes for changes, _ in found] == [
        {"learning_rate": 1e-4, "epochs": 2},
        {"learning_rate": 1e-4, "epochs": 3},
        {"learning_rate": 1, "epochs": 2},
        {"learning_rate": 1, "epochs": 3},
    ]
    assert found[3][1] == RecipeConfig(batch_size=16, learning_rate=1.0, epochs=3)
    same = write(tmp_path / "t.toml", "[recipe]\nlearning_rate = [1e-4, 1]\nepochs = [2, 3]\n")
    assert read_sweep(same, RecipeConfig(batch_size=16)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no settings"),
        ("learning_rat = [1]", "no setting 'learning_rat' in recipe; did you mean 'learning_rate'"),
        ("epochs = 3", "epochs = 3 is not a list of values"),
        ("epochs = []", r"is not a list of values: write epochs = \[1, 2\]"),
        ("epochs = [2, 2]", "epochs has a value more than once"),
        ('epochs = ["a"]', "epochs = 'a' is not of type int"),
        ("epochs = [0]", "recipe.epochs must be above 0"),
        ("batch_size = [8]", "recipe.batch_size has no effect with"),
    ],
)
def test_a_bad_sweep_is_refused(text: str, message: str, tmp_path: Path):
    with pytest.raises(UserError, match=message):
        read_sweep(write(tmp_path / "s.toml", text), RecipeConfig(batch_size=16))


def point(rate: float, *scores: float) -> Point:
    return Point(changes={"learning_rate": rate}, runs=(), spread=spread(scores))


def test_the_best_median_is_chosen_not_the_best_run():
    points = [point(1.0, 0.2, 0.3, 0.9), point(2.0, 0.5, 0.5, 0.5), point(3.0, 0.5, 0.5, 0.6)]
    assert best_point(points, metric="accuracy") == points[1]
    assert best_point(points, metric="mse") == points[0]


def test_every_point_of_a_sweep_is_run_and_one_is_chosen(tmp_path: Path):
    model = write_model(tmp_path / "tiny")
    write_texts(tmp_path / "train.tsv")
    write_texts(tmp_path / "dev.tsv", count=20, seed=1)
    sweep = write(tmp_path / "s.toml", "learning_rate = [1e-9, 3e-3]\nlength = [16, 32]\n")
    recipe = replace(RECIPE, learning_rate=None, epochs=6)
    config = toy_config(tmp_path, model, sweep=sweep, recipe=recipe)
    result = finetune(config)
    assert len(result.points) == 4
    assert all(each.spread.num_runs == 1 for each in result.points)
    assert result.chosen["learning_rate"] == 3e-3
    assert result.recipe["learning_rate"] == 3e-3
    assert result.recipe["length"] == result.chosen["length"]
    folder = find_model(tmp_path / "out")
    assert folder.parent.name in ("point-3", "point-4")
    again = finetune(config)
    assert again.num_reused == 4
    assert again.runs == result.runs
