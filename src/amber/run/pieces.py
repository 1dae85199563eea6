"""Cut texts into the sequences that a network takes."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from amber.text.clean import UnicodeForm, normalize_document
from amber.tokens.config import Words
from amber.tokens.encode import Encoder
from amber.tokens.tokenizer import special_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The tokens of one sequence, special ones included."""

    text: int
    """Number of the text, from 1."""

    part: int
    num_parts: int
    ids: list[int]
    is_word_start: list[bool] | None = None
    """Of each id, True at special ones; None where it was not asked for."""


def cut_texts(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    *,
    length: int,
    unicode_form: UnicodeForm,
    words: Words = "none",
) -> list[Piece]:
    """Tokenise texts as `amber prepare` does, and cut each into sequences without overlap.

    A text without a token gives no sequence.

    Args:
        texts: as the user gave them; a special token's name in them is plain text.
        tokenizer: of the model.
        length: longest sequence, in tokens.
        unicode_form: the normal form of the text that the model was trained on.
        words: who says where words begin, as for the training text.
    """
    special, room = special_ids(tokenizer), length - 2
    normal = [normalize_document(text, form=unicode_form)[0] for text in texts]
    encoded = Encoder(tokenizer, words).encode(normal)
    all_ids = encoded.ids.tolist()
    all_starts = None if encoded.words is None else encoded.words.is_start.tolist()
    pieces: list[Piece] = []
    start = 0
    for number, num_tokens in enumerate(encoded.lengths.tolist(), 1):
        stop, firsts = start + num_tokens, range(start, start + num_tokens, room)
        for part, first in enumerate(firsts, 1):
            place = slice(first, min(first + room, stop))
            pieces.append(
                Piece(
                    text=number,
                    part=part,
                    num_parts=len(firsts),
                    ids=[special.cls, *all_ids[place], special.sep],
                    is_word_start=all_starts and [True, *all_starts[place], True],
                )
            )
        start = stop
    return pieces
