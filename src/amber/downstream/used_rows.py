"""Train only those rows of the token table that the training text uses.

The others would get no gradient, and without weight decay AdamW leaves a weight alone whose
gradient was always 0: leaving them out changes no bit of any weight, as long as the width is a
multiple of 16 (else the norm and the update are added up in another order). It saves the clearing,
measuring and updating of the larger part of a small model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from amber.downstream.sequences import Sequences
from amber.model.encoder import Encoder


class UsedRows:
    """A small token table in place of the whole one, while training."""

    def __init__(self, encoder: Encoder, ids: Int[np.ndarray, " U"]) -> None:
        """Put the small table in.

        Args:
            encoder: has a token table of its own.
            ids: of the tokens that are used, sorted, each once.
        """
        self.encoder = encoder
        self.whole = encoder.embeddings.token
        self.rows = torch.from_numpy(ids).to(self.whole.weight.device)
        self.small = nn.Embedding(
            len(ids),
            self.whole.embedding_dim,
            _weight=self.whole.weight.detach()[self.rows].clone(),
        )
        encoder.embeddings.token = self.small

    @contextmanager
    def whole_table(self) -> Iterator[None]:
        """Put the whole table in for a while, with what the small one has learned."""
        self.restore()
        try:
            yield
        finally:
            self.encoder.embeddings.token = self.small

    @torch.no_grad()
    def restore(self) -> None:
        """Put the whole table in, with what the small one has learned."""
        self.whole.weight[self.rows] = self.small.weight
        self.encoder.embeddings.token = self.whole


def renumber(sequences: Sequences, *, pad_id: int) -> tuple[Sequences, Int[np.ndarray, " U"], int]:
    """Number the tokens of sequences anew, without gaps.

    Args:
        sequences: to train on.
        pad_id: of the padding token, which is used, too.

    Returns:
        The sequences, the ids that the new numbers stand for, and the padding token's new number.
    """
    ids = np.union1d(sequences.input_ids, [pad_id]).astype(np.int64)
    numbers = np.searchsorted(ids, sequences.input_ids).astype(np.int32)
    new_pad = int(np.searchsorted(ids, pad_id))
    return replace(sequences, input_ids=numbers), ids, new_pad
