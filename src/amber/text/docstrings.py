"""Text that every Python installation has: its language reference and its docstrings.

The reference lies in `pydoc_data.topics`; docstrings are read from the source files of the standard
library and of packages without importing any. The same installation gives the same text.
"""

import ast
import importlib.util
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGES: Final = ("numpy", "torch")
"""Packages with much documentation; amber needs both, so they are there."""

SKIPPED: Final = frozenset({"test", "tests", "testing", "_testing", "site-packages", "_vendor"})
MIN_CHARACTERS: Final = 80
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_BARE_LINE = re.compile(r"[\W_]*")
_PROMPT = re.compile(r"\s*(>>>|\.\.\.)(\s|$)")
_ROLE = re.compile(r":[a-z:]+:`~?([^`<>]+)`")


def installed_documents(max_characters: int) -> Iterator[str]:
    """Yield documents, none of which holds a blank line: one per topic, and one per source file.

    Args:
        max_characters: after this many in all, no further document comes.
    """
    total = 0
    for document in _documents():
        if total >= max_characters:
            return
        if len(document) >= MIN_CHARACTERS:
            total += len(document)
            yield document


def _documents() -> Iterator[str]:
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    for topic in _topics(stdlib / "pydoc_data" / "topics.py"):
        yield clean(topic)
    roots = [stdlib, *filter(None, map(_package_folder, PACKAGES))]
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if not SKIPPED.intersection(path.relative_to(root).parts):
                yield "\n".join(filter(None, map(clean, docstrings(path))))


def docstrings(path: Path) -> list[str]:
    """Return the docstrings of a source file, outermost first; none if it cannot be read."""
    tree = _parse(path)
    if tree is None:
        return []
    found = []
    waiting: list[ast.AST] = [tree]
    for node in waiting:  # statements only: expressions hold no docstrings and are most of a tree
        if isinstance(node, DOCUMENTED):
            found.append(ast.get_docstring(node) or "")
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return [text for text in found if len(text) >= MIN_CHARACTERS // 2]


def clean(text: str) -> str:
    """Drop blank lines, lines without a letter or digit, and examples typed at a prompt.

    An example goes on to the next blank line. References such as `:class:`Path`` become the name
    that they show.
    """
    kept = []
    is_example = False
    for line in text.expandtabs().splitlines():
        is_example = bool(_PROMPT.match(line) or (is_example and line.strip()))
        if not is_example and not _BARE_LINE.fullmatch(line):
            kept.append(line.strip())
    return _ROLE.sub(r"\1", "\n".join(kept))


def _topics(path: Path) -> list[str]:
    """The values of the one dictionary in the file, read without importing it."""
    tree = _parse(path)
    values: list[str] = []
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Dict):
            constants = [value for value in node.values if isinstance(value, ast.Constant)]
            values += [value.value for value in constants if isinstance(value.value, str)]
    return values


def _parse(path: Path) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):  # odd escapes in other people's strings
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None
