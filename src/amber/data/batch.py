"""One batch of examples: token ids, what is real, and the random numbers of its noise."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amber.data import noise
from amber.data.examples import Examples
from amber.tokens.shards import Shards
from amber.tokens.tokenizer import SpecialIds


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Examples before masking. Padding is on the right."""

    input_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"]
    """True at real tokens, [CLS] and [SEP] included."""

    token_type_ids: Int[Tensor, "B T"]
    noise: Float[Tensor, "5 B T"]
    """Uniform numbers in [0, 1): which positions are chosen, how each is treated, which random
    token, which sample of the generator, and how many words are chosen together."""

    examples: Int[Tensor, " B"]
    """Example numbers, for messages; -1 in a row that is all padding."""

    is_padded: bool = True
    """False when every token is real: then attention needs no mask."""

    is_word_start: Bool[Tensor, "B T"] | None = None
    """True at the first token of each word, at special tokens and in padding; None where the run
    does not ask for words."""

    @property
    def key_mask(self) -> Bool[Tensor, "B T"] | None:
        """The tokens that attention may look at; None for all."""
        return self.attention_mask if self.is_padded else None

    def to(self, device: torch.device) -> "Batch":
        """Copy to a device."""
        return Batch(
            input_ids=self.input_ids.to(device, non_blocking=True),
            attention_mask=self.attention_mask.to(device, non_blocking=True),
            token_type_ids=self.token_type_ids.to(device, non_blocking=True),
            noise=self.noise.to(device, non_blocking=True),
            examples=self.examples,
            is_padded=self.is_padded,
            is_word_start=None
            if self.is_word_start is None
            else self.is_word_start.to(device, non_blocking=True),
        )


def empty_batch(special: SpecialIds, *, width: int, with_words: bool = False) -> Batch:
    """Return one row of padding: for a process that has no sequence left in a round of a step.

    It goes through the networks like any other, so that all processes do the same things, and
    counts nothing: no position is chosen in it and no token of it is real.
    """
    return Batch(
        input_ids=torch.full((1, width), special.pad),
        attention_mask=torch.zeros(1, width, dtype=torch.bool),
        token_type_ids=torch.zeros(1, width, dtype=torch.int64),
        noise=torch.zeros(len(noise.BATCH_STREAMS), 1, width),
        examples=torch.full((1,), -1),
        is_word_start=torch.ones(1, width, dtype=torch.bool) if with_words else None,
    )


def build_batch(
    shards: Shards,
    layout: Examples,
    special: SpecialIds,
    *,
    examples: np.ndarray,
    epochs: np.ndarray,
    seed: int,
    multiple: int = 8,
    with_words: bool = False,
) -> Batch:
    """Read examples and draw their noise.

    The batch is as wide as its longest example, rounded up to `multiple` tokens but never above
    the full length: the width changes nothing that is trained on.

    Args:
        shards: the tokens.
        layout: where the examples lie in them.
        special: ids of [CLS], [SEP] and [PAD].
        examples: B example numbers.
        epochs: the pass over the data that each belongs to.
        seed: of the run.
        multiple: widths come in steps of this many tokens.
        with_words: read where words begin, too; the data must have them.
    """
    starts, stops, in_a = layout.spans(examples)
    is_pair = in_a < stops - starts
    sizes = stops - starts + np.where(is_pair, 3, 2)
    width = min(layout.length, -(-int(sizes.max()) // multiple) * multiple)
    input_ids = np.full((len(examples), width), special.pad, dtype=np.int64)
    token_type_ids = np.zeros_like(input_ids)
    is_word_start = np.ones(input_ids.shape, dtype=bool) if with_words else None
    input_ids[:, 0] = special.cls
    for row, (start, stop, a, pair) in enumerate(zip(starts, stops, in_a, is_pair, strict=True)):
        tokens = shards.read(int(start), int(stop))
        size = sizes[row]
        input_ids[row, 1 : a + 1] = tokens[:a]
        input_ids[row, a + 1] = special.sep
        if pair:
            input_ids[row, a + 2 : size - 1] = tokens[a:]
            input_ids[row, size - 1] = special.sep
            token_type_ids[row, a + 2 : size] = 1
        if is_word_start is not None:
            starts_word = shards.read_word_starts(int(start), int(stop))
            is_word_start[row, 1 : a + 1] = starts_word[:a]
            is_word_start[row, a + 2 : a + 2 + len(starts_word) - a] = starts_word[a:]
    drawn = [noise.uniforms(seed, s, epochs, examples, width) for s in noise.BATCH_STREAMS]
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        attention_mask=torch.from_numpy(np.arange(width) < sizes[:, None]),
        token_type_ids=torch.from_numpy(token_type_ids),
        noise=torch.from_numpy(np.stack(drawn)),
        examples=torch.from_numpy(examples),
        is_padded=bool(sizes.min() < width),
        is_word_start=None if is_word_start is None else torch.from_numpy(is_word_start),
    )
