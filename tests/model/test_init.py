"""Initial weights follow the table of rules, each from its own stream."""

import math
from dataclasses import replace

import pytest
import torch
from networks import BERT, MODERN
from torch import nn

from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead, RTDHead
from amber.model.init import initialize

WIDE_BERT = replace(BERT, vocab_size=500, hidden_size=128, embedding_size=64, initial_scale=0.0)
WIDE_MODERN = replace(
    MODERN, vocab_size=500, hidden_size=128, embedding_size=128, initial_scale=1.0
)
CUT = 0.8796  # deviation of a normal distribution cut at 2 of its deviations


def model(config: EncoderConfig, *, num_generator_layers: int = 1, seed: int = 1) -> nn.ModuleDict:
    embeddings = Embeddings(config)
    whole = nn.ModuleDict(
        {
            "encoder": Encoder(config, embeddings),
            "generator": Encoder(
                replace(config, num_hidden_layers=num_generator_layers), embeddings
            ),
            "mlm_head": MLMHead(config),
            "rtd_head": RTDHead(config),
        }
    )
    initialize(whole, config, seed=seed)
    return whole


def assert_cut_normal(weight: torch.Tensor, std: float) -> None:
    assert weight.abs().max() <= 2 * std
    assert weight.std().item() == pytest.approx(CUT * std, rel=0.05)


@pytest.mark.parametrize("config", [WIDE_BERT, WIDE_MODERN])
def test_biases_are_zero_and_norms_one(config: EncoderConfig):
    whole = model(config)
    for name, weight in whole.named_parameters():
        if name.endswith("bias"):
            assert not weight.any(), name
        elif "norm" in name:
            assert (weight == 1).all(), name
        else:
            assert weight.std() > 0, name


def test_the_bert_body_starts_as_the_official_code():
    whole = model(WIDE_BERT)
    encoder, layer = whole["encoder"], whole["encoder"].layers[1]
    for part in (layer.qkv, layer.up, encoder.embeddings.token, whole["mlm_head"].dense):
        assert_cut_normal(part.weight, 0.02)
    assert_cut_normal(encoder.embeddings.position.weight, 0.02)
    for weight in (encoder.embeddings_project.weight, whole["rtd_head"].classifier.weight):
        bound = math.sqrt(6 / sum(weight.shape))
        assert 0.9 * bound < weight.abs().max() <= bound


def test_an_initial_scale_divides_by_the_root_of_the_inputs():
    whole = model(WIDE_MODERN)
    layer = whole["encoder"].layers[1]
    for part in (layer.qkv, layer.attention_output, layer.up, layer.down):
        assert_cut_normal(part.weight, part.in_features**-0.5)
    assert_cut_normal(whole["encoder"].embeddings.table, 0.02)
    assert whole["rtd_head"].classifier.weight.abs().max() <= 0.04


def test_the_depth_of_the_generator_does_not_change_the_encoder():
    shallow, deep = model(MODERN), model(MODERN, num_generator_layers=3)
    for name, weight in shallow["encoder"].named_parameters():
        assert weight.equal(deep["encoder"].get_parameter(name)), name


def test_the_generator_does_not_start_as_a_copy_of_the_encoder():
    whole = model(MODERN)
    first, other = whole["encoder"].layers[0], whole["generator"].layers[0]
    assert not first.qkv.weight.equal(other.qkv.weight)


def test_equal_seeds_give_equal_bits_and_others_do_not():
    weights = [model(MODERN, seed=s)["encoder"].layers[0].up.weight for s in (1, 1, 2)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(5)
    whole = model(MODERN)
    before = torch.get_rng_state()
    initialize(whole, MODERN, seed=1)
    assert torch.get_rng_state().equal(before)


def test_a_weight_without_a_rule_is_refused():
    with pytest.raises(ValueError, match=r"no rule for the weight 0\.weight"):
        initialize(nn.Sequential(nn.Conv1d(1, 1, 1)), MODERN, seed=1)
