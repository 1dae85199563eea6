"""The networks of one pre-training run, and the forward pass from text to losses."""

import math
from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amber.data.batch import Batch
from amber.electra.answer import detect, detect_chosen, gather, name_all, name_chosen, weigh
from amber.electra.config import Method
from amber.electra.corrupt import corrupt, replace_at_random, replaced_labels
from amber.electra.loss import mlm_loss_sum, reinforce_loss_sum
from amber.electra.mask import Masked
from amber.electra.networks import build_networks, copy_weights, fixed_scores
from amber.electra.outcome import Answer, Corrupted, Outcome, Predictions, Proposal, Stage
from amber.electra.sample import draw, draw_fixed, restrict
from amber.model.config import EncoderConfig
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead, RTDHead, UnitHead
from amber.model.init import initialize
from amber.model.towers import TwoTowers

NUM_COMPILED: Final = 32
"""Most variants of an encoder that are compiled. Those that occur: two networks, in training and
in evaluation, with and without padding, for one, some or any number of sequences. Torch counts
them together and leaves what exceeds its own limit of 8 uncompiled."""


class PretrainingModel(nn.Module):
    """A main encoder and what tests it.

    `encoder` is the result of the run, the discriminator when there is one. `generator` is what
    fills in masked tokens: with the objective `mlm`, `encoder` itself; two towers; or nothing.
    """

    forbidden_ids: Int[Tensor, " F"]

    def __init__(
        self,
        encoder: EncoderConfig,
        generator: EncoderConfig | None,
        method: Method,
        *,
        forbidden_ids: Int[Tensor, " F"],
        ordinary_ids: Int[Tensor, " N"],
        token_counts: Int[Tensor, " V"] | None = None,
        frozen: tuple[Encoder, MLMHead] | None = None,
        seed: int,
    ) -> None:
        """Build and initialise the networks.

        Args:
            encoder: shape of the main encoder.
            generator: shape of a trained generator or tower; None where there is none.
            method: what the run does.
            forbidden_ids: tokens that are never sampled, on the device of the run.
            ordinary_ids: what a random replacement may be.
            token_counts: occurrences in the training text (noise source unigram).
            frozen: a trained generator that learns no more (noise source frozen).
            seed: of the initial weights.
        """
        super().__init__()
        self.method = method
        self.stage: Stage = "generator" if method.algorithm == "two_stage" else "both"
        objective = method.objective
        networks = build_networks(encoder, generator, method)
        self.encoder: Encoder = networks.encoder
        self.generator: Encoder | TwoTowers | None = networks.generator
        self.mlm_head: MLMHead | None = None
        if objective == "mlm":
            self.generator = self.encoder
            self.mlm_head = MLMHead(encoder)
        elif generator is not None and method.noise.source != "two_tower":
            self.mlm_head = MLMHead(generator)
        self.baseline = None
        if method.algorithm == "adversarial" and generator is not None:
            self.baseline = UnitHead(generator)
        self.rtd_head: RTDHead | None = None
        self.vocabulary_head: MLMHead | None = None
        if objective in ("rtd", "rtd_masked", "electric"):
            self.rtd_head = RTDHead(encoder)
        elif objective != "mlm":
            self.vocabulary_head = MLMHead(encoder)
        self.copy_gate = UnitHead(encoder) if objective == "all_tokens_mlm" else None
        initialize(self, encoder, seed=seed)
        if objective == "electric" and self.rtd_head is not None:
            nn.init.constant_(self.rtd_head.classifier.bias, math.log(encoder.vocab_size))
        if frozen is not None:
            self.generator, self.mlm_head = frozen
            self.generator.requires_grad_(False)
            self.mlm_head.requires_grad_(False)
        # No buffers: nothing to save or to broadcast.
        self.forbidden_ids, self.ordinary_ids = forbidden_ids, ordinary_ids
        self.fixed_scores = fixed_scores(method, encoder.vocab_size, ordinary_ids, token_counts)

    def compile_encoders(self) -> None:
        """Compile the encoders in place; masking and sampling stay as they are."""
        limits = torch.compiler.config
        limits.recompile_limit = max(limits.recompile_limit, NUM_COMPILED)
        parts = {id(part): part for part in self.modules() if isinstance(part, Encoder)}
        for part in parts.values():
            part.compile()

    def train(self, mode: bool = True) -> "PretrainingModel":
        """Set the mode; a generator that learns no more stays in evaluation."""
        super().train(mode)
        if self.is_generator_frozen:
            for part in (self.generator, self.mlm_head):
                if part is not None:
                    part.eval()
        return self

    @property
    def is_generator_frozen(self) -> bool:
        """Whether the generator proposes without learning."""
        return self.method.noise.source == "frozen" or self.stage == "discriminator"

    @property
    def predictions(self) -> tuple[Predictions, Predictions]:
        """What the generator's and the main encoder's loss are means over."""
        objective = self.method.objective
        first: Predictions = "ordinary" if isinstance(self.generator, TwoTowers) else "masked"
        if objective in ("rtd_masked", "replace_mlm", "mlm"):
            return first, "masked"
        has_all = self.method.loss.include_special and objective != "electric"
        return first, "real" if has_all else "ordinary"

    def start_discriminator(self) -> None:
        """Go over to the second stage: the discriminator starts as the generator, which freezes."""
        assert self.generator is not None
        copy_weights(self.generator, self.encoder)
        self.freeze_generator()

    def freeze_generator(self) -> None:
        """Let the discriminator alone learn from now on."""
        self.stage = "discriminator"
        self.train(self.training)

    def forward(self, batch: Batch, masked: Masked, *, temperature: float = 1.0) -> Outcome:
        """Propose tokens for the chosen positions, put them in, and let the main encoder judge.

        Args:
            batch: the text and its noise.
            masked: the same text with positions hidden.
            temperature: of the distribution that replacements are drawn from.
        """
        method, labels = self.method, batch.input_ids.gather(1, masked.positions)
        proposal = self.propose(batch, masked, labels)
        if method.objective == "mlm" or self.stage == "generator":
            return Outcome(proposal, None)
        uniforms = batch.noise[3].gather(1, masked.positions)
        sampled, log_chances = self.sample(proposal, labels, uniforms, temperature)
        corrupted = self.corrupt(batch, masked, sampled)
        hidden = self.encoder(corrupted.input_ids, batch.key_mask, batch.token_type_ids)
        answer = self.answer(hidden, corrupted, proposal, batch, masked, temperature)
        if proposal is not None and log_chances is not None:
            proposal = reinforce(proposal, log_chances, answer, masked)
        return Outcome(proposal, answer)

    def propose(self, batch: Batch, masked: Masked, labels: Int[Tensor, "B K"]) -> Proposal | None:
        """Ask the generator for the chosen tokens; None where no network proposes."""
        if self.generator is None:
            return None
        if isinstance(self.generator, TwoTowers):
            every = self.generator(
                batch.input_ids, batch.key_mask, batch.token_type_ids, masked.is_maskable
            )
            text = batch.input_ids[masked.is_maskable]
            nats = mlm_loss_sum(every, text, torch.ones_like(text, dtype=torch.bool))
            number = masked.is_maskable.flatten().cumsum(0).view_as(masked.is_maskable) - 1
            slots = number.gather(1, masked.positions).clamp(min=0)
            logits = every.new_zeros(*slots.shape, every.shape[-1])  # of a batch of padding alone
            if len(every) > 0:
                logits = every.detach()[slots]
            return Proposal(nats, nats.detach(), logits, every.detach())
        assert self.mlm_head is not None
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_generator_frozen):
            hidden = self.generator(masked.input_ids, batch.key_mask, batch.token_type_ids)
            chosen = gather(hidden, masked.positions)
            table = self.generator.embeddings.table
            logits = self.mlm_head(chosen.flatten(0, 1), table).unflatten(0, labels.shape)
            expected = None if self.baseline is None else self.baseline(chosen.detach())
            nats = mlm_loss_sum(logits, labels, masked.is_used)
        return Proposal(nats, nats.detach(), logits, expected=expected)

    def sample(
        self,
        proposal: Proposal | None,
        labels: Int[Tensor, "B K"],
        uniforms: Float[Tensor, "B K"],
        temperature: float,
    ) -> tuple[Int[Tensor, "B K"], Float[Tensor, "B K"] | None]:
        """Draw a token for every slot.

        Returns:
            The tokens, and where the generator learns from what becomes of them (adversarial), the
            logarithms of their probabilities, with gradient.
        """
        noise = self.method.noise
        excluded = labels if noise.forbid_original else None
        if proposal is None:
            fixed = self.fixed_distribution(temperature)
            sampled, is_possible = draw_fixed(fixed, uniforms, excluded=excluded)
            return torch.where(is_possible, sampled, labels), None
        is_learning = proposal.expected is not None and torch.is_grad_enabled()
        with torch.set_grad_enabled(is_learning):
            scores = restrict(
                proposal.logits,
                forbidden_ids=self.forbidden_ids,
                temperature=temperature,
                top_k=noise.top_k,
                top_p=noise.top_p,
                excluded=excluded,
            )
            sampled, is_possible = draw(scores.detach(), uniforms)
            log_chances = None
            if proposal.expected is not None:
                log_chances = scores.log_softmax(-1).gather(-1, sampled.unsqueeze(-1)).squeeze(-1)
                log_chances = torch.where(is_possible, log_chances, 0.0)
        return torch.where(is_possible, sampled, labels), log_chances

    def fixed_distribution(self, temperature: float) -> Float[Tensor, " V"]:
        """Return the scores of a noise source without a network, as they are sampled from."""
        assert self.fixed_scores is not None
        noise = self.method.noise
        return restrict(
            self.fixed_scores,
            forbidden_ids=self.forbidden_ids,
            temperature=temperature,
            top_k=noise.top_k,
            top_p=noise.top_p,
        )

    def corrupt(self, batch: Batch, masked: Masked, sampled: Int[Tensor, "B K"]) -> Corrupted:
        """Put the samples into the text, and random tokens elsewhere; label what is replaced."""
        method, text = self.method, batch.input_ids
        input_ids = corrupt(text, masked.positions, masked.is_used, sampled)
        is_chosen = torch.zeros_like(masked.is_maskable)
        is_chosen = is_chosen.scatter(1, masked.positions, masked.is_used)
        if method.noise.random_fraction > 0:
            input_ids = replace_at_random(
                input_ids,
                masked.is_maskable & ~is_chosen,
                batch.noise,
                fraction=method.noise.random_fraction,
                ordinary_ids=self.ordinary_ids,
            )
        rule = "source" if method.objective == "electric" else method.label_rule
        labels = replaced_labels(text, input_ids, is_chosen, rule=rule)
        return Corrupted(text, input_ids, labels, is_chosen)

    def answer(
        self,
        hidden: Float[Tensor, "B T D"],
        corrupted: Corrupted,
        proposal: Proposal | None,
        batch: Batch,
        masked: Masked,
        temperature: float,
    ) -> Answer:
        """Do the main encoder's task."""
        method, table = self.method, self.encoder.embeddings.table
        is_scored = batch.attention_mask if self.predictions[1] == "real" else masked.is_maskable
        if self.rtd_head is None:
            assert self.vocabulary_head is not None
            if self.copy_gate is None:
                return name_chosen(self.vocabulary_head, hidden, table, corrupted, masked)
            heads = (self.vocabulary_head, self.copy_gate)
            return name_all(*heads, hidden, table, corrupted, is_scored)
        if method.objective == "electric":
            log_noise = self.log_noise(corrupted, proposal, masked, temperature)
            ratio = method.loss.nce_ratio
            return weigh(self.rtd_head, hidden, corrupted, log_noise, masked, nce_ratio=ratio)
        smoothing = method.loss.label_smoothing
        if method.objective == "rtd_masked":
            return detect_chosen(
                self.rtd_head, hidden, corrupted, masked, label_smoothing=smoothing
            )
        return detect(self.rtd_head, hidden, corrupted, is_scored, label_smoothing=smoothing)

    def log_noise(
        self, corrupted: Corrupted, proposal: Proposal | None, masked: Masked, temperature: float
    ) -> Float[Tensor, "B T"]:
        """Return log q of every ordinary token of the corrupted text, and 0 elsewhere."""
        tokens = corrupted.input_ids[masked.is_maskable]
        if proposal is None:
            log_q = self.fixed_distribution(temperature).log_softmax(-1)[tokens]
        else:
            assert proposal.everywhere is not None
            scores = restrict(
                proposal.everywhere, forbidden_ids=self.forbidden_ids, temperature=temperature
            )
            log_q = scores.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        result = torch.zeros(masked.is_maskable.shape, device=tokens.device)
        return result.masked_scatter(masked.is_maskable, log_q)


def reinforce(
    proposal: Proposal, log_chances: Float[Tensor, "B K"], answer: Answer, masked: Masked
) -> Proposal:
    """Make the generator maximise the discriminator's loss instead of its own (appendix F)."""
    assert answer.logits is not None
    assert proposal.expected is not None
    logits = answer.logits.float().gather(1, masked.positions)
    labels = answer.corrupted.is_replaced.gather(1, masked.positions).float()
    reward = F.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    gain, baseline = reinforce_loss_sum(log_chances, reward, proposal.expected, masked.is_used)
    return proposal._replace(loss=gain + baseline, reward=(reward * masked.is_used).sum())
