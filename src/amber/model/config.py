"""The shape of one encoder: the numbers from which a network is built (no torch here)."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from amber.errors import UserError

Body = Literal["bert", "modern"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EncoderConfig:
    """One encoder; `resolved` fills in the two sizes that may be left open."""

    body: Body = "modern"
    """`bert`: post-norm, learned positions, GELU (Devlin et al. 2019; the ELECTRA paper's).
    `modern`: pre-norm, rotary positions, gated GELU, no biases (ModernBERT, global attention)."""

    vocab_size: int = 0
    """Rows of the token table: the tokenizer's largest id + 1; 0 until the data is known."""

    hidden_size: int = 192
    num_hidden_layers: int = 6
    num_attention_heads: int = 3

    intermediate_size: int = 512
    """Width of the feed-forward layer; with the gated GELU, of each of its two halves."""

    embedding_size: int = 0
    """Width of the tables; 0 = as `hidden_size`. A linear layer follows where the two differ (bert
    body only)."""

    max_position_embeddings: int = 512
    """Longest sequence, in tokens."""

    type_vocab_size: int = 0
    """Segments told apart; 0 in the modern body, which has no segment table."""

    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0

    norm_eps: float = 1e-5
    """1e-12 in the official code; ModernBERT uses 1e-5."""

    rope_theta: float = 10_000.0
    """Base of the rotary angles (modern only)."""

    initial_std: float = 0.02
    """Standard deviation of the truncated normal of the tables, and of all weight matrices when
    `initial_scale` is 0."""

    initial_scale: float = 1.0
    """Above 0: weight matrices start at `initial_scale / sqrt(fan_in)` instead."""

    def __post_init__(self) -> None:
        """Refuse shapes that no network can have.

        Raises:
            UserError: sizes that do not fit together.
        """
        sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        for name in (*sizes, "max_position_embeddings"):
            if getattr(self, name) < 1:
                raise UserError(f"model.{name} must be at least 1, got {getattr(self, name)}")
        for name in ("vocab_size", "embedding_size", "type_vocab_size", "initial_scale"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"model.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("norm_eps", "rope_theta", "initial_std"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"model.{name} must be above 0, got {getattr(self, name)}")
        for name in ("hidden_dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"model.{name} must be in [0, 1), got {getattr(self, name)}")
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"model.hidden_size ({self.hidden_size}) must be a multiple of "
                f"model.num_attention_heads ({self.num_attention_heads}): change one of them"
            )
        if self.body == "modern" and self.embedding_size not in (0, self.hidden_size):
            raise UserError(
                f"the modern body has no projection: model.embedding_size ({self.embedding_size}) "
                f"must equal model.hidden_size ({self.hidden_size}): leave it out"
            )
        if self.body == "modern" and self.head_size % 2:
            raise UserError(
                f"model.hidden_size / model.num_attention_heads must be even with the modern body, "
                f"got {self.head_size}: change one of them"
            )
        if self.body == "modern" and self.type_vocab_size:
            raise UserError(
                f"model.type_vocab_size ({self.type_vocab_size}) has no effect on the modern body, "
                "which has no segments: set it to 0"
            )

    def resolved(self, vocab_size: int) -> "EncoderConfig":
        """Fill in what follows from the data and from the other sizes."""
        return replace(
            self, vocab_size=vocab_size, embedding_size=self.embedding_size or self.hidden_size
        )

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads
