"""The official ELECTRA code's head for questions: the end of an answer depends on its start."""

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber.model.config import EncoderConfig

WIDTH: Final = 512
BEAM_SIZE: Final = 20
UNSEEN: Final = -1e4
"""Score of a token that cannot be a start or an end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JointScores:
    """Scores in float32; position 0, [CLS], stands for no answer."""

    start: Float[Tensor, "B T"]
    end: Float[Tensor, "B T"]
    """Given the start."""
    no_answer: Float[Tensor, " B"]
    """Positive: the context has no answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spans:
    """The likeliest pairs of a start and an end, best first; an end may lie before its start."""

    start: Int[Tensor, "B N"]
    end: Int[Tensor, "B N"]
    log_chance: Float[Tensor, "B N"]
    """Of the start, plus that of the end given the start, in nats. Pairs with a token that cannot
    be one, which fill a beam wider than the context, lie near -1e4 or below."""
    no_answer: Float[Tensor, " B"]


class JointAnswerHead(nn.Module):
    """Scores of starts, of ends given a start, and of having no answer; no dropout anywhere.

    Start: one unit. End: (start's vector, token) -> 512, GELU -> 1. No answer: ([CLS], mean vector
    weighted by the starts' chances) -> 512, GELU -> 1.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.start = nn.Linear(size, 1)
        self.end_dense = nn.Linear(2 * size, WIDTH)
        self.end = nn.Linear(WIDTH, 1)
        self.no_answer_dense = nn.Linear(2 * size, WIDTH)
        self.no_answer = nn.Linear(WIDTH, 1)

    def forward(
        self, hidden_states: Float[Tensor, "B T D"], attention_mask: Bool[Tensor, "B T"] | None
    ) -> Float[Tensor, "B T 2"]:
        """Score every real token as the start, and as the end after the best start."""
        if attention_mask is None:
            attention_mask = hidden_states.new_ones(hidden_states.shape[:2], dtype=torch.bool)
        start = self.start_scores(hidden_states, attention_mask)
        scores = self.given_start(hidden_states, attention_mask, start.argmax(dim=1))
        return torch.stack([scores.start, scores.end], dim=-1)

    def given_start(
        self,
        hidden_states: Float[Tensor, "B T D"],
        is_context: Bool[Tensor, "B T"],
        start_positions: Int[Tensor, " B"],
    ) -> JointScores:
        """Score the ends for known starts, as in training.

        Args:
            hidden_states: of the encoder.
            is_context: the tokens of the context; [CLS] is added.
            start_positions: 0 where there is no answer.
        """
        can_be = with_cls(is_context)
        start = self.start_scores(hidden_states, can_be)
        ends = self.end_scores(hidden_states, can_be, start_positions.unsqueeze(1))  # (B, 1, T)
        no_answer = self.no_answer_scores(hidden_states, start)
        return JointScores(start=start, end=ends.squeeze(1), no_answer=no_answer)

    def search(
        self,
        hidden_states: Float[Tensor, "B T D"],
        is_context: Bool[Tensor, "B T"],
        *,
        beam_size: int = BEAM_SIZE,
    ) -> Spans:
        """Find the likeliest starts, and for each of them the likeliest ends.

        Args:
            hidden_states: of the encoder.
            is_context: the tokens of the context; [CLS] is added.
            beam_size: starts, and ends per start; at most the number of tokens.
        """
        can_be = with_cls(is_context)
        size = min(beam_size, hidden_states.shape[1])
        scores = self.start_scores(hidden_states, can_be)
        start_chances, starts = scores.log_softmax(dim=-1).topk(size, dim=-1)  # (B, K)
        ends = self.end_scores(hidden_states, can_be, starts).log_softmax(dim=-1)  # (B, K, T)
        end_chances, ends = ends.topk(size, dim=-1)  # (B, K, K)
        both = (start_chances.unsqueeze(-1) + end_chances).flatten(1)  # (B, K * K)
        log_chance, order = both.sort(dim=-1, descending=True, stable=True)
        return Spans(
            start=starts.repeat_interleave(size, dim=1).gather(1, order),
            end=ends.flatten(1).gather(1, order),
            log_chance=log_chance,
            no_answer=self.no_answer_scores(hidden_states, scores),
        )

    def start_scores(
        self, hidden_states: Float[Tensor, "B T D"], can_be: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T"]:
        """Score every token as the start."""
        return self.start(hidden_states).squeeze(-1).float().masked_fill(~can_be, UNSEEN)

    def end_scores(
        self,
        hidden_states: Float[Tensor, "B T D"],
        can_be: Bool[Tensor, "B T"],
        starts: Int[Tensor, "B K"],
    ) -> Float[Tensor, "B K T"]:
        """Score every token as the end after each of K starts.

        The dense layer over both vectors is the sum of two, each computed once per vector.
        """
        rows = starts.unsqueeze(-1).expand(-1, -1, hidden_states.shape[-1])  # (B, K, D)
        of_start, of_token = self.end_dense.weight.chunk(2, dim=1)
        left = F.linear(hidden_states.gather(1, rows), of_start, self.end_dense.bias)  # (B, K, W)
        right = F.linear(hidden_states, of_token)  # (B, T, W)
        both = F.gelu(left.unsqueeze(2) + right.unsqueeze(1))  # (B, K, T, W)
        return self.end(both).squeeze(-1).float().masked_fill(~can_be.unsqueeze(1), UNSEEN)

    def no_answer_scores(
        self, hidden_states: Float[Tensor, "B T D"], start: Float[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """Score every context for having no answer."""
        chances = start.softmax(dim=-1).to(hidden_states.dtype).unsqueeze(1)  # (B, 1, T)
        mean = (chances @ hidden_states).squeeze(1)  # (B, D)
        x = F.gelu(self.no_answer_dense(torch.cat([hidden_states[:, 0], mean], dim=-1)))
        return self.no_answer(x).squeeze(-1).float()


def with_cls(is_context: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """Add the first token."""
    first = torch.ones_like(is_context[:, :1])
    return torch.cat([first, is_context[:, 1:]], dim=1)


def joint_loss(
    scores: JointScores,
    start_positions: Int[Tensor, " B"],
    end_positions: Int[Tensor, " B"],
    is_unanswerable: Bool[Tensor, " B"],
    *,
    no_answer_weight: float = 0.5,
) -> Float[Tensor, " B"]:
    """Loss per example in nats: the mean over start and end, plus that of "no answer".

    Args:
        scores: given the true starts.
        start_positions: 0 where there is no answer.
        end_positions: 0 where there is no answer.
        is_unanswerable: whether the question has no answer.
        no_answer_weight: of the last term; 0.5 in the official code.
    """
    start = F.cross_entropy(scores.start, start_positions, reduction="none")
    end = F.cross_entropy(scores.end, end_positions, reduction="none")
    missing = F.binary_cross_entropy_with_logits(
        scores.no_answer, is_unanswerable.float(), reduction="none"
    )
    return (start + end) / 2 + no_answer_weight * missing
