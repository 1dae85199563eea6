"""The pre-training heads on top of an encoder."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from amber.model.config import EncoderConfig
from amber.model.embeddings import layer_norm


class MLMHead(nn.Module):
    """Scores of every vocabulary entry, through the token table that the encoder reads too.

    Dense, GELU, LayerNorm, then the transposed table and a bias per entry; the modern body has no
    bias in the dense layer and the LayerNorm.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        has_bias = config.body == "bert"
        self.dense = nn.Linear(config.hidden_size, config.embedding_size, bias=has_bias)
        self.norm = layer_norm(config, config.embedding_size)
        self.bias = nn.Parameter(self.dense.weight.new_zeros(config.vocab_size))

    def forward(
        self, hidden_states: Float[Tensor, "N D"], table: Float[Tensor, "V E"]
    ) -> Float[Tensor, "N V"]:
        """Score the vocabulary at the given positions only: the others need no scores."""
        return F.linear(self.norm(F.gelu(self.dense(hidden_states))), table, self.bias)


class RTDHead(nn.Module):
    """One score per token: positive means replaced.

    Dense, GELU, (modern: LayerNorm,) one unit. The paper's formula has the one unit only; the
    official code has the dense layer before it.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        size, has_bias = config.hidden_size, config.body == "bert"
        self.dense = nn.Linear(size, size, bias=has_bias)
        self.norm = None if config.body == "bert" else layer_norm(config, size)
        self.classifier = nn.Linear(size, 1)

    def forward(self, hidden_states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T"]:
        """Score every token."""
        x = F.gelu(self.dense(hidden_states))
        if self.norm is not None:
            x = self.norm(x)
        return self.classifier(x).squeeze(-1)


class UnitHead(nn.Module):
    """One number per token, without a layer before: the copy gate, or a baseline."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, 1)

    def forward(self, hidden_states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N"]:
        """Score every vector."""
        return self.classifier(hidden_states).squeeze(-1)
