"""Read and check a vocabulary before anything is done with it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from amber.errors import UserError

SPECIAL_NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<cls>", "<s>"),
    "sep": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
SPECIAL_TOKENS = tuple(names[0] for names in SPECIAL_NAMES.values())
CJK_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_UNUSED = re.compile(r"[\[<]unused[_-]?\d+[\]>]", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[<].*[\]>]")


@dataclass(frozen=True, kw_only=True, slots=True)
class SpecialIds:
    """The ids of the five tokens that the method needs."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


def read_vocabulary(path: Path) -> tuple[list[str], list[str]]:
    """Read a `vocab.txt`: one token a line, the line number (from 0) its id.

    Returns:
        The tokens, and notes on what was passed over (a byte order mark, blank lines at the end).

    Raises:
        UserError: not UTF-8, blank or repeated lines, a special token missing.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not valid UTF-8 at byte {error.start}: convert the file"
        ) from error
    notes = []
    if text.startswith("\ufeff"):
        text = text[1:]
        notes.append(f"{path}: a byte order mark was passed over")
    tokens = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if tokens[-1] == "":
        tokens.pop()  # the end of the last line
    num_lines = len(tokens)
    while tokens and not tokens[-1].strip():
        tokens.pop()
    if len(tokens) < num_lines:
        notes.append(f"{path}: {num_lines - len(tokens)} blank lines at the end were passed over")
    first_line: dict[str, int] = {}
    for line, token in enumerate(tokens, 1):
        if token in ("", "\ufeff"):
            raise UserError(f"{path}, line {line}: blank line in the vocabulary: delete it")
        if token in first_line:
            raise UserError(
                f"{path}, line {line}: token '{token}' is already on line {first_line[token]}: "
                "each "
                "token must occur once"
            )
        first_line[token] = line
    missing = [names[0] for names in SPECIAL_NAMES.values() if not set(names) & set(first_line)]
    if missing:
        raise UserError(
            f"{path}: the vocabulary of {len(tokens)} tokens has no {', '.join(missing)}: add a "
            "line "
            "for each, or rename an unused token"
        )
    return tokens, notes


def looks_cased(tokens: list[str]) -> bool:
    """Whether a vocabulary holds ASCII capitals outside names in brackets such as [PAD] or <S>."""
    return any(re.search("[A-Z]", token) and not _BRACKETED.fullmatch(token) for token in tokens)


def vocab_size(tokenizer: Tokenizer) -> int:
    """Rows that a model needs: the largest id, added tokens included, + 1."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Find the five special tokens by their usual names, else by their place in the tokenizer.

    Raises:
        UserError: names those that are missing.
    """
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    found: dict[str, int] = {}
    guesses = _guess_names(tokenizer)
    for role, names in SPECIAL_NAMES.items():
        for name in (*names, *guesses.get(role, ())):
            if name in vocabulary:
                found[role] = vocabulary[name]
                break
    missing = [names[0] for role, names in SPECIAL_NAMES.items() if role not in found]
    if missing:
        raise UserError(
            f"the tokenizer of {len(vocabulary)} tokens has no {', '.join(missing)}: add the "
            "token to "
            "its vocabulary, or train a new tokenizer"
        )
    if len(set(found.values())) < len(found):
        raise UserError(
            f"two special tokens of the tokenizer share an id ({found}): give each its own"
        )
    return SpecialIds(**found)


def _guess_names(tokenizer: Tokenizer) -> dict[str, list[str]]:
    """Names that the tokenizer's own parts use for the five roles."""
    guesses: dict[str, list[str]] = {role: [] for role in SPECIAL_NAMES}
    unk = getattr(tokenizer.model, "unk_token", None)
    if isinstance(unk, str):
        guesses["unk"].append(unk)
    for added in tokenizer.get_added_tokens_decoder().values():
        if added.special:
            for role in guesses:
                if role in added.content.lower():
                    guesses[role].append(added.content)
    return guesses


def special_token_ids(tokenizer: Tokenizer) -> set[int]:
    """Every id that is not text: the five, and whatever else is marked as special."""
    five = special_ids(tokenizer)
    ids = {five.pad, five.unk, five.cls, five.sep, five.mask}
    return ids | {i for i, added in tokenizer.get_added_tokens_decoder().items() if added.special}


def is_cjk(character: str) -> bool:
    """Whether BERT's pre-tokenisation puts this character between spaces."""
    return any(low <= ord(character) <= high for low, high in CJK_RANGES)


def is_ordinary(tokenizer: Tokenizer) -> np.ndarray:
    """Which rows of the vocabulary can stand in text, and so may replace a token at random.

    Not special tokens, not `[unused..]`, not ids without a token, and not `##` + a CJK character:
    where
    CJK characters are spaced, such a piece never occurs.
    """
    ordinary = np.zeros(vocab_size(tokenizer), dtype=bool)
    spaced = _spaces_cjk(tokenizer)
    for token, row in tokenizer.get_vocab(with_added_tokens=True).items():
        dead = spaced and token.startswith("##") and len(token) > 2 and is_cjk(token[2])
        ordinary[row] = bool(token) and not _UNUSED.fullmatch(token) and not dead
    ordinary[list(special_token_ids(tokenizer))] = False
    return ordinary


def _spaces_cjk(tokenizer: Tokenizer) -> bool:
    normalizer = json.loads(tokenizer.to_str()).get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    return any(part.get("handle_chinese_chars") for part in parts)
