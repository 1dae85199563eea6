import errno
import json
import os
import subprocess
import sys
from importlib.resources import files

import pytest
import torch

import amber.cli.main as cli
from amber import __version__
from amber.errors import RunError, UserError

HEAVY = ("torch", "transformers", "pyarrow")


def run(capsys, line):
    code = cli.main(line.split())
    out, err = capsys.readouterr()
    return code, out, err


def test_help_pages_import_nothing_heavy():
    program = (
        "import sys; from amber.cli.main import COMMANDS, main; main(['--help']); "
        "[main([name, '--help']) for name in COMMANDS]; main(['flops', '--paper']); "
        f"sys.exit(any(name in sys.modules for name in {HEAVY!r}))"
    )
    source = str(files("amber").joinpath(".."))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": source},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0


def test_help_names_every_command(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(f"  {name} " in out for name in cli.COMMANDS)


def test_the_version_is_printed(capsys):
    assert run(capsys, "--version") == (0, f"amber {__version__}\n", "")


@pytest.mark.parametrize("name", ["prepare", "pretrain", "flops"])
@pytest.mark.parametrize("section", ["", "all"])
def test_a_help_page_fits_80_columns_and_names_every_setting(capsys, monkeypatch, name, section):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(capsys, f"{name} --help {section}")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    command = cli.COMMANDS[name]
    for setting in cli.list_settings(cli._load(command.config)):
        if setting.name not in command.positional:
            assert setting.name.rpartition(".")[2].replace("_", "-") in out


def test_a_help_page_shows_the_defaults_of_the_preset(capsys):
    _, out, _ = run(capsys, "pretrain --preset electra-large --help batch")
    assert "[2048]" in out


def test_the_help_of_a_section_holds_the_text_and_the_default(capsys):
    _, out, _ = run(capsys, "pretrain --help mask")
    assert "--mask.fraction X" in out
    assert "one is. [0.15]" in " ".join(out.split())
    assert "--optim" not in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pretrane", "there is no command 'pretrane'; did you mean 'pretrain'?"),
        ("pretrain --mask.fractoin 1", "there is no flag --mask.fractoin; did you mean"),
        ("pretrain --preset smal", "--preset: there is no 'smal'; did you mean 'small'?"),
        ("pretrain --data d", "--out must be given"),
        ("pretrain --batch.size 1.5", "--batch.size: '1.5' is not a whole number"),
        ("pretrain --data d --out o --mask.fraction 2", "command line: mask.fraction"),
        ("pretrain --config", "--config: name a TOML file"),
        ("pretrain --config no.toml --data d --out o", "no.toml: cannot be read"),
        ("pretrain --help masks", "pretrain has no settings 'masks'; did you mean 'mask'?"),
        ("prepare --out d", "TEXT must be given"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_2(capsys, line, message):
    code, out, err = run(capsys, line)
    assert code == 2
    assert out == ""
    assert err.startswith(f"amber: {message}")
    assert err.count("\n") == 1


def raise_in_the_command(monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr(cli, "_read", lambda words: fail)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("a: b"), 2, "amber: a: b\n"),
        (RunError("step 3: c"), 1, "amber: step 3: c\n"),
        (KeyboardInterrupt(), 130, "amber: interrupted\n"),
        (
            OSError(errno.ENOSPC, "x", "f"),
            1,
            "amber: f: no space is left on the disk: free some and start again\n",
        ),
        (
            OSError(errno.EFBIG, "File too large", "f"),
            1,
            "amber: f: a file gets larger than this disk or `ulimit -f` allows: write elsewhere\n",
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate"),
            1,
            "amber: out of memory: lower batch.micro_size\n",
        ),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate"),
            1,
            "amber: out of memory: lower batch.micro_size\n",
        ),
        (MemoryError(), 1, "amber: out of memory: lower batch.micro_size\n"),
    ],
)
def test_each_end_has_its_code_and_one_line(capsys, monkeypatch, error, code, message):
    raise_in_the_command(monkeypatch, error)
    assert run(capsys, "pretrain") == (code, "", message)


@pytest.mark.parametrize("error", [AssertionError(), RuntimeError("x"), OSError(errno.EIO, "x")])
def test_our_own_errors_keep_their_traceback(monkeypatch, error):
    raise_in_the_command(monkeypatch, error)
    with pytest.raises(type(error)):
        cli.main(["pretrain"])


def test_a_name_that_is_not_utf_8_is_refused(capsys):
    code = cli.main(["prepare", os.fsdecode(b"caf\xe9.txt"), "--out", "caf\u00e9"])
    assert code == 2
    assert "'caf\\udce9.txt' holds bytes that are not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_command_runs_without_stdout_and_stderr(monkeypatch, stream):
    monkeypatch.setattr(sys, stream, None)  # as Python has it where they are closed
    assert cli.main(["--version"]) == 0
    getattr(sys, stream).close()


@pytest.mark.parametrize("line", ["pretrane", "pretrain --batch.size x"])
def test_only_the_first_process_complains_of_the_words(capsys, monkeypatch, line):
    monkeypatch.setenv("RANK", "1")
    assert run(capsys, line) == (2, "", "")


def test_another_process_says_who_it_is_when_its_command_fails(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    raise_in_the_command(monkeypatch, UserError("a: b"))
    assert run(capsys, "pretrain") == (2, "", "amber: process 3: a: b\n")
    raise_in_the_command(monkeypatch, KeyboardInterrupt())
    assert run(capsys, "pretrain") == (130, "", "")


def test_json_is_one_object_and_nothing_else(capsys):
    code, out, err = run(capsys, "flops --json --budget.steps 1e3")
    assert (code, err) == (0, "")
    assert json.loads(out)["steps"] == 1000
