"""The recipes of a command, one or each combination of a sweep, for one task and one model."""

from pathlib import Path
from typing import Any

from amber.downstream.config import FinetuneConfig, RecipeConfig
from amber.downstream.material import Material
from amber.downstream.recipe import Recipe, fill_recipe
from amber.downstream.results import find_model
from amber.downstream.sweep import read_sweep
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.files import read_settings
from amber.model.hugging_face import from_settings
from amber.model.task_shape import Pooling, read_pooling
from amber.run.folders import locate


def read_points(
    config: FinetuneConfig, material: Material, folder: Path
) -> tuple[tuple[dict[str, Any], Recipe], ...]:
    """Fill in every recipe, with what each changes; one that changes nothing without a sweep.

    Raises:
        UserError: settings without effect, or a bad file of a sweep.
    """
    given = [({}, config.recipe)]
    if config.sweep is not None:
        given = read_sweep(config.sweep, config.recipe)
    shape, pooling = read_shape(folder), pooling_of(folder)
    return tuple(
        (changes, fill(recipe, config, material, shape, pooling=pooling))
        for changes, recipe in given
    )


def model_folder(config: FinetuneConfig) -> Path:
    """Find the model that was asked for: in a run, in results of fine-tuning, or a model folder."""
    return locate(find_model(config.model))[0]


def read_shape(folder: Path) -> EncoderConfig:
    """Read the shape of a model from its config.json."""
    return from_settings(read_settings(folder), where=f"{folder / 'config.json'}")


def pooling_of(folder: Path) -> Pooling:
    """Read how a ModernBERT-type model makes one vector of a text."""
    return read_pooling(read_settings(folder), where=f"{folder / 'config.json'}")


def fill(
    recipe: RecipeConfig,
    config: FinetuneConfig,
    material: Material,
    shape: EncoderConfig,
    *,
    pooling: Pooling,
) -> Recipe:
    """Fill in a recipe for this task and this model.

    Raises:
        UserError: settings without effect.
    """
    task = material.task
    filled = fill_recipe(
        recipe,
        kind=task.kind,
        epochs=task.epochs,
        shape=shape,
        head=config.head,
        is_unordered=task.is_unordered,
        pooling=pooling,
    )
    if config.patience and config.patience >= filled.epochs:
        raise UserError(
            f"patience {config.patience} has no effect in {filled.epochs} epochs: lower it or "
            "leave it out"
        )
    if config.keep == "best" and filled.epochs == 1:
        raise UserError("keep best has no effect in one epoch: leave it out")
    return filled
