"""Settings: frozen dataclasses to and from plain dictionaries and TOML, strictly.

An unknown key is an error that names the nearest valid one; a value of the wrong type is an error
that names the key. Nothing is converted silently but a whole number to a float.
"""

import difflib
import math
import tomllib
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from amber.errors import UserError

Settings = TypeVar("Settings")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        UserError: the file is missing, unreadable or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: cannot be read ({reason}): give a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: is not TOML ({error}); correct the file") from error


def to_toml(values: Mapping[str, Any]) -> str:
    """Write nested dictionaries as TOML."""
    return tomli_w.dumps(values)


def to_dict(settings: Any) -> dict[str, Any]:
    """Turn a settings object into nested dictionaries of TOML values, without the Nones."""
    result = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            result[field.name] = to_dict(value)
        elif isinstance(value, Path):
            result[field.name] = str(value)
        elif isinstance(value, tuple):
            result[field.name] = [str(v) if isinstance(v, Path) else v for v in value]
        elif value is not None:
            result[field.name] = value
    return result


def update(settings: Settings, values: Mapping[str, Any], *, where: str) -> Settings:
    """Return a copy of `settings` with the nested `values` put in.

    Args:
        settings: a frozen dataclass instance.
        values: nested dictionaries, as TOML gives them.
        where: named at the start of every message: a file, with its section.

    Raises:
        UserError: an unknown key, a value of the wrong type, or one that the dataclass refuses.
    """
    hints = get_type_hints(type(settings))
    names = [field.name for field in fields(settings)]  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key not in names:
            raise UserError(
                f"{where}: no setting {key!r} in {type(settings).__name__}{suggest(key, names)}"
            )
        current = getattr(settings, key)
        if is_dataclass(current):
            if not isinstance(value, Mapping):
                raise UserError(f"{where}: {key} is a section, got the value {value!r}")
            changes[key] = update(current, value, where=f"{where} [{key}]")
        else:
            changes[key] = _convert(value, hints[key], where=f"{where}: {key}")
    try:
        return replace(settings, **changes)  # type: ignore[type-var]
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def suggest(name: str, names: list[str]) -> str:
    """Name the nearest valid setting, or list them all when none is near."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turn nested dictionaries into one with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say which dotted settings differ, each as `key: old -> new`."""
    left, right = flatten(old), flatten(new)
    return [
        f"{key}: {left.get(key, 'unset')} -> {right.get(key, 'unset')}"
        for key in sorted(left.keys() | right.keys())
        if left.get(key) != right.get(key)
    ]


def _convert(value: Any, kind: Any, *, where: str) -> Any:
    """Check one value against its type; the only conversions are int -> float and str -> Path."""
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        inner = next(option for option in options if option is not types.NoneType)
        return None if value is None else _convert(value, inner, where=where)
    if origin is Literal:
        if value not in options:
            raise UserError(f"{where} = {value!r} is not one of {', '.join(map(repr, options))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{where} = {value!r} is not a list: write [{value!r}]")
        return tuple(_convert(item, options[0], where=where) for item in value)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    name = getattr(kind, "__name__", str(kind))
    article = "an" if name[0] in "aeiou" else "a"
    if not isinstance(value, kind if origin is None else origin) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise UserError(f"{where} = {value!r} is not of type {name}: write {article} {name}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where} = {value!r} is not a number to compute with: write a finite one")
    return value
