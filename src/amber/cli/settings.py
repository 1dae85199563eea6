"""The settings of one command: defaults < preset < run being resumed < TOML file < command line."""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from amber.cli.arguments import list_settings
from amber.cli.draft import finish_draft, start_draft
from amber.cli.idle import refuse_beside_paper, refuse_idle, without_idle
from amber.config import flatten, read_toml, suggest, update
from amber.errors import UserError
from amber.run.combination import idle_settings
from amber.run.config import Preset, PretrainConfig

EXCLUSIVE = {
    "budget": ("steps", "tokens", "flops", "hours"),
    "optim": ("warmup_fraction", "warmup_steps"),
}
"""Settings of a section of which one at most is above 0."""
WRITTEN_BY_RUNS = (
    "versions",
    "data_fingerprint",
    "tokenizer_fingerprint",
    "model_fingerprint",
    "resume",
)
"""What the config.toml of a run holds besides settings, and the one that is not for a new run."""

PRESET = "preset"
"""How the name of a preset's layer begins."""

Layer = tuple[str, dict[str, Any]]


def resolve(
    settings_class: type,
    given: dict[str, Any],
    *,
    config_path: Path | None,
    positional: Sequence[str] = (),
) -> Any:
    """Build the settings of a command.

    Each layer's names and types are checked by themselves; what the values must be together is
    checked once, in the end. A budget given in one layer replaces the ones of the layers below it,
    since a run has only one; so does a warm-up.

    Args:
        settings_class: the command's dataclass.
        given: nested dictionaries, from the command line.
        config_path: of a TOML file.
        positional: settings that are given without a flag.

    Raises:
        UserError: with the layer and the setting.
    """
    layers = list_layers(settings_class, given, config_path=config_path)
    names = {name for _, layer in layers for name in layer}
    _refuse_missing(settings_class, names, positional)
    idle = idle_settings(_draft(settings_class, layers))
    layers = [
        (where, without_idle(layer, idle) if where.startswith(PRESET) else layer)
        for where, layer in layers
    ]
    draft = _draft(settings_class, layers)
    try:
        config = finish_draft(settings_class, draft)
    except UserError as error:
        raise UserError(f"{_place_of(str(error), layers)}{error}") from error
    users = layers[-2:] if config_path else layers[-1:]
    refuse_beside_paper(config, users)
    refuse_idle(config, users[-1:] if config_path and is_of_run(config_path) else users)
    return config


def _draft(settings_class: type, layers: Sequence[Layer]) -> Any:
    """Put the layers on top of each other."""
    draft = start_draft(settings_class)
    for where, layer in layers:
        draft = update(draft, _with_one_of_each(layer), where=where)
    return draft


def list_layers(
    settings_class: type, given: dict[str, Any], *, config_path: Path | None
) -> list[Layer]:
    """Return the layers over the defaults, each with its name, from the lowest to the highest."""
    names = {field.name for field in fields(settings_class)}
    idle = {field.name for field in fields(PretrainConfig)} - names if "preset" in names else set()
    file: dict[str, Any] = {}
    if config_path:
        file = {k: v for k, v in read_settings(config_path).items() if k not in idle}
        update(start_draft(settings_class), file, where=str(config_path))  # before it is used below
    top = file | given
    layers: list[Layer] = []
    if "preset" in names:
        name = top.get("preset", "tiny")
        layers.append((f"{PRESET} {name}", read_preset(name)))
    if top.get("resume") and "out" in top:
        path = Path(top["out"]) / "config.toml"
        if not path.is_file():
            raise UserError(f"{path}: is not there, so there is no run to resume: check --out")
        layers.append((str(path), read_settings(path)))
    if config_path:
        layers.append((str(config_path), file))
    layers.append(("command line", given))
    return [(where, {k: v for k, v in layer.items() if k not in idle}) for where, layer in layers]


def read_preset(name: str) -> dict[str, Any]:
    """Read a preset that comes with the package.

    Raises:
        UserError: there is none of that name.
    """
    if name not in get_args(Preset):
        names = list(get_args(Preset))
        raise UserError(f"there is no preset {name!r}{suggest(str(name), names)}")
    return read_toml(Path(str(files("amber") / "presets" / f"{name}.toml")))


def is_of_run(path: Path) -> bool:
    """Tell whether a TOML file was written by a run: it then holds all settings, idle ones too."""
    return "versions" in read_toml(path)


def read_settings(path: Path) -> dict[str, Any]:
    """Read a TOML file of settings, or the config.toml of a run, which holds more than settings."""
    values = read_toml(path)
    if "versions" in values:
        return {name: value for name, value in values.items() if name not in WRITTEN_BY_RUNS}
    return values


def _with_one_of_each(layer: dict[str, Any]) -> dict[str, Any]:
    """Set to 0 what a layer's own choice among exclusive settings replaces."""
    for section, names in EXCLUSIVE.items():
        given = layer.get(section)
        if isinstance(given, dict) and any(given.get(name) for name in names):
            layer = layer | {section: dict.fromkeys(names, 0) | given}
    return layer


def _refuse_missing(settings_class: type, names: set[str], positional: Sequence[str]) -> None:
    """Refuse to go on without the settings that have no default.

    Raises:
        UserError: with all of them.
    """
    missing = [
        setting.name.upper() if setting.name in positional else setting.flag
        for setting in list_settings(settings_class)
        if setting.default is MISSING and not setting.section and setting.name not in names
    ]
    if missing:
        raise UserError(f"{' and '.join(missing)} must be given; --help describes the settings")


def _place_of(message: str, layers: Sequence[Layer]) -> str:
    """Name the highest layer with a setting that the message names; nothing where none has one."""
    words = [word.strip("(),:;") for word in message.split()]
    named = {word for i, word in enumerate(words) if i == 0 or "." in word}
    for where, layer in reversed(layers):
        if named & flatten(layer).keys():
            return f"{where}: "
    return ""
