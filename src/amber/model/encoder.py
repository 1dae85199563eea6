"""The Transformer encoder: one code path for both bodies."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber.model.attention import Direction, attend, rotary_table, rotate
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings, layer_norm


class Layer(nn.Module):
    """Attention, then feed-forward, each with a residual connection.

    The bert body normalises after each residual sum (Vaswani et al. 2017); the modern body
    normalises what goes into each of the two, except before the very first attention, where the
    embeddings come normalised.
    """

    def __init__(
        self, config: EncoderConfig, *, is_first: bool, direction: Direction = "both"
    ) -> None:
        super().__init__()
        self.direction: Direction = direction
        size, has_bias = config.hidden_size, config.body == "bert"
        self.is_modern = config.body == "modern"
        self.num_heads = config.num_attention_heads
        self.attention_dropout = config.attention_dropout
        self.hidden_dropout = config.hidden_dropout

        widths = 2 if self.is_modern else 1
        self.qkv = nn.Linear(size, 3 * size, bias=has_bias)
        self.attention_output = nn.Linear(size, size, bias=has_bias)
        self.attention_norm: nn.LayerNorm | None = None
        if not (self.is_modern and is_first):
            self.attention_norm = layer_norm(config, size)
        self.up = nn.Linear(size, widths * config.intermediate_size, bias=has_bias)
        self.down = nn.Linear(config.intermediate_size, size, bias=has_bias)
        self.feed_forward_norm = layer_norm(config, size)

    def forward(
        self,
        hidden_states: Float[Tensor, "B T D"],
        attention_mask: Bool[Tensor, "B T"] | None,
        rotary: tuple[Float[Tensor, "T S"], Float[Tensor, "T S"]] | None,
    ) -> Float[Tensor, "B T D"]:
        """Let every token look at the others, then transform each alone."""
        x = hidden_states
        if self.is_modern:
            normed = x if self.attention_norm is None else self.attention_norm(x)
            x = x + self.attention(normed, attention_mask, rotary)
            return x + self.feed_forward(self.feed_forward_norm(x))
        assert self.attention_norm is not None
        x = self.attention_norm(x + self.attention(x, attention_mask, rotary))
        return self.feed_forward_norm(x + self.feed_forward(x))

    def attention(
        self,
        x: Float[Tensor, "B T D"],
        attention_mask: Bool[Tensor, "B T"] | None,
        rotary: tuple[Float[Tensor, "T S"], Float[Tensor, "T S"]] | None,
    ) -> Float[Tensor, "B T D"]:
        """Self-attention with its output projection and dropout, without the residual."""
        qkv = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # (B, T, 3, H, S)
        qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, B, H, T, S)
        if rotary is None:
            query, key, value = qkv.unbind()
        else:
            query, key = rotate(qkv[:2], *rotary).unbind()
            value = qkv[2]
        dropout = self.attention_dropout if self.training else 0.0
        mixed = attend(
            query, key, value, attention_mask, direction=self.direction, dropout=dropout
        )  # (B, H, T, S)
        output = self.attention_output(mixed.transpose(1, 2).flatten(2))
        return F.dropout(output, self.hidden_dropout, self.training)

    def feed_forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Two linear layers around GELU, gated in the modern body (Shazeer 2020)."""
        if self.is_modern:  # two products: cutting one wide result in two costs a copy backwards
            inner, gate = self.up.weight.chunk(2)
            wide = F.gelu(F.linear(x, inner)) * F.linear(x, gate)
        else:
            wide = F.gelu(self.up(x))
        return F.dropout(self.down(wide), self.hidden_dropout, self.training)


class Encoder(nn.Module):
    """Embeddings and layers: ids to one vector per token.

    Equal to `ElectraModel` (bert body) and to `ModernBertModel` with global attention and without
    biases (modern body) of `transformers`. Dropout acts in the same four places in both bodies:
    after the embeddings, on the attention weights, after the attention and after the feed-forward
    layer.
    """

    def __init__(
        self, config: EncoderConfig, embeddings: Embeddings, *, direction: Direction = "both"
    ) -> None:
        """Build the layers.

        Args:
            config: shape.
            embeddings: may be shared with another encoder.
            direction: the side that every token may look at.
        """
        super().__init__()
        self.config = config
        self.embeddings = embeddings
        self.embeddings_project: nn.Linear | None = None
        if config.embedding_size != config.hidden_size:
            self.embeddings_project = nn.Linear(config.embedding_size, config.hidden_size)
        self.layers = nn.ModuleList(
            Layer(config, is_first=i == 0, direction=direction)
            for i in range(config.num_hidden_layers)
        )
        self.final_norm: nn.LayerNorm | None = None
        if config.body == "modern":
            self.final_norm = layer_norm(config, config.hidden_size)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Encode a batch.

        Args:
            input_ids: rows of the token table.
            attention_mask: True for real tokens, False for padding; None when there is none.
            token_type_ids: segments; None means segment 0 (the modern body has none).

        Returns:
            One vector per token; those of padding mean nothing.
        """
        x = self.embeddings(input_ids, token_type_ids)  # (B, T, E)
        if self.embeddings_project is not None:
            x = self.embeddings_project(x)  # (B, T, D)
        rotary = None
        if self.config.body == "modern":
            rotary = rotary_table(
                x.shape[1],
                self.config.head_size,
                theta=self.config.rope_theta,
                device=x.device,
            )
        for layer in self.layers:
            x = layer(x, attention_mask, rotary)
        return x if self.final_norm is None else self.final_norm(x)
