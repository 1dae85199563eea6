from dataclasses import replace
from typing import Any

import pytest
from torch import nn
from transformers import (
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertForTokenClassification,
)

from amber.cost.parameters import parameter_counts
from amber.model.config import EncoderConfig

ONE_LABEL: dict[str, Any] = {"num_labels": 1}


def bert(hidden_size: int, num_hidden_layers: int, embedding_size: int) -> EncoderConfig:
    return EncoderConfig(
        body="bert",
        vocab_size=30_522,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
        embedding_size=embedding_size,
        type_vocab_size=2,
    )


@pytest.mark.parametrize(
    ("main", "generator", "body", "rtd_head", "generator_body", "mlm_head"),
    [
        (bert(256, 12, 128), bert(64, 12, 128), 13_483_008, 66_049, 608_064, 39_098),
        (bert(768, 12, 768), bert(256, 12, 768), 108_891_648, 591_361, 9_673_984, 229_434),
        (bert(1024, 24, 1024), bert(256, 24, 1024), 334_092_288, 1_050_625, 19_216_640, 295_738),
    ],
)
def test_the_papers_three_sizes(main, generator, body, rtd_head, generator_body, mlm_head):
    counts = parameter_counts(main, generator, objective="rtd")
    assert counts["embeddings"] + counts["encoder"] == body
    assert counts["RTD head"] == rtd_head
    assert counts["generator encoder"] == generator_body
    assert counts["generator MLM head"] == mlm_head


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("embedding_size", [64, 128])
def test_the_bert_body_has_the_parameters_of_electra(embedding_size: int):
    ours = replace(bert(128, 2, embedding_size), vocab_size=50)
    theirs = ElectraConfig(
        vocab_size=50,
        embedding_size=embedding_size,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
    )
    rtd = parameter_counts(ours, None, objective="rtd", source="unigram")
    mlm = parameter_counts(ours, None, objective="mlm")
    assert sum(rtd.values()) == size(ElectraForPreTraining(theirs))
    assert sum(mlm.values()) == size(ElectraForMaskedLM(theirs))


def test_the_modern_body_has_the_parameters_of_modernbert():
    ours = replace(bert(128, 3, 128), body="modern", vocab_size=50, type_vocab_size=0)
    theirs = ModernBertConfig(
        vocab_size=50,
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
        **ONE_LABEL,
    )
    rtd = parameter_counts(ours, None, objective="rtd", source="unigram")
    mlm = parameter_counts(ours, None, objective="mlm")
    assert sum(rtd.values()) == size(ModernBertForTokenClassification(theirs))
    assert sum(mlm.values()) == size(ModernBertForMaskedLM(theirs))
