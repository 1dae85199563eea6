"""The words of a command line, turned into the nested dictionary that a settings file would give.

Flags follow from the dataclasses: `mask.fraction` is `--mask.fraction 0.2`; underscores may be
written as hyphens. What a value may be is checked where settings files are checked too, by
`amber.config.update`; only its type is found here.
"""

import argparse
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from amber.config import suggest
from amber.errors import UserError

TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One field of a dataclass tree, as a flag."""

    name: str
    """Dotted: `mask.keep_fraction`."""

    kind: Any
    """Its type, without None."""

    default: Any
    """MISSING where a value is required."""

    owner: type
    """The dataclass that has the field."""

    @property
    def flag(self) -> str:
        """The flag as it is shown."""
        return "--" + self.name.replace("_", "-")

    @property
    def section(self) -> str:
        """The part of the name before the dot, or nothing."""
        return self.name.rpartition(".")[0]


def list_settings(settings_class: type, prefix: str = "") -> list[Setting]:
    """List the settings of a dataclass and of those inside it, in their order."""
    hints = get_type_hints(settings_class)
    found: list[Setting] = []
    for field in fields(settings_class):
        kind = _without_none(hints[field.name])
        if is_dataclass(kind):
            found += list_settings(kind, f"{prefix}{field.name}.")  # type: ignore[arg-type]
            continue
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        name = prefix + field.name
        found.append(Setting(name=name, kind=kind, default=default, owner=settings_class))
    return found


def parse_words(
    words: Sequence[str], settings: Sequence[Setting], *, positional: Sequence[str] = ()
) -> dict[str, Any]:
    """Read a command's words.

    Args:
        words: without the name of the command.
        settings: the flags that exist.
        positional: names of the settings that are given without a flag, in their order.

    Returns:
        Nested dictionaries with the settings that were given, and no others.

    Raises:
        UserError: an unknown flag, a flag without its value, or a value of the wrong type.
    """
    parser = _Parser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for setting in settings:
        _add(parser, setting, is_positional=setting.name in positional)
    words = _with_explicit_booleans([_spelled(word) for word in words], settings)
    namespace, rest = parser.parse_known_intermixed_args(words)
    if rest:
        raise UserError(_unknown(rest[0], settings))
    nested: dict[str, Any] = {}
    for name, value in vars(namespace).items():
        if name in positional and value in ([], None):
            continue
        *sections, last = name.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return nested


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are ours: it prints nothing and does not exit."""

    def error(self, message: str) -> NoReturn:
        """Raise the message as a UserError."""
        raise UserError(message.removeprefix("argument "))


def _add(parser: argparse.ArgumentParser, setting: Setting, *, is_positional: bool) -> None:
    """Tell the parser of one setting."""
    is_list = get_origin(setting.kind) is tuple
    convert = _converter(get_args(setting.kind)[0] if is_list else setting.kind)
    if is_positional:
        parser.add_argument(setting.name, type=convert, nargs="*" if is_list else "?", default=None)
        return
    many: dict[str, Any] = {"nargs": "+"} if is_list else {}
    parser.add_argument(setting.flag, dest=setting.name, type=convert, **many)


def _without_none(kind: Any) -> Any:
    """Return T for `T | None`."""
    if get_origin(kind) in (Union, types.UnionType):
        return next(option for option in get_args(kind) if option is not types.NoneType)
    return kind


def _spelled(word: str) -> str:
    """Write the name of a flag with hyphens; a value after `=` stays as it is."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _with_explicit_booleans(words: Sequence[str], settings: Sequence[Setting]) -> list[str]:
    """Give each boolean flag its value: `--resume` alone is `--resume=true`."""
    booleans = {setting.flag for setting in settings if setting.kind is bool}
    result: list[str] = []
    for i, word in enumerate(words):
        following = words[i + 1].lower() if i + 1 < len(words) else ""
        is_alone = word in booleans and following not in TRUE_WORDS + FALSE_WORDS
        result.append(f"{word}=true" if is_alone else word)
    return result


def _unknown(word: str, settings: Sequence[Setting]) -> str:
    """Say that a word is not known, and which flag may be meant."""
    if not word.startswith("-"):
        return f"{word!r} is one word too many: give each value after its flag"
    flag = word.partition("=")[0]
    flags = [setting.flag for setting in settings]
    last = flag.lstrip("-")
    same = [known for known in flags if known.rpartition(".")[2] == last]
    if same:
        return f"there is no flag {flag}; did you mean {' or '.join(same)}?"
    near, _, rest = suggest(flag, flags).partition("; there are ")
    return f"there is no flag {flag}{': --help lists them' if rest else near}"


def _converter(kind: Any) -> Callable[[str], Any]:
    """Return the function that reads a value of this type from a word."""
    if get_origin(kind) is Literal:
        return lambda word: _one_of(word, get_args(kind))
    return {bool: _boolean, int: _whole_number, float: _number, Path: _path}.get(kind, str)


def _one_of(word: str, options: tuple[str, ...]) -> str:
    if word not in options:
        raise argparse.ArgumentTypeError(f"there is no {word!r}{suggest(word, list(options))}")
    return word


def _boolean(word: str) -> bool:
    if word.lower() not in TRUE_WORDS + FALSE_WORDS:
        raise argparse.ArgumentTypeError(f"{word!r} is not yes or no (true, false, on, off)")
    return word.lower() in TRUE_WORDS


def _number(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{word!r} is not a number")
    return value


def _whole_number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        value = _number(word)
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number")
    return int(value)


def _path(word: str) -> Path:
    if not word:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(word)
