"""Refuse settings that were given and change nothing."""

from collections.abc import Collection, Sequence
from typing import Any

from amber.config import flatten
from amber.errors import UserError
from amber.run.combination import idle_settings


def refuse_idle(config: Any, layers: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Refuse what the user gave for nothing; presets may hold it, since they are made for change.

    Args:
        config: the whole settings of a command.
        layers: the TOML file, if there is one, and the command line: each with its name.

    Raises:
        UserError: with the setting that has no effect, and why.
    """
    idle = idle_settings(config)
    for where, layer in layers:
        for name in flatten(layer):
            if name in idle:
                raise UserError(f"{where}: {name} has no effect {idle[name]}")


def without_idle(values: dict[str, Any], idle: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Take settings out of nested dictionaries.

    Args:
        values: of a preset.
        idle: dotted names.
        prefix: of the names in `values`.
    """
    return {
        key: without_idle(value, idle, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in values.items()
        if prefix + key not in idle
    }


def refuse_beside_paper(config: Any, layers: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Refuse settings beside the one that shows the published models, which no other changes.

    Args:
        config: the whole settings of a command.
        layers: as for `refuse_idle`.

    Raises:
        UserError: with the first of the others.
    """
    if not getattr(config, "paper", False):
        return
    for where, layer in layers:
        others = sorted(flatten(layer).keys() - {"paper"})
        if others:
            raise UserError(
                f"{where}: {others[0]} has no effect with paper, which shows the published models: "
                "leave out one of the two"
            )
