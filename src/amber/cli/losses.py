"""What of the examples a model does not read, in words."""

from collections.abc import Mapping
from typing import Final

from amber.cli.output import counted

WORDS: Final = {
    "words_without_token": ("word", "without a token"),
    "windows_with_part_of_the_answer": ("window", "with a part of the answer"),
    "answers_in_no_window": ("answer", "outside of every window"),
    "answers_inside_a_token": ("answer", "with an end inside a token"),
    "contexts_without_token": ("context", "without a token"),
}
"""By the names of counts: what is counted, and what is the matter with it."""


def loss_words(counts: Mapping[str, int], *, truncated_share: float) -> list[str]:
    """Say what is cut, read in parts, or lost on the way to tokens; nothing where nothing is.

    Args:
        counts: of `EncodedExamples`.
        truncated_share: of the examples of the same split.
    """
    words: list[str] = []
    if truncated_share:
        share = f"{truncated_share:.1%}" if truncated_share >= 0.001 else "under 0.1%"
        words.append(f"{share} of the examples cut to the length")
    if parts := counts.get("split", 0):
        words.append(f"{parts:,} read in several windows")
    words += [
        f"{counted(counts[name], noun)} {matter}"
        for name, (noun, matter) in WORDS.items()
        if counts.get(name)
    ]
    return words
