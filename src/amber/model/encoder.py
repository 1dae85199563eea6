"""The Transformer encoder: one code path for both bodies."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber.model.attention import Direction, attend, rotary_table, rotate
from amber.model.config import EncoderConfig
from amber.model.dropout import dropout
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
        *,
        num_read: int | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Let every token look at the others, then transform each alone.

        Args:
            hidden_states: one vector per token.
            attention_mask: as in `Encoder.forward`.
            rotary: the factors of `rotate`, in the modern body.
            num_read: compute the result for this many tokens from the first only; None: for all.
        """
        x, read = hidden_states, hidden_states[:, :num_read]
        if self.is_modern:
            normed = x if self.attention_norm is None else self.attention_norm(x)
            read = read + self.attention(normed, attention_mask, rotary, num_read)
            return read + self.feed_forward(self.feed_forward_norm(read))
        assert self.attention_norm is not None
        read = self.attention_norm(read + self.attention(x, attention_mask, rotary, num_read))
        return self.feed_forward_norm(read + self.feed_forward(read))

    def attention(
        self,
        x: Float[Tensor, "B T D"],
        attention_mask: Bool[Tensor, "B T"] | None,
        rotary: tuple[Float[Tensor, "T S"], Float[Tensor, "T S"]] | None,
        num_read: int | None,
    ) -> Float[Tensor, "B N D"]:
        """Self-attention with its output projection and dropout, without the residual."""
        if num_read is None:
            qkv = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # (B, T, 3, H, S)
            qkv = qkv.permute(2, 0, 3, 1, 4)  # (3, B, H, T, S)
            if rotary is None:
                query, key, value = qkv.unbind()
            else:
                query, key = rotate(qkv[:2], *rotary).unbind()
                value = qkv[2]
        else:
            query, key, value = self.first_queries(x, rotary, num_read)
        share = self.attention_dropout if self.training else 0.0
        mixed = attend(
            query, key, value, attention_mask, direction=self.direction, dropout=share
        )  # (B, H, N, S)
        output = self.attention_output(mixed.transpose(1, 2).flatten(2))
        return dropout(output, self.hidden_dropout, is_training=self.training)

    def first_queries(
        self,
        x: Float[Tensor, "B T D"],
        rotary: tuple[Float[Tensor, "T S"], Float[Tensor, "T S"]] | None,
        num_read: int,
    ) -> list[Float[Tensor, "B H _ S"]]:
        """Project queries of the first tokens, and keys and values of all."""
        widths, bias = [x.shape[-1], 2 * x.shape[-1]], self.qkv.bias
        query_weight, rest_weight = self.qkv.weight.split(widths)
        query_bias, rest_bias = (None, None) if bias is None else bias.split(widths)
        query = F.linear(x[:, :num_read], query_weight, query_bias)  # (B, N, D)
        rest = F.linear(x, rest_weight, rest_bias)  # (B, T, 2 D)
        parts = [query, *rest.chunk(2, dim=-1)]
        parts = [part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in parts]
        if rotary is not None:
            cos, sin = rotary
            parts[0] = rotate(parts[0], cos[:num_read], sin[:num_read])
            parts[1] = rotate(parts[1], cos, sin)
        return parts

    def feed_forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """Two linear layers around GELU, gated in the modern body (Shazeer 2020)."""
        if self.is_modern:  # two products: cutting one wide result in two costs a copy backwards
            inner, gate = self.up.weight.chunk(2)
            wide = F.gelu(F.linear(x, inner)) * F.linear(x, gate)
        else:
            wide = F.gelu(self.up(x))
        return dropout(self.down(wide), self.hidden_dropout, is_training=self.training)


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
        *,
        num_read: int | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Encode a batch.

        Args:
            input_ids: rows of the token table.
            attention_mask: True for real tokens, False for padding; None when there is none.
            token_type_ids: segments; None means segment 0 (the modern body has none).
            num_read: how many tokens, from the first, are read of the result: the last layer
                computes no others. None: all.

        Returns:
            One vector per token that is read; those of padding mean nothing.
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
        for layer in self.layers[:-1]:
            x = layer(x, attention_mask, rotary)
        x = self.layers[-1](x, attention_mask, rotary, num_read=num_read)
        return x if self.final_norm is None else self.final_norm(x)
