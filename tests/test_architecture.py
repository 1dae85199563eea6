"""Imports point down: a module sees its own folder and lower layers, nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import amber

LAYERS = [
    ["errors"],
    ["config"],
    ["text"],
    ["tokens"],
    ["data", "model"],
    ["electra", "optim", "cost"],
    ["tasks"],
    ["run"],
    ["downstream"],
    ["study", "doctor", "export"],
    ["report"],
    ["cli"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PACKAGE = Path(amber.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
NO_TORCH = {"errors", "config", "text", "tokens", "report"}
FORBIDDEN = {"utils", "util", "common", "helpers", "helper", "misc"}


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = ("amber", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def folder_of(path: Path) -> str:
    """The layer's member that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    """Dotted names of what is imported, `from` imports with each name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names}
    return found


def own(tree: ast.AST) -> set[str]:
    """Which parts of amber a file imports."""
    parts = {name.split(".")[1] for name in imported(tree) if name.startswith("amber.")}
    return parts - {"__version__"}


def wrong_imports(here: str, tree: ast.AST) -> set[str]:
    """What a file of the folder `here` must not import."""
    return {there for there in own(tree) - {here} if LEVEL[there] >= LEVEL[here]}


def test_every_part_has_a_place_in_the_layers():
    assert {folder_of(path) for path in FILES} - {"__init__"} <= set(LEVEL)


def test_imports_point_down():
    wrong = []
    for path in FILES:
        if (here := folder_of(path)) in LEVEL:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            wrong += [f"{path.name} imports {x}" for x in sorted(wrong_imports(here, tree))]
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_every_kind_of_import():
    for line in (
        "import amber.run.step",
        "from amber.run.step import x",
        "from amber import run",
        "from amber.model import y\nfrom amber.run import z",
        "def f():\n    import amber.run",
    ):
        assert "run" in wrong_imports("data", ast.parse(line)), line
    assert wrong_imports("data", ast.parse("from amber.model import x")) == {"model"}
    assert not wrong_imports("data", ast.parse("from amber.data.noise import x"))
    assert not wrong_imports("run", ast.parse("from amber import __version__\nimport torch"))


def test_imports_are_absolute():
    for path in FILES:
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert not {name for name in names if name.startswith(".")}, path


def test_the_package_itself_imports_nothing():
    assert not imported(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")))


def test_no_module_has_a_name_that_says_nothing():
    bad = [path for path in PACKAGE.rglob("*") if path.stem in FORBIDDEN]
    assert not bad


def test_no_annotations_are_strings():
    for path in FILES:
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert "__future__.annotations" not in names, path


def test_only_what_needs_torch_imports_it():
    names = [
        module_name(path)
        for path in FILES
        if folder_of(path) in NO_TORCH or path.name == "config.py"
    ]
    assert {"amber.run.config", "amber.model.config", "amber.text.clean"} <= set(names)
    lines = [
        "import importlib, sys",
        f"for name in {names!r}:",
        "    importlib.import_module(name)",
        "    assert 'torch' not in sys.modules, name",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_code_is_ascii_and_of_readable_size(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.isascii()
    assert len(text.splitlines()) <= 330
