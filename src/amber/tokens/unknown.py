"""The share of [UNK] by script, counted on a sample of text."""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from tokenizers import Tokenizer

from amber.tokens.vocabulary import special_ids

SCRIPTS = {
    "LATIN": "Latin",
    "FULLWIDTH": "Latin",
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "HIRAGANA": "Kana",
    "KATAKANA": "Kana",
    "HANGUL": "Hangul",
}


@lru_cache(maxsize=65536)
def script_of(character: str) -> str:
    """The script of a letter or mark; `digit`, `punctuation`, or `emoji/other` for the rest."""
    category = unicodedata.category(character)
    if category.startswith("N"):
        return "digit"
    if category.startswith("P") or (character.isascii() and category.startswith("S")):
        return "punctuation"
    if category[0] in "LM":
        first = unicodedata.name(character, "").partition(" ")[0]
        if not first:
            return "emoji/other"
        return SCRIPTS.get(first, first.capitalize())
    return "emoji/other"


def unk_by_script(tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, dict[str, int | float]]:
    """Count tokens and [UNK] by the script of the first character of each token.

    Returns:
        Script -> `tokens`, `unk` and `unk_fraction`, the most frequent script first. One [UNK] of
        WordPiece stands for a whole word.
    """
    unk = special_ids(tokenizer).unk
    tokens: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for text in texts:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        for row, (start, _) in zip(encoding.ids, encoding.offsets, strict=True):
            script = script_of(text[start]) if start < len(text) else "emoji/other"
            tokens[script] += 1
            unknown[script] += row == unk
    return {
        script: {"tokens": n, "unk": unknown[script], "unk_fraction": unknown[script] / n}
        for script, n in sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
    }


def unk_fraction(by_script: dict[str, dict[str, int | float]]) -> float:
    """The share of [UNK] over all scripts."""
    total = sum(row["tokens"] for row in by_script.values())
    return sum(row["unk"] for row in by_script.values()) / total if total else 0.0
