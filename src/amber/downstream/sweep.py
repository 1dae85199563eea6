"""Combinations of settings to try, from a TOML file of lists."""

import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

from amber.config import read_toml, suggest, update
from amber.downstream.config import RecipeConfig
from amber.errors import UserError

Changes = dict[str, Any]


def read_sweep(path: Path, given: RecipeConfig) -> list[tuple[Changes, RecipeConfig]]:
    """Read the lists and combine them, each value with each.

    Args:
        path: a TOML file: settings of the recipe, each with a list of values, at the top or in a
            section [recipe].
        given: the recipe that they change.

    Raises:
        UserError: an unknown setting, no list, or a setting that was given, too.
    """
    values = read_toml(path)
    if set(values) == {"recipe"} and isinstance(values["recipe"], dict):
        values = values["recipe"]
    known = {part.name: part.default for part in fields(RecipeConfig)}
    if not values:
        raise UserError(f"{path}: holds no settings: write lists like learning_rate = [1e-4, 3e-4]")
    for name, choices in values.items():
        if name not in known:
            raise UserError(f"{path}: no setting {name!r} in recipe{suggest(name, list(known))}")
        if not isinstance(choices, list) or not choices:
            raise UserError(
                f"{path}: {name} = {choices!r} is not a list of values: write "
                f"{name} = {[choices] if choices != [] else '[1, 2]'}"
            )
        if any(choices.count(choice) > 1 for choice in choices):
            raise UserError(f"{path}: {name} has a value more than once: list each one once")
        if getattr(given, name) != known[name]:
            raise UserError(f"recipe.{name} has no effect with {path}, which sets it: leave it out")
    combinations = itertools.product(*values.values())
    return [
        (changes, update(given, changes, where=str(path)))
        for combination in combinations
        for changes in [dict(zip(values, combination, strict=True))]
    ]
