"""Tiny networks and batches of random tokens."""

from dataclasses import replace

import torch

from amber.data.batch import Batch
from amber.electra.config import GeneratorConfig, MaskConfig, generator_shape
from amber.electra.mask import Masked, mask
from amber.electra.pretraining import PretrainingModel
from amber.model.config import EncoderConfig

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = torch.tensor([PAD, CLS, SEP, MASK])
ORDINARY = torch.arange(5, 40)
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


def make_batch(lengths: list[int], *, width: int, seed: int = 0) -> Batch:
    """Rows of random ordinary tokens between [CLS] and [SEP]; the lengths count both."""
    rng = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 40, (len(lengths), 64), generator=rng)[:, :width]
    noise = torch.rand(4, len(lengths), 64, generator=rng)[..., :width]
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


def make_model(body: str = "bert", *, objective: str = "rtd", seed: int = 0) -> PretrainingModel:
    """A pair with a smaller generator: half as wide (bert) or half as deep (modern)."""
    shape = BERT if body == "bert" else MODERN
    small = {"width_fraction": 0.5} if body == "bert" else {"depth_fraction": 0.5}
    generator = generator_shape(shape, GeneratorConfig(**small)) if objective == "rtd" else None
    return PretrainingModel(shape, generator, forbidden_ids=SPECIAL.clone(), seed=seed)
