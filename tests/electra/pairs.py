"""Tiny networks and batches of random tokens."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import (
    GeneratorConfig,
    LossConfig,
    MaskConfig,
    Method,
    NoiseConfig,
    generator_shape,
)
from amber.electra.mask import Masked, mask
from amber.electra.outcome import Outcome
from amber.electra.pretraining import PretrainingModel
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead
from amber.model.init import initialize

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = torch.tensor([PAD, CLS, SEP, MASK])
ORDINARY = torch.arange(5, 40)
COUNTS = torch.arange(40).mul(3).remainder(17).index_fill(0, SPECIAL, 0)
"""Occurrences of the tokens in a text; some do not occur."""

BERT = EncoderConfig(
    body="bert",
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    embedding_size=12,
    max_position_embeddings=64,
    type_vocab_size=2,
)
MODERN = replace(BERT, body="modern", embedding_size=16, type_vocab_size=0)
FROZEN = NoiseConfig(source="frozen", checkpoint=Path("a-folder"))
TOWERS = NoiseConfig(source="two_tower")
UNIGRAM = NoiseConfig(source="unigram")
UNIFORM = NoiseConfig(source="uniform")
COMBINATIONS: dict[str, dict[str, Any]] = {
    "rtd": {},
    "rtd without special": {"loss": LossConfig(include_special=False)},
    "rtd smoothed": {"loss": LossConfig(label_smoothing=0.1)},
    "rtd by source": {"label_rule": "source"},
    "rtd tokens shared": {"sharing": "tokens"},
    "rtd nothing shared": {"sharing": "none"},
    "rtd all shared": {"sharing": "all"},
    "rtd gdes": {"sharing": "gdes"},
    "rtd towers": {"noise": TOWERS},
    "rtd towers gdes": {"noise": TOWERS, "sharing": "gdes"},
    "rtd unigram": {"noise": UNIGRAM},
    "rtd uniform": {"noise": UNIFORM},
    "rtd frozen": {"noise": FROZEN},
    "rtd random": {"noise": NoiseConfig(random_fraction=0.2, forbid_original=True, top_k=5)},
    "rtd_masked": {"objective": "rtd_masked"},
    "replace_mlm": {"objective": "replace_mlm"},
    "all_tokens_mlm": {"objective": "all_tokens_mlm"},
    "all_tokens_mlm gdes": {"objective": "all_tokens_mlm", "sharing": "gdes"},
    "all_tokens_mlm without special": {
        "objective": "all_tokens_mlm",
        "loss": LossConfig(include_special=False),
    },
    "mlm": {"objective": "mlm"},
    "electric": {"objective": "electric", "noise": TOWERS},
    "electric nothing shared": {"objective": "electric", "noise": TOWERS, "sharing": "none"},
    "electric unigram": {"objective": "electric", "noise": UNIGRAM},
    "electric official": {
        "objective": "electric",
        "noise": UNIFORM,
        "loss": LossConfig(nce_ratio="official"),
    },
    "adversarial": {"algorithm": "adversarial"},
    "adversarial rtd_masked": {"algorithm": "adversarial", "objective": "rtd_masked"},
    "adversarial all shared": {"algorithm": "adversarial", "sharing": "all"},
    "two_stage": {"algorithm": "two_stage"},
}
"""Choices of all kinds that make sense together."""


def make_batch(lengths: list[int], *, width: int, seed: int = 0) -> Batch:
    """Rows of random ordinary tokens between [CLS] and [SEP]; the lengths count both."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 40, (len(lengths), 64), generator=rng)[:, :width]
    noise = torch.rand(5, len(lengths), 64, generator=rng)[..., :width]
    real = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    ids = ids.masked_fill(~real, PAD)
    for row, length in enumerate(lengths):
        if length:
            ids[row, 0], ids[row, length - 1] = CLS, SEP
    return Batch(
        input_ids=ids,
        attention_mask=real,
        token_type_ids=torch.zeros_like(ids),
        noise=noise,
        examples=torch.arange(len(lengths)),
    )


def rows_of(batch: Batch, rows: slice) -> Batch:
    """Cut some rows out of a batch, at its width."""
    return Batch(
        input_ids=batch.input_ids[rows],
        attention_mask=batch.attention_mask[rows],
        token_type_ids=batch.token_type_ids[rows],
        noise=batch.noise[:, rows],
        examples=batch.examples[rows],
    )


def hide(batch: Batch, config: MaskConfig | None = None) -> Masked:
    """Mask a batch."""
    return mask(
        batch.input_ids,
        batch.attention_mask & ~torch.isin(batch.input_ids, SPECIAL),
        batch.noise,
        config or MaskConfig(),
        mask_id=MASK,
        ordinary_ids=ORDINARY,
    )


def make_model(
    body: str = "bert", *, objective: str = "rtd", seed: int = 0, **choices: Any
) -> PretrainingModel:
    """A main encoder and what proposes replacements.

    The generator is half as wide (bert) or half as deep (modern), and equal where it must be.

    Args:
        body: bert or modern.
        objective: of the main encoder.
        seed: of the weights.
        choices: the other fields of Method.
    """
    method = Method(objective=objective, **choices)
    shape = shape_of(body)
    generator = small_shape(body, method) if method.is_generator_trained else None
    return PretrainingModel(
        shape,
        generator,
        method,
        forbidden_ids=SPECIAL.clone(),
        ordinary_ids=ORDINARY.clone(),
        token_counts=COUNTS.clone() if method.noise.source == "unigram" else None,
        frozen=make_frozen(body) if method.noise.source == "frozen" else None,
        seed=seed,
    )


def shape_of(body: str) -> EncoderConfig:
    """The main encoder's shape."""
    return BERT if body == "bert" else MODERN


def small_shape(body: str, method: Method) -> EncoderConfig:
    """The generator's shape."""
    config = GeneratorConfig()
    if method.algorithm != "two_stage" and method.sharing != "all":
        small = {"width_fraction": 0.5} if body == "bert" else {"depth_fraction": 0.5}
        config = GeneratorConfig(**small)
    return generator_shape(shape_of(body), config, sharing=method.sharing)


def make_frozen(body: str, *, dropout: float = 0.0) -> tuple[Encoder, MLMHead]:
    """An encoder and a vocabulary head with random weights."""
    shape = replace(shape_of(body), hidden_dropout=dropout)
    encoder, head = Encoder(shape, Embeddings(shape)), MLMHead(shape)
    initialize(encoder, shape, seed=1)
    initialize(head, shape, seed=2)
    randomize(encoder, head, seed=3)
    return encoder, head


def randomize(*modules: torch.nn.Module, seed: int = 0, scale: float = 0.3) -> None:
    """Add noise to every weight, so that none is 0 or 1."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in modules:
            for weight in module.parameters():
                weight.add_(torch.randn(weight.shape, generator=rng) * scale)


def gradients(model: PretrainingModel, loss: Tensor) -> dict[str, Tensor]:
    """The gradient of every parameter that has one."""
    model.zero_grad(set_to_none=True)
    loss.backward(retain_graph=True)
    return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def losses(outcome: Outcome) -> tuple[Tensor, Tensor]:
    """The sums of the generator and of the main encoder; 0 where there is none."""
    proposal, answer = outcome.proposal, outcome.answer
    return (
        torch.zeros(()) if proposal is None else proposal.loss,
        torch.zeros(()) if answer is None else answer.loss,
    )


def number_of(masked: Masked, batch: Batch) -> dict[str, int]:
    """Count the predictions of each kind."""
    return {
        "masked": int(masked.is_used.sum()),
        "ordinary": int(masked.is_maskable.sum()),
        "real": int(batch.attention_mask.sum()),
    }


def mean_loss(model: PretrainingModel, batch: Batch, counts: dict[str, int]) -> Tensor:
    """The weighted sum of both sums over the given counts."""
    first, second = losses(model(batch, hide(batch)))
    proposed, judged = (counts[name] for name in model.predictions)
    weights = model.method.weights_at(0.0)
    return weights[0] * first / proposed + weights[1] * second / judged
