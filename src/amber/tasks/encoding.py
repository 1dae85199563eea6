"""Texts and pairs as token ids, cut to the length that the model reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from tokenizers import Tokenizer

from amber.errors import UserError
from amber.tasks.example import TextExample
from amber.tasks.pieces import PlainTokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoded:
    """One example, without padding."""

    input_ids: Int[np.ndarray, " T"]
    token_type_ids: Int[np.ndarray, " T"]
    is_truncated: bool
    """Pieces at the end of a text were left out."""


def encode_texts(
    examples: Sequence[TextExample], tokenizer: Tokenizer, *, max_length: int
) -> list[Encoded]:
    """Encode texts and pairs; what is too long loses pieces at its end.

    Of a pair the longer text is cut until both are equally long, then both by turns, the second
    first: as BERT's and ELECTRA's code takes piece after piece from the longer one. When an odd
    number of pieces is left, the first text has one more. (The tokenizers of transformers give it
    to the text that was longer.)

    Args:
        examples: a name of a special token in them is plain text.
        tokenizer: as `load_tokenizer` gives it.
        max_length: tokens, [CLS] and [SEP] included.

    Raises:
        UserError: `max_length` leaves no room for text.
    """
    plain = PlainTokenizer(tokenizer)
    frame = plain.frame
    is_pair = [example.pair is not None for example in examples]
    num_special = frame.num_special_pair if any(is_pair) else frame.num_special
    if max_length <= num_special:
        raise UserError(
            f"recipe.length is {max_length}, and special tokens take {num_special} of it: raise it"
        )
    firsts = plain.ids([example.text for example in examples])
    pairs = [example.pair for example in examples if example.pair is not None]
    seconds = iter(plain.ids(pairs))
    encoded: list[Encoded] = []
    for first, has_second in zip(firsts, is_pair, strict=True):
        if has_second:
            second = next(seconds)
            sizes = pair_lengths(
                len(first), len(second), budget=max_length - frame.num_special_pair
            )
            tokens = frame.around_pair(first[: sizes[0]], second[: sizes[1]])
            is_truncated = sizes != (len(first), len(second))
        else:
            tokens = frame.around(first[: max_length - frame.num_special])
            is_truncated = len(first) > max_length - frame.num_special
        encoded.append(
            Encoded(input_ids=tokens[0], token_type_ids=tokens[1], is_truncated=is_truncated)
        )
    return encoded


def pair_lengths(num_first: int, num_second: int, *, budget: int) -> tuple[int, int]:
    """Say how many pieces of each text stay, when both together get `budget`."""
    if num_first + num_second <= budget:
        return num_first, num_second
    second = min(num_second, max(budget // 2, budget - num_first))
    return budget - second, second
