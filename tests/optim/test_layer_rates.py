"""Layer-wise decay: the values of the paper and of the official code."""

import pytest
import torch
from torch import nn

from amber.optim.config import OptimConfig
from amber.optim.layer_rates import build_layered_adamw, depth_of, layer_names, layer_rates
from amber.optim.optimizer import set_rates


def test_the_papers_rule_gives_the_top_layer_one_power():
    rates = layer_rates(12, 0.8, "paper")
    assert rates[-1] == 1.0
    assert rates[12] == pytest.approx(0.8)
    assert rates[1] == pytest.approx(0.8**12)
    assert rates[0] == pytest.approx(0.05498, abs=5e-6)


def test_the_official_rule_has_one_power_more_below_the_head():
    rates = layer_rates(12, 0.8, "official")
    assert rates[-1] == 1.0
    assert rates[12] == pytest.approx(0.64)
    assert rates[1] == pytest.approx(0.0550, abs=5e-5)
    assert rates[0] == pytest.approx(0.04398, abs=5e-6)
    large = layer_rates(24, 0.9, "official")
    assert large[24] == pytest.approx(0.81)
    assert large[0] == pytest.approx(0.0646, abs=5e-5)


def test_no_decay_gives_all_layers_the_same_rate():
    assert set(layer_rates(3, 1.0, "paper")) == {1.0}
    assert layer_names(2) == ["embeddings", "layer 1", "layer 2", "head"]


def test_each_weight_belongs_to_its_layer():
    names = {
        "encoder.embeddings.token.weight": 0,
        "encoder.embeddings.norm.bias": 0,
        "encoder.embeddings_project.weight": 0,
        "encoder.layers.0.qkv.weight": 1,
        "encoder.layers.11.down.bias": 12,
        "encoder.final_norm.weight": 12,
        "head.dense.weight": 13,
        "head.output.bias": 13,
    }
    assert {name: depth_of(name, 12) for name in names} == names
    with pytest.raises(ValueError, match="no layer is known"):
        depth_of("generator.layers.0.qkv.weight", 12)


class Task(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict(
            {"embeddings": nn.Embedding(3, 2), "layers": nn.ModuleList([nn.Linear(2, 2)])}
        )
        self.head = nn.Linear(2, 2)


def test_a_first_step_moves_each_weight_by_its_own_rate():
    model = Task()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    config = OptimConfig(learning_rate=0.01, schedule="constant", weight_decay=0.5, eps=1e-12)
    optimizer = build_layered_adamw(model, config, num_layers=1, decay=0.5, rule="paper")
    set_rates([optimizer], 0, 0.0, config)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    rates = {
        "encoder.embeddings.weight": 0.0025,
        "encoder.layers.0.weight": 0.005,
        "encoder.layers.0.bias": 0.005,
        "head.weight": 0.01,
        "head.bias": 0.01,
    }
    for name, weight in model.named_parameters():
        decay = 0.5 if weight.ndim > 1 else 0.0  # Adam's first step is the rate itself
        expected = before[name] * (1 - rates[name] * decay) - rates[name]
        torch.testing.assert_close(weight.detach(), expected)
