"""Refuse settings that were given and change nothing."""

from collections.abc import Sequence
from typing import Any

from amber.config import flatten
from amber.errors import UserError

NEEDS = {
    "optim.muon_learning_rate": ("optim.matrices", ("muon",)),
    "optim.decay_fraction": ("optim.schedule", ("trapezoid",)),
    "optim.floor_fraction": ("optim.schedule", ("trapezoid", "cosine")),
}
"""Settings with an effect only under some values of another one."""


def refuse_idle(config: Any, layers: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Refuse what the user gave for nothing; presets may hold it, since they are made for change.

    Args:
        config: the whole settings of a command.
        layers: the TOML file, if there is one, and the command line: each with its name.

    Raises:
        UserError: with the setting that has no effect, and why.
    """
    for where, layer in layers:
        given = flatten(layer)
        for name, (other, accepted) in NEEDS.items():
            if name not in given:
                continue
            section, _, field = other.partition(".")
            value = getattr(getattr(config, section), field)
            if value not in accepted:
                raise UserError(
                    f"{where}: {name} has no effect while {other} is {value}: leave it out or "
                    f"set {other} to {' or '.join(accepted)}"
                )


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
