"""Networks for tasks: an encoder and a head for texts, tags or answers."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber.model.config import EncoderConfig
from amber.model.embeddings import layer_norm
from amber.model.encoder import Encoder
from amber.model.joint_answers import JointAnswerHead
from amber.model.task_shape import TaskShape


class TaskHead(nn.Module):
    """Scores as the task classes of `transformers` give them.

    | family | texts | tags | questions |
    |---|---|---|---|
    | electra | dropout, dense, GELU, dropout, output | dropout, output | output |
    | bert | dense, tanh (its pooler), dropout, output | dropout, output | output |
    | modernbert | dense, GELU, LayerNorm, dropout, output | the same | the same |

    Texts are read from [CLS], in the modern body by choice from the mean over the tokens.
    """

    def __init__(self, config: EncoderConfig, shape: TaskShape) -> None:
        """Make the layers.

        Args:
            config: of the encoder.
            shape: the task.
        """
        super().__init__()
        self.shape = shape
        size, is_modern = config.hidden_size, shape.model_type == "modernbert"
        self.dense: nn.Linear | None = None
        if shape.is_text or is_modern:
            self.dense = nn.Linear(size, size, bias=not is_modern)
        self.norm = layer_norm(config, size) if is_modern else None
        self.dropout = nn.Dropout(shape.dropout)
        self.output = nn.Linear(size, shape.num_outputs)

    def forward(
        self, hidden_states: Float[Tensor, "B N D"], attention_mask: Bool[Tensor, "B T"] | None
    ) -> Float[Tensor, "B *N C"]:
        """Score every text or every token that is read."""
        x = hidden_states
        if self.shape.is_text and self.shape.pooling == "mean":
            x = mean_state(x, attention_mask)  # (B, D)
        elif self.shape.is_text:
            x = x[:, 0]
        if self.dense is None:
            return self.output(x if self.shape.kind == "qa" else self.dropout(x))
        if self.shape.model_type == "electra":
            x = F.gelu(self.dense(self.dropout(x)))
        elif self.norm is None:
            x = self.dense(x).tanh()
        else:
            x = self.norm(F.gelu(self.dense(x)))
        return self.output(self.dropout(x))


class OfficialHead(nn.Module):
    """Scores as the official ELECTRA code gives them: one dense layer, and no other.

    Texts: on [CLS], after dropout. Tags: on each token, without dropout.
    """

    def __init__(self, config: EncoderConfig, shape: TaskShape) -> None:
        """Make the layer.

        Args:
            config: of the encoder.
            shape: the task.
        """
        super().__init__()
        self.is_text = shape.is_text
        self.dropout = nn.Dropout(shape.dropout)
        self.logits = nn.Linear(config.hidden_size, shape.num_outputs)

    def forward(
        self, hidden_states: Float[Tensor, "B N D"], attention_mask: Bool[Tensor, "B T"] | None
    ) -> Float[Tensor, "B *N C"]:
        """Score every text or every token; the mask is not needed."""
        return self.logits(self.dropout(hidden_states[:, 0]) if self.is_text else hidden_states)


class TaskModel(nn.Module):
    """An encoder with the head of one task."""

    def __init__(self, encoder: Encoder, shape: TaskShape) -> None:
        """Add a new head, whose weights are still to be set.

        Args:
            encoder: carries its own dropout.
            shape: the task.
        """
        super().__init__()
        self.shape = shape
        self.encoder = encoder
        self.head = new_head(encoder.config, shape)

    def forward(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B *N C"]:
        """Score a batch.

        Args:
            input_ids: rows of the token table.
            attention_mask: True for real tokens, False for padding; None when there is none.
            token_type_ids: segments; None means segment 0 (the modern body has none).

        Returns:
            (B, C) for texts, C = 1 for regression; (B, T, C) for tags; (B, T, 2) for questions,
            start and end. Those of padding mean nothing.
        """
        hidden = self.encode(input_ids, attention_mask, token_type_ids)
        return self.head(hidden, attention_mask)

    def encode(
        self,
        input_ids: Int[Tensor, "B T"],
        attention_mask: Bool[Tensor, "B T"] | None = None,
        token_type_ids: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Compute what the head reads: the vectors of all tokens, or that of [CLS] alone."""
        num_read = 1 if self.shape.is_text and self.shape.pooling == "cls" else None
        return self.encoder(input_ids, attention_mask, token_type_ids, num_read=num_read)


def new_head(config: EncoderConfig, shape: TaskShape) -> TaskHead | OfficialHead | JointAnswerHead:
    """Build the head of a task."""
    if shape.head == "hugging_face":
        return TaskHead(config, shape)
    return JointAnswerHead(config) if shape.kind == "qa" else OfficialHead(config, shape)


def mean_state(
    hidden_states: Float[Tensor, "B T D"], attention_mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B D"]:
    """Average the vectors of the real tokens."""
    if attention_mask is None:
        return hidden_states.mean(dim=1)
    weights = attention_mask.unsqueeze(-1).to(hidden_states.dtype)  # (B, T, 1)
    return (hidden_states * weights).sum(dim=1) / weights.sum(dim=1)
