from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForTokenClassification,
)

from amber.cost.flops import (
    Cost,
    matched_steps,
    total,
    training_flops_per_sequence,
)
from amber.cost.method import Objective, Source
from amber.cost.paper import mlm_step_flops, narrower, rtd_step_flops
from amber.cost.published import BASE, SMALL
from amber.model.config import EncoderConfig

PAIR = EncoderConfig(  # one layer, two wide: small enough to count on paper
    body="bert",
    vocab_size=5,
    hidden_size=2,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=3,
    embedding_size=2,
    type_vocab_size=2,
)
TINY = EncoderConfig(
    body="bert",
    vocab_size=50,
    hidden_size=12,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=20,
    embedding_size=8,
    max_position_embeddings=16,
    type_vocab_size=2,
)
MODERN = replace(TINY, body="modern", embedding_size=12, type_vocab_size=0, norm_eps=1e-5)
EAGER: dict[str, Any] = {"attn_implementation": "eager"}
MODERN_SETTINGS: dict[str, Any] = EAGER | {"global_attn_every_n_layers": 1, "num_labels": 1}
BATCH, LENGTH = 2, 7
IDS = torch.arange(BATCH * LENGTH).view(BATCH, LENGTH)


def forward_counts(costs: dict[str, Cost]) -> dict[str, int]:
    return {name: cost.forward for name, cost in costs.items()}


def test_a_tiny_discriminator_counted_by_hand():
    costs = training_flops_per_sequence(
        PAIR, None, length=3, num_masked=1, objective="rtd", source="unigram"
    )
    assert forward_counts(costs) == {
        "discriminator: attention projections": 3 * 4 * 8,  # 4 matrices of 2 x 2
        "discriminator: attention scores": 3 * 2 * 12,  # 3 scores, then a sum of 3 values
        "discriminator: feed-forward": 3 * 2 * 12,
        "discriminator: RTD head": 3 * (8 + 4),  # every position
    }
    assert total(costs).train == 3 * total(costs).forward == 3 * 276


def test_a_tiny_masked_language_model_counted_by_hand():
    config = replace(PAIR, embedding_size=4)
    costs = training_flops_per_sequence(config, None, length=3, num_masked=2, objective="mlm")
    assert forward_counts(costs) == {
        "encoder: embedding projection": 3 * 16,
        "encoder: attention projections": 96,
        "encoder: attention scores": 72,
        "encoder: feed-forward": 72,
        "encoder: MLM head": 2 * (16 + 2 * 4 * 5),  # the two masked slots only
    }


def test_the_gated_feed_forward_layer_has_three_matrices():
    config = replace(PAIR, body="modern", type_vocab_size=0)
    costs = training_flops_per_sequence(
        config, None, length=3, num_masked=1, objective="rtd", source="unigram"
    )
    assert costs["discriminator: feed-forward"].forward == 3 * 3 * 12


def test_the_paper_rule_by_part_adds_up_to_the_papers_step():
    small = replace(
        TINY,
        vocab_size=30_522,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=1024,
        embedding_size=128,
    )
    generator = replace(small, hidden_size=64, num_attention_heads=1, intermediate_size=256)
    sizes = {"length": 128, "num_masked": 19, "rule": "paper"}
    rtd = total(training_flops_per_sequence(small, generator, objective="rtd", **sizes)).train
    mlm = total(training_flops_per_sequence(small, None, objective="mlm", **sizes)).train
    assert rtd * 128 * 1_000_000 == pytest.approx(1.293743798272e18, rel=1e-15)
    assert mlm * 128 * 1_450_000 == pytest.approx(1.4187399146496e18, rel=1e-15)


def test_matched_steps_of_the_paper():
    small_rtd = rtd_step_flops(SMALL, narrower(SMALL, 64), batch_size=128)
    small_mlm = mlm_step_flops(SMALL, batch_size=128)
    steps = matched_steps(1_000_000, step_flops=small_rtd, other_step_flops=small_mlm)
    assert steps == pytest.approx(1.322e6, rel=5e-3)
    base_rtd = rtd_step_flops(BASE, narrower(BASE, 256), batch_size=256)
    base_mlm = mlm_step_flops(BASE, batch_size=256)
    steps = matched_steps(766_000, step_flops=base_rtd, other_step_flops=base_mlm)
    assert steps == pytest.approx(999.4e3, rel=1e-3)


def electra(config: EncoderConfig) -> ElectraConfig:
    return ElectraConfig(
        vocab_size=config.vocab_size,
        embedding_size=config.embedding_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        max_position_embeddings=config.max_position_embeddings,
        **EAGER,
    )


def modernbert(config: EncoderConfig) -> ModernBertConfig:
    return ModernBertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=config.intermediate_size,
        max_position_embeddings=config.max_position_embeddings,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        **MODERN_SETTINGS,
    )


def counted(model: nn.Module) -> tuple[int, int]:
    """Count the matrix products that a library's network really does: forward, and both ways."""
    with FlopCounterMode(display=False) as forward:
        logits = model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    return forward.get_total_flops(), forward.get_total_flops() + backward.get_total_flops()


def expected(config: EncoderConfig, objective: Objective) -> tuple[int, int]:
    # The library scores the vocabulary at every position: all of them are "masked" here.
    source: Source = "generator" if objective == "mlm" else "unigram"
    cost = total(
        training_flops_per_sequence(
            config, None, length=LENGTH, num_masked=LENGTH, objective=objective, source=source
        )
    )
    return BATCH * cost.forward, BATCH * cost.train


@pytest.mark.parametrize("width", [8, 12])
def test_electra_does_the_products_that_we_count(width: int):
    config = replace(TINY, embedding_size=width)
    assert counted(ElectraForPreTraining(electra(config))) == expected(config, "rtd")
    assert counted(ElectraForMaskedLM(electra(config))) == expected(config, "mlm")


def test_modernbert_does_the_products_that_we_count():
    rtd, mlm = ModernBertForTokenClassification, ModernBertForMaskedLM
    assert counted(rtd(modernbert(MODERN))) == expected(MODERN, "rtd")
    assert counted(mlm(modernbert(MODERN))) == expected(MODERN, "mlm")


def test_frozen_tables_would_save_only_the_first_layers_input_gradient():
    config = replace(TINY, embedding_size=12)
    model = ElectraForPreTraining(electra(config))
    model.electra.embeddings.requires_grad_(False)
    saved = BATCH * LENGTH * 3 * 2 * 12 * 12  # back through queries, keys and values
    assert counted(model)[1] == expected(config, "rtd")[1] - saved
