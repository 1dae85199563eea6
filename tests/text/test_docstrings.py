"""Text from source files, without importing them."""

from amber.text.docstrings import clean, docstrings, installed_documents

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
