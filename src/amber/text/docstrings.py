"""Text that every Python installation has: its language reference and its docstrings.

The reference lies in `pydoc_data.topics`; docstrings are read from the source files of the standard
library and of packages without importing any. The same installation gives the same text.
"""

import ast
import hashlib
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
MIN_SENTENCE: Final = 30
MAX_SENTENCE: Final = 200
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_BARE_LINE = re.compile(r"[\W_]*")
_PROMPT = re.compile(r"\s*(>>>|\.\.\.)(\s|$)")
_SENTENCE = re.compile(r".+?[.!?](?=\s|$)")
_LIBRARY = re.compile(r"python|numpy|\bnp\b|torch", re.IGNORECASE)
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
    roots = _roots()
    for topic in _topics(roots["python"] / "pydoc_data" / "topics.py"):
        yield clean(topic)
    for root in roots.values():
        for path in _sources(root):
            yield "\n".join(filter(None, map(clean, docstrings(path))))


def _roots() -> dict[str, Path]:
    """The folder of each library: Python's own, and the packages that are there."""
    roots = {"python": Path(sysconfig.get_paths()["stdlib"])}
    folders = {name: _package_folder(name) for name in PACKAGES}
    return roots | {name: folder for name, folder in folders.items() if folder is not None}


def _sources(root: Path) -> Iterator[Path]:
    """The source files of a library that are documentation, in a fixed order."""
    for path in sorted(root.rglob("*.py")):
        if not SKIPPED.intersection(path.relative_to(root).parts):
            yield path


def first_sentences(max_per_library: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of a library and the first sentence of one of its docstrings, no sentence twice.

    A sentence that names one of the libraries is left out. Which ones are taken, and their order,
    depends on their digests alone.

    Args:
        max_per_library: as many of each library at most.
    """
    seen: set[str] = set()
    for library, root in _roots().items():
        found = {
            sentence: hashlib.sha256(sentence.encode("utf-8", errors="replace")).digest()
            for path in _sources(root)
            for text in docstrings(path)
            if (sentence := first_sentence(text)) and not _LIBRARY.search(sentence)
        }
        fresh = [
            sentence for sentence in sorted(found, key=found.__getitem__) if sentence not in seen
        ]
        seen |= found.keys()
        yield from ((library, sentence) for sentence in fresh[:max_per_library])


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line; empty if it is none, short or long."""
    paragraph = clean(text.partition("\n\n")[0]).replace("\n", " ")
    sentence = _SENTENCE.match(paragraph)
    found = sentence.group() if sentence else paragraph
    is_sentence = found[:1].isalpha() and MIN_SENTENCE <= len(found) <= MAX_SENTENCE
    return found if is_sentence else ""


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
