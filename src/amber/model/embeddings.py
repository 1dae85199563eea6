"""Ids to vectors: the tables, their sum, LayerNorm and dropout."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.dropout import Dropout


def layer_norm(config: EncoderConfig, size: int) -> nn.LayerNorm:
    """Build the LayerNorm of a body: the modern one has no bias."""
    return nn.LayerNorm(size, eps=config.norm_eps, bias=config.body == "bert")


class Embeddings(nn.Module):
    """The token table; in the bert body also learned positions and segments.

    One object may serve the generator and the discriminator: the official code shares all three
    tables and the LayerNorm, and the shared tables then receive the gradients of both. Or they
    share the token table alone. Or one has the table and the other learns a difference to it,
    without touching it (He et al. 2021, DeBERTaV3: gradient-disentangled sharing).
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        token: nn.Embedding | None = None,
        base: nn.Embedding | None = None,
    ) -> None:
        """Make the tables.

        Args:
            config: gives the sizes.
            token: a token table to share; a new one is made unless given.
            base: a token table of another network: this one's is its current content, through
                which no gradient passes, plus `delta`, which starts at 0.
        """
        super().__init__()
        size = config.embedding_size
        self.base = (base,)  # in a tuple: it is a part of the other network, not of this one
        if base is None:
            self.token = token or nn.Embedding(config.vocab_size, size)
        else:
            self.delta = nn.Embedding(config.vocab_size, size)
        self.position: nn.Embedding | None = None
        self.token_type: nn.Embedding | None = None
        if config.body == "bert":
            if config.type_vocab_size < 1:
                raise UserError(
                    "model.type_vocab_size is 0: the bert body has segments, set it to 2"
                )
            self.position = nn.Embedding(config.max_position_embeddings, size)
            self.token_type = nn.Embedding(config.type_vocab_size, size)
        self.norm = layer_norm(config, size)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self, input_ids: Int[Tensor, "B T"], token_type_ids: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T E"]:
        """Look up and normalise.

        Args:
            input_ids: rows of the token table.
            token_type_ids: segments; None means segment 0 everywhere. The modern body, which has
                no segments, ignores them.

        Returns:
            The vectors of the tokens in their places.

        Raises:
            ValueError: the sequence is longer than the position table.
        """
        vectors = F.embedding(input_ids, self.table)  # (B, T, E)
        if self.position is not None and self.token_type is not None:
            length = input_ids.shape[1]
            if length > self.position.num_embeddings:
                raise ValueError(
                    f"sequences have {length} tokens, the model has "
                    f"{self.position.num_embeddings} positions"
                )
            places = self.position.weight[:length]  # (T, E)
            if token_type_ids is None:
                vectors = vectors + (places + self.token_type.weight[0])
            else:
                vectors = vectors + places + self.token_type(token_type_ids)
        return self.dropout(self.norm(vectors))

    @property
    def table(self) -> Float[Tensor, "V E"]:
        """The token table, which the MLM head uses as its output layer."""
        base = self.base[0]
        return self.token.weight if base is None else base.weight.detach() + self.delta.weight
