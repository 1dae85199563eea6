"""Text from source files, without importing them."""

import pytest

from amber.text.docstrings import (
    clean,
    docstrings,
    first_sentence,
    first_sentences,
    installed_documents,
)

SOURCE = '''"""A module whose docstring is long enough to be kept here."""
raise RuntimeError("this file must not be run")

if True:
    class Thing:
        """A class inside a condition, whose docstring is kept as well."""

        def act(self):
            "Short."
            text = """Not a docstring, however long the line may be that it stands on."""

            async def inner():
                """A function inside a function; the last one to be found here."""
'''


def test_docstrings_are_found_at_any_depth_without_running_the_file(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    assert docstrings(path) == [
        "A module whose docstring is long enough to be kept here.",
        "A class inside a condition, whose docstring is kept as well.",
        "A function inside a function; the last one to be found here.",
    ]


def test_a_file_that_is_no_python_gives_nothing(tmp_path):
    path = tmp_path / "source.py"
    path.write_bytes(b"def (\xff\x00")
    assert docstrings(path) == []
    assert docstrings(tmp_path / "missing.py") == []


def test_examples_and_rules_and_blank_lines_are_dropped():
    text = (
        "Title\n=====\n\n  Use :class:`~a.b.Path` or ``x``.\n\n>>> f(1)\n[1,\n 2]\n\n"
        "... more\n\nThe end.\n---"
    )
    assert clean(text) == "Title\nUse a.b.Path or ``x``.\nThe end."


def test_documents_are_repeatable_and_hold_no_blank_line():
    first, again = list(installed_documents(60_000)), list(installed_documents(60_000))
    assert first == again
    assert all("\n\n" not in document and len(document) >= 80 for document in first)
    assert sum(map(len, first[:-1])) < 60_000 <= sum(map(len, first))


def test_the_language_reference_comes_first():
    first = next(installed_documents(1))
    assert "assert" in first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the mean of the numbers. An error\n\nLater.", "Return the mean of the numbers."),
        (
            "Return the root of a\nnumber without a stop",
            "Return the root of a number without a stop",
        ),
        ("Too short.", ""),
        ("A" + "x" * 200, ""),
        ("- an item of a list that is long enough", ""),
        (">>> print('a long example at a prompt')", ""),
    ],
)
def test_the_first_sentence_of_a_docstring(text, expected):
    assert first_sentence(text) == expected


@pytest.mark.slow
def test_first_sentences_are_of_three_libraries_and_name_none():
    found = list(first_sentences(50))
    assert {library for library, _ in found} == {"python", "numpy", "torch"}
    assert len({sentence for _, sentence in found}) == len(found) == 150
    assert not any(name in s.lower() for _, s in found for name in ("python", "numpy", "torch"))
    assert list(first_sentences(20)) == [pair for pair in found if rank(pair, found) < 20]


def rank(pair: tuple[str, str], found: list[tuple[str, str]]) -> int:
    """The place of a sentence among those of its library."""
    return [other for other in found if other[0] == pair[0]].index(pair)
