"""The help pages, from the dataclasses: the text after each field is what is shown."""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from amber.cli.arguments import Setting

INDENT = 24
SPACE = "\u00a0"  # at which no line is broken


def command_page(
    name: str,
    settings_class: type,
    settings: Sequence[Setting],
    *,
    defaults: Mapping[str, Any],
    positional: Sequence[str],
    common: Sequence[tuple[str, str]],
    section: str,
    width: int,
) -> str:
    """Write the page of a command.

    Args:
        name: of the command.
        settings_class: its dataclass.
        settings: its flags.
        defaults: by dotted name, where they differ from the dataclass's.
        positional: settings given without a flag.
        common: flags that every command has, with their text.
        section: describe the settings of this section only; "all": of all; "": those without a
            section, and the others by name.
        width: columns.
    """
    sections = list(dict.fromkeys(setting.section for setting in settings if setting.section))
    if section in sections:
        return "\n".join(_section(settings_class, section, settings, defaults, width))
    required = [s for s in settings if s.default is MISSING and s.name not in positional]
    usage = [f"usage: amber {name}"]
    for word in positional:
        setting = next(s for s in settings if s.name == word)
        usage.append(word.upper() + ("..." if get_origin(setting.kind) is tuple else ""))
    usage += [f"{s.flag} {_value(s)}" for s in required] + ["[settings]"]
    page = _wrap(" ".join(usage), width, hanging="       ")
    page += ["", *_wrap(_paragraph(settings_class.__doc__), width), ""]
    for setting in settings:
        if not setting.section:
            page += _entry(setting, defaults, width, is_positional=setting.name in positional)
    for flag, text in common:
        page += _row(flag, text, width)
    if not sections:
        return "\n".join(page)
    if section == "all":
        for each in sections:
            page += ["", *_section(settings_class, each, settings, defaults, width)]
        return "\n".join(page)
    page += [
        "",
        *_wrap(
            f"More settings, described by `amber {name} --help SECTION` or "
            "`--help all`; flags are --SECTION.SETTING VALUE:",
            width,
        ),
        "",
    ]
    for each in sections:
        words = [
            f"{s.name.rpartition('.')[2].replace('_', '-')}{SPACE}{_shown(_default(s, defaults))}"
            for s in settings
            if s.section == each
        ]
        text = _section_text(settings_class, each, settings)
        page += _row(f"--{each}.", text, width, indent=18)
        page += [" " * 20 + line for line in _wrap(", ".join(words), width - 20)]
    return "\n".join(page).replace(SPACE, " ")


def _section(
    settings_class: type,
    section: str,
    settings: Sequence[Setting],
    defaults: Mapping[str, Any],
    width: int,
) -> list[str]:
    """Write what one section holds."""
    own = [setting for setting in settings if setting.section == section]
    lines = _wrap(f"{section}: {_section_text(settings_class, section, settings)}", width)
    for setting in own:
        lines += _entry(setting, defaults, width, is_positional=False)
    return lines


def _section_text(settings_class: type, section: str, settings: Sequence[Setting]) -> str:
    """Return what stands after the section's field or, failing that, in its dataclass."""
    owner = next(setting.owner for setting in settings if setting.section == section)
    return _field_texts(settings_class).get(section) or _paragraph(owner.__doc__)


def _entry(
    setting: Setting, defaults: Mapping[str, Any], width: int, *, is_positional: bool
) -> list[str]:
    """Write one setting: the flag, what it is, the default."""
    flag = setting.name.upper() if is_positional else f"{setting.flag} {_value(setting)}".rstrip()
    text = _field_texts(setting.owner).get(setting.name.rpartition(".")[2], "")
    default = _default(setting, defaults)
    options = get_args(setting.kind) if get_origin(setting.kind) is Literal else ()
    if options:
        text += f" One of {', '.join(options)}."
    if default is MISSING:
        text += " Required."
    elif default not in (None, ()):
        text += f" [{_shown(default)}]"
    return _row(flag, text.strip(), width)


def _row(flag: str, text: str, width: int, *, indent: int = INDENT) -> list[str]:
    """Write a flag and, beside or below it, its text."""
    lines = _wrap(text, width - indent) if text else [""]
    if len(flag) + 4 > indent:
        return [f"  {flag}", *(" " * indent + line for line in lines if line)]
    first = f"  {flag}".ljust(indent) + lines[0]
    return [first.rstrip(), *(" " * indent + line for line in lines[1:])]


def _wrap(text: str, width: int, *, hanging: str = "") -> list[str]:
    """Break a text into lines, never inside a word."""
    return textwrap.wrap(
        text,
        max(30, width),
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _value(setting: Setting) -> str:
    """Name the kind of value that a flag takes."""
    if setting.kind is bool:
        return "[yes|no]"
    if get_origin(setting.kind) is Literal:
        return "NAME"
    kind = setting.kind
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return {int: "N", float: "X", Path: "PATH"}.get(kind, "TEXT")


def _default(setting: Setting, defaults: Mapping[str, Any]) -> Any:
    return defaults.get(setting.name, setting.default)


def _shown(value: Any) -> str:
    """Write a default as one would on the command line."""
    if value in (None, ()):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join(inspect.cleandoc(text or "").partition("\n\n")[0].split())


def _field_texts(settings_class: type) -> dict[str, str]:
    """Return the string after each field of a dataclass, as one line each."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(settings_class))).body[0]
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            texts[field.target.id] = " ".join(str(after.value.value).split())
    return texts
