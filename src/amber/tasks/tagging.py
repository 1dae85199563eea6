"""Tagged sentences as windows of token ids, each word labelled at its first piece, once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from tokenizers import Tokenizer

from amber.tasks.example import TaggedExample
from amber.tasks.pieces import Frame, PlainTokenizer
from amber.tasks.windows import IGNORED, check_window, roomiest, windows

NO_WORD = -1
META_BLANK = "\u2581"  # the blank of SentencePiece


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedWindow:
    """A sentence or a part of one, without padding."""

    example: int
    """Index of the sentence."""
    input_ids: Int[np.ndarray, " T"]
    token_type_ids: Int[np.ndarray, " T"]
    words: Int[np.ndarray, " T"]
    """The word whose tag is read at this token; `NO_WORD` elsewhere."""
    labels: Int[np.ndarray, " T"]
    """The number of that word's tag; `IGNORED` elsewhere, and everywhere without tags."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedEncoding:
    """Sentences as windows, in order."""

    windows: tuple[TaggedWindow, ...]
    num_split: int
    """Sentences longer than one window."""
    num_without_piece: int
    """Words of which the tokenizer leaves nothing, such as a zero-width character: they have no
    label, and their predicted tag is O."""


def encode_tagged(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    *,
    labels: Sequence[str],
    max_length: int,
    stride: int,
) -> TaggedEncoding:
    """Encode sentences word by word, so that no piece crosses a word's end.

    A sentence that is too long is read in overlapping windows. A word that several of them hold is
    labelled in the one with most context around it.

    Args:
        examples: with or without tags.
        tokenizer: as `load_tokenizer` gives it.
        labels: the tags in the order of their numbers.
        max_length: tokens of a window, [CLS] and [SEP] included.
        stride: tokens from the start of a window to that of the next.

    Raises:
        UserError: `max_length` or `stride` leaves words out.
        ValueError: a tag that is not among `labels`.
    """
    plain = PlainTokenizer(tokenizer)
    capacity = max_length - plain.frame.num_special
    check_window(capacity, stride, max_length=max_length, reason="special tokens")
    row = {label: index for index, label in enumerate(labels)}
    pieces_of = _pieces_of_words(examples, plain, tokenizer.token_to_id(META_BLANK))
    found: list[TaggedWindow] = []
    num_split = num_without_piece = 0
    for index, example in enumerate(examples):
        pieces = [pieces_of[key] for key in _keys(example)]
        sizes = np.array([len(ids) for ids in pieces], dtype=np.int64)
        tags = np.full(len(sizes), IGNORED)
        if example.tags is not None:
            unknown = set(example.tags) - set(row)
            if unknown:
                raise ValueError(f"sentence {example.id}: tag {min(unknown)} is not in labels")
            tags = np.array([row[tag] for tag in example.tags], dtype=np.int64)
        parts = _windows_of(
            index, pieces, sizes, tags, plain.frame, capacity=capacity, stride=stride
        )
        found += parts
        num_split += len(parts) > 1
        num_without_piece += int((sizes == 0).sum())
    return TaggedEncoding(
        windows=tuple(found), num_split=num_split, num_without_piece=num_without_piece
    )


def _keys(example: TaggedExample) -> list[str]:
    """The words, with a blank in front where the text has one: byte-level pieces hold it."""
    text = example.text
    return [
        (" " if start and text[start - 1].isspace() else "") + text[start:stop]
        for start, stop in example.spans
    ]


def _pieces_of_words(
    examples: Sequence[TaggedExample], plain: PlainTokenizer, blank: int | None
) -> dict[str, Int[np.ndarray, " P"]]:
    keys = list(dict.fromkeys(key for example in examples for key in _keys(example)))
    found = dict(zip(keys, plain.ids(keys), strict=True))
    if blank is not None:  # put before every text, also where the word has no blank before it
        for key, ids in found.items():
            if len(ids) > 1 and ids[0] == blank and not key.startswith(" "):
                found[key] = ids[1:]
    return found


def _windows_of(
    index: int,
    pieces: list[Int[np.ndarray, " _"]],
    sizes: Int[np.ndarray, " W"],
    tags: Int[np.ndarray, " W"],
    frame: Frame,
    *,
    capacity: int,
    stride: int,
) -> list[TaggedWindow]:
    ids = np.concatenate([np.zeros(0, dtype=np.int64), *pieces])
    words = np.flatnonzero(sizes)
    firsts = (np.cumsum(sizes) - sizes)[words]
    spans = windows(len(ids), capacity=capacity, stride=stride)
    home = roomiest(firsts, spans)
    num_before = frame.single[0].shape[1]
    found: list[TaggedWindow] = []
    for number, (start, stop) in enumerate(spans):
        tokens = frame.around(ids[start:stop])
        here = home == number
        places = firsts[here] - start + num_before
        word_at = np.full(tokens.shape[1], NO_WORD)
        word_at[places] = words[here]
        label_at = np.full(tokens.shape[1], IGNORED)
        label_at[places] = tags[words[here]]
        found.append(
            TaggedWindow(
                example=index,
                input_ids=tokens[0],
                token_type_ids=tokens[1],
                words=word_at,
                labels=label_at,
            )
        )
    return found
