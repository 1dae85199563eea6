"""The command line: find the command, read its settings, run it, report errors in one line.

Commands are imported when they are called, with importlib in `_load`: the one place in the package
where an import is not at the top of a module. So `amber --help` and the help pages answer without
loading torch, and `amber prepare` never loads it.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amber import __version__
from amber.cli.arguments import list_settings, parse_words
from amber.cli.help import command_page
from amber.cli.settings import list_layers, resolve
from amber.config import flatten, suggest
from amber.errors import RunError, UserError, full_disk, is_out_of_memory

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
Job = Callable[[], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """Where a command's parts are; nothing is imported before it is called."""

    help: str
    """One line."""

    config: str
    """`module:Name` of the dataclass of its settings; the module must not import torch."""

    module: str
    """Has `run(config, *, is_json) -> int`, which returns the exit code."""

    positional: tuple[str, ...] = ()
    """Settings that are given without a flag."""

    saver: str = ""
    """The setting to lower when memory is short."""


COMMANDS = {
    "demo": Command(
        help="go the whole path on text that every Python installation has",
        config="amber.run.commands:DemoConfig",
        module="amber.cli.demo",
    ),
    "prepare": Command(
        help="turn raw text into a tokenizer and token shards",
        config="amber.tokens.config:PrepareConfig",
        module="amber.cli.prepare",
        positional=("text",),
    ),
    "pretrain": Command(
        help="train a discriminator and its generator on prepared text",
        config="amber.run.config:PretrainConfig",
        module="amber.cli.pretrain",
        saver="batch.micro_size",
    ),
    "finetune": Command(
        help="train a model for a task, with several seeds, and score it",
        config="amber.downstream.config:FinetuneConfig",
        module="amber.cli.finetune",
        positional=("model",),
        saver="recipe.micro_size",
    ),
    "predict": Command(
        help="label texts, tag words or answer questions with a fine-tuned model",
        config="amber.downstream.predict_config:PredictConfig",
        module="amber.cli.predict",
        positional=("model", "file"),
        saver="batch_size",
    ),
    "evaluate": Command(
        help="measure a model on held-out text, minimal pairs or labelled data",
        config="amber.run.commands:EvaluateConfig",
        module="amber.cli.evaluate",
        positional=("model",),
        saver="batch_size",
    ),
    "score": Command(
        help="say how acceptable each sentence of a file is to a model",
        config="amber.run.commands:ScoreConfig",
        module="amber.cli.score",
        positional=("model", "file"),
        saver="length",
    ),
    "inspect": Command(
        help="show a text through the eyes of a model, token by token",
        config="amber.run.commands:InspectConfig",
        module="amber.cli.inspect",
        positional=("model", "text"),
    ),
    "flops": Command(
        help="say what a run costs, by part, under two counting rules",
        config="amber.cli.flops:FlopsConfig",
        module="amber.cli.flops",
    ),
}

COMMON = (
    ("--config FILE", "Settings from a TOML file; those on the command line go before them."),
    ("--json", "Print one JSON object on stdout at the end, everything else on stderr."),
    ("--help [SECTION]", "This page, or the page of a section."),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: done. 1: failed. 2: the user can mend it. 130 and 143: stopped by Ctrl-C or SIGTERM.

    Args:
        words: without the program's name; those of the process unless given.
    """
    words = list(sys.argv[1:] if words is None else words)
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by who started the command
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        job = _read(words)
    except UserError as error:
        return _fail(str(error), MISUSED, is_everywhere=True)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED, is_everywhere=True)
    command = COMMANDS.get(words[0]) if words else None
    return _run(job, saver=command.saver if command else "")


def _run(job: Job, *, saver: str) -> int:
    """Run a command and turn the errors that need no traceback into one line."""
    try:
        code = job()
        sys.stdout.flush()
        return code
    except UserError as error:
        return _fail(str(error), MISUSED)
    except RunError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED, is_everywhere=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the exit complains
        return FAILED
    except OSError as error:
        message = full_disk(error)
        if message is None:
            raise
        return _fail(message, FAILED)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return _fail(f"out of memory{': lower ' + saver if saver else ''}", FAILED)


def _fail(message: str, code: int, *, is_everywhere: bool = False) -> int:
    """Print the message; in processes after the first, only what the first may not know."""
    rank = os.environ.get("RANK", "0")
    if rank == "0":
        print(f"amber: {message}", file=sys.stderr)
    elif not is_everywhere:
        print(f"amber: process {rank}: {message}", file=sys.stderr)
    return code


def _show(text: str) -> int:
    """Print a page."""
    print(text)
    return 0


def _read(words: list[str]) -> Job:
    """Find what the words ask for: a page, the version, or a command."""
    if not words or words[0] in ("-h", "--help", "help"):
        return lambda: _show(front_page())
    if words[0] in ("-V", "--version"):
        return lambda: _show(f"amber {__version__}")
    for word in words:
        if not word.isascii() and word.encode("utf-8", "replace").decode("utf-8") != word:
            raise UserError(
                f"command line: {word!r} holds bytes that are not UTF-8, which no record can name: "
                "rename the file or folder"
            )
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        raise UserError(f"there is no command {name!r}{suggest(name, list(COMMANDS))}")
    return read_command(name, rest)


def read_command(name: str, words: list[str]) -> Job:
    """Read a command's settings from words.

    Args:
        name: a key of COMMANDS.
        words: after the name.

    Returns:
        What runs the command, or prints its help page.

    Raises:
        UserError: something about the words, the settings or the data.
    """
    command = COMMANDS[name]
    settings_class = _load(command.config)
    settings = list_settings(settings_class)
    words, section = _take_help(words)
    words, config_path = _take_config(words)
    words, is_json = [word for word in words if word != "--json"], "--json" in words
    given = parse_words(words, settings, positional=command.positional)
    if section is not None:
        sections = sorted({setting.section for setting in settings} - {""})
        if section not in ("", "all", *sections):
            hint = suggest(section, sections) if sections else "; there are no sections"
            raise UserError(f"{name} has no settings {section!r}{hint}")
        layers = list_layers(settings_class, given, config_path=config_path)
        defaults: dict[str, Any] = {}
        for _, layer in layers:
            defaults |= flatten(layer)
        page = command_page(
            name,
            settings_class,
            settings,
            defaults=defaults,
            positional=command.positional,
            common=COMMON,
            section=section,
            width=min(100, shutil.get_terminal_size().columns),
        )
        return lambda: _show(page)
    config = resolve(settings_class, given, config_path=config_path, positional=command.positional)
    return lambda: _load(command.module + ":run")(config, is_json=is_json)


def front_page() -> str:
    """Write what `amber --help` shows."""
    rows = [f"  {name:<10} {command.help}" for name, command in COMMANDS.items()]
    lines = [
        "usage: amber COMMAND ...",
        "",
        "Pre-train text encoders as discriminators on your own text.",
        "",
        *rows,
        "",
        "amber COMMAND --help describes a command; amber --version names the version.",
    ]
    return "\n".join(lines)


def _load(name: str) -> Any:
    """Import `module:attribute`, when it is needed."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _take_help(words: list[str]) -> tuple[list[str], str | None]:
    """Take out `--help` and the section after it; None where help is not asked for."""
    for i, word in enumerate(words):
        if word in ("-h", "--help"):
            following = words[i + 1] if i + 1 < len(words) else "-"
            section = "" if following.startswith("-") else following
            return words[:i] + words[i + 1 + bool(section) :], section
    return words, None


def _take_config(words: list[str]) -> tuple[list[str], Path | None]:
    """Take out `--config FILE`."""
    for i, word in enumerate(words):
        if word.startswith("--config="):
            return words[:i] + words[i + 1 :], Path(word.removeprefix("--config="))
        if word == "--config":
            if i + 1 == len(words) or words[i + 1].startswith("--"):
                raise UserError("--config: name a TOML file after it")
            return words[:i] + words[i + 2 :], Path(words[i + 1])
    return words, None
