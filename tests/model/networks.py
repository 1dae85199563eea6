"""Tiny networks with random weights, and a tokenizer for their folders."""

from pathlib import Path

import torch

from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.tokens.tokenizer import save_tokenizer, wordpiece

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
BERT = EncoderConfig(
    body="bert",
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=24,
    embedding_size=8,
    max_position_embeddings=160,
    type_vocab_size=2,
    hidden_dropout=0.0,
    attention_dropout=0.0,
    norm_eps=1e-12,
)
MODERN = EncoderConfig(
    body="modern",
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=24,
    embedding_size=16,
    max_position_embeddings=160,
    rope_theta=500.0,
)


def randomize(*modules: torch.nn.Module) -> None:
    """Give every weight, biases and norms too, a value that matters."""
    rng = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for module in modules:
            for weight in module.parameters():
                weight.copy_(torch.randn(weight.shape, generator=rng) * 0.3 + 0.1)


def random_encoder(config: EncoderConfig) -> Encoder:
    encoder = Encoder(config, Embeddings(config))
    randomize(encoder)
    return encoder


def batch(
    config: EncoderConfig, length: int = 12
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids, mask and segments of two sequences; the second ends in padding."""
    rng = torch.Generator().manual_seed(3)
    ids = torch.randint(5, config.vocab_size, (2, length), generator=rng)
    mask = torch.ones(2, length, dtype=torch.bool)
    mask[1, -5:] = False
    types = torch.zeros(2, length, dtype=torch.long)
    types[:, 4:] = 1
    return ids.where(mask, 0), mask, types.where(mask, 0)


def write_tokenizer(folder: Path) -> Path:
    tokenizer = wordpiece(VOCABULARY, lowercase=True, strip_accents=True)
    save_tokenizer(tokenizer, folder, model_max_length=160)
    return folder
