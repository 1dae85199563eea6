"""The normalisation rule for documents, and the key by which equal documents are known.

The rule, in this order: line ends become LF; U+FEFF (byte order mark) is removed; the Unicode form
is applied; NUL, the other C0 and C1 controls, DEL, U+FFFD and lone surrogates become a blank each
and are counted (never glued: `a NUL b` is two words); runs of blanks within a line become one
space; lines are stripped, empty lines removed.
"""

import hashlib
import re
import unicodedata
from typing import Literal

UnicodeForm = Literal["NFC", "NFKC", "none"]

KEY_BYTES = 16
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ud800-\udfff]")
_ODD = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\ufffd"
    "\ud800-\udfff]"
)
_BLANKS = re.compile(r"[^\S\n]+")
_LINE_EDGES = re.compile(r" ?\n[ \n]*")


def normalize_document(text: str, *, form: UnicodeForm = "NFC") -> tuple[str, int]:
    """Apply the rule above; applied twice it changes nothing more.

    Returns:
        The text, and how many characters became blanks because they are controls or U+FFFD.
    """
    if _ODD.search(text):
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    if form != "none" and not text.isascii():
        text = unicodedata.normalize(form, text)
    num_controls = 0
    if _ODD.search(text):
        text, num_controls = _CONTROL.subn(" ", text)
        text = _BLANKS.sub(" ", text)
    elif "  " in text:
        text = _BLANKS.sub(" ", text)
    if " \n" in text or "\n " in text or "\n\n" in text:
        text = _LINE_EDGES.sub("\n", text)
    return text.strip(" \n"), num_controls


def document_key(text: str) -> bytes:
    """128 bits of BLAKE2b of a normalised text: equal texts, and only they, have equal keys."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=KEY_BYTES).digest()


def is_held_out(key: bytes, fraction: float) -> bool:
    """Whether the first 64 bits of the key, read as a number in [0, 1), lie below the fraction."""
    return int.from_bytes(key[:8], "big") < fraction * 2.0**64
