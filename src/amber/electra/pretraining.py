"""The networks of one pre-training run, and the forward pass from text to losses."""

from typing import Final, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amber.data.batch import Batch
from amber.electra.config import Objective
from amber.electra.corrupt import corrupt
from amber.electra.loss import mlm_loss_sum, rtd_loss_sum
from amber.electra.mask import Masked
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead, RTDHead
from amber.model.init import initialize

NUM_COMPILED: Final = 32
"""Most variants of an encoder that are compiled. Those that occur: two networks, in training and
in evaluation, with and without padding, for one, some or any number of sequences. Torch counts
them together and leaves what exceeds its own limit of 8 uncompiled."""


class Detection(NamedTuple):
    """What the discriminator was given and said."""

    loss: Float[Tensor, ""]
    """Sum over the real tokens, in nats."""

    corrupted: Int[Tensor, "B T"]
    is_replaced: Bool[Tensor, "B T"]
    logits: Float[Tensor, "B T"]
    """Positive: replaced. Without gradient."""


class Outcome(NamedTuple):
    """What one batch gave: loss sums, and what the metrics need."""

    mlm_loss: Float[Tensor, ""]
    """Sum over the chosen positions, in nats."""

    mlm_logits: Float[Tensor, "B K V"]
    """Without gradient."""

    rtd: Detection | None
    """None with the objective mlm."""


class PretrainingModel(nn.Module):
    """A discriminator and the generator that tests it; or, for `mlm`, one encoder.

    `encoder` is the result of the run, the discriminator when there is one. `generator` is the
    encoder that fills in masked tokens: with the objective `mlm`, `encoder` itself. Both look up
    the same `Embeddings` object: tables, their norm, and nothing else, are shared (section 3.2).
    """

    forbidden_ids: Int[Tensor, " F"]

    def __init__(
        self,
        encoder: EncoderConfig,
        generator: EncoderConfig | None,
        *,
        forbidden_ids: Int[Tensor, " F"],
        seed: int,
    ) -> None:
        """Build and initialise the networks.

        Args:
            encoder: shape of the main encoder.
            generator: shape of the generator; None for the objective `mlm`.
            forbidden_ids: tokens that are never sampled, on the device of the run.
            seed: of the initial weights.
        """
        super().__init__()
        self.objective: Objective = "mlm" if generator is None else "rtd"
        embeddings = Embeddings(encoder)
        self.encoder = Encoder(encoder, embeddings)
        self.generator = Encoder(generator, embeddings) if generator else self.encoder
        self.mlm_head = MLMHead(generator or encoder)
        self.rtd_head = RTDHead(encoder) if generator else None
        self.forbidden_ids = forbidden_ids  # no buffer: nothing to save or to broadcast
        initialize(self, encoder, seed=seed)

    def compile_encoders(self) -> None:
        """Compile the encoders in place; masking and sampling stay as they are."""
        limits = torch.compiler.config
        limits.recompile_limit = max(limits.recompile_limit, NUM_COMPILED)
        self.encoder.compile()
        if self.generator is not self.encoder:
            self.generator.compile()

    def forward(self, batch: Batch, masked: Masked, *, temperature: float = 1.0) -> Outcome:
        """Fill in the masked tokens; then, for `rtd`, find which tokens were replaced.

        Args:
            batch: the text and its noise.
            masked: the same text with positions hidden.
            temperature: of the softmax that replacements are sampled from.
        """
        labels = batch.input_ids.gather(1, masked.positions)
        hidden = self.generator(masked.input_ids, batch.key_mask, batch.token_type_ids)
        index = masked.positions.unsqueeze(-1).expand(-1, -1, hidden.shape[-1])
        chosen = hidden.gather(1, index)  # (B, K, D)
        table = self.generator.embeddings.table
        mlm_logits = self.mlm_head(chosen.flatten(0, 1), table).unflatten(0, labels.shape)
        mlm_loss = mlm_loss_sum(mlm_logits, labels, masked.is_used)
        if self.rtd_head is None:
            return Outcome(mlm_loss, mlm_logits.detach(), None)

        corrupted, is_replaced = corrupt(
            batch.input_ids,
            masked.positions,
            masked.is_used,
            mlm_logits,
            batch.noise[3].gather(1, masked.positions),
            forbidden_ids=self.forbidden_ids,
            temperature=temperature,
        )
        hidden = self.encoder(corrupted, batch.key_mask, batch.token_type_ids)
        rtd_logits = self.rtd_head(hidden)
        rtd_loss = rtd_loss_sum(rtd_logits, is_replaced, batch.attention_mask)
        detection = Detection(rtd_loss, corrupted, is_replaced, rtd_logits.detach())
        return Outcome(mlm_loss, mlm_logits.detach(), detection)
