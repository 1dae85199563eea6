"""Steps against plain arithmetic; which weights are decayed, and by whom they are moved."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from amber.electra.config import GeneratorConfig, Method, NoiseConfig, generator_shape
from amber.electra.pretraining import PretrainingModel
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.heads import MLMHead
from amber.optim.config import OptimConfig
from amber.optim.optimizer import build_optimizers, set_rates, split_parameters

FLAT = {"schedule": "constant", "warmup_fraction": 0.0}


def toy() -> nn.Module:
    """One weight of each kind, all 1."""
    model = nn.ModuleDict(
        {
            "encoder": nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(2, 2)])}),
            "norm": nn.LayerNorm(2),
            "table": nn.Embedding(3, 2),
        }
    )
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    return model


def pair(body: str = "bert", **choices: Any) -> PretrainingModel:
    """A tiny pair whose generator shares the tables, unless Method's `choices` say otherwise."""
    method = Method(**choices)
    shape = EncoderConfig(
        body=body,
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        embedding_size=8,
        type_vocab_size=2 if body == "bert" else 0,
    )
    generator, frozen = None, None
    if method.is_generator_trained:
        generator = generator_shape(shape, GeneratorConfig(depth_fraction=0.5))
    elif method.has_network:
        frozen = Encoder(shape, Embeddings(shape)), MLMHead(shape)
    return PretrainingModel(
        shape,
        generator,
        method,
        forbidden_ids=torch.arange(4),
        ordinary_ids=torch.arange(4, 30),
        frozen=frozen,
        seed=0,
    )


def adam_by_hand(gradients: list[float], config: OptimConfig, *, decay: float) -> float:
    """One weight, from 1, in plain arithmetic; every step of the same rate."""
    weight, m, v = 1.0, 0.0, 0.0
    for step, gradient in enumerate(gradients, start=1):
        m = config.beta1 * m + (1 - config.beta1) * gradient
        v = config.beta2 * v + (1 - config.beta2) * gradient**2
        a = 1 - config.beta1**step if config.bias_correction else 1.0
        b = 1 - config.beta2**step if config.bias_correction else 1.0
        update = (m / a) / (math.sqrt(v / b) + config.eps)
        weight -= config.learning_rate * (update + decay * weight)
    return weight


def take_steps(model: nn.Module, config: OptimConfig, gradients: list[float]) -> None:
    """Step with the same gradient in every weight."""
    optimizers = build_optimizers(model, config)
    for step, gradient in enumerate(gradients):
        set_rates(optimizers, step, 0.0, config)
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, gradient)
        for optimizer in optimizers:
            optimizer.step()


def test_the_first_step_by_hand():
    # Without correction: m = 0.1 * 0.5, v = 0.001 * 0.25, 0.05 / (0.0158114 + 1e-6) = 3.162078;
    # with 0.01 decay and rate 0.1: 1 - 0.1 * (3.162078 + 0.01). With correction: m = v^0.5 = 0.5.
    for correction, expected in ((False, 0.6827922), (True, 0.8990002)):
        config = OptimConfig(learning_rate=0.1, bias_correction=correction, **FLAT)
        model = toy()
        take_steps(model, config, [0.5])
        weight = model["table"].weight
        torch.testing.assert_close(weight, torch.full_like(weight, expected), atol=2e-7, rtol=0)


@pytest.mark.parametrize("correction", [False, True])
@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_many_steps_equal_plain_arithmetic(correction: bool, eps: float):
    config = OptimConfig(
        learning_rate=0.03, weight_decay=0.2, eps=eps, bias_correction=correction, **FLAT
    )
    gradients = [0.5, -0.1, 0.3, 0.0, 0.7, -2.0, 1e-4]
    model = toy()
    take_steps(model, config, gradients)
    decayed = adam_by_hand(gradients, config, decay=0.2)
    plain = adam_by_hand(gradients, config, decay=0.0)
    for name, parameter in model.named_parameters():
        is_decayed = name in ("encoder.layers.0.weight", "table.weight")
        expected = torch.full_like(parameter, decayed if is_decayed else plain)
        torch.testing.assert_close(parameter.detach(), expected, atol=2e-6, rtol=0, msg=name)
    assert abs(decayed - plain) > 0.01


def test_matrices_and_tables_are_decayed_norms_and_biases_are_not():
    model = pair()
    plain = {id(p) for p in split_parameters(model).plain}
    for name, parameter in model.named_parameters():
        assert (id(parameter) in plain) == ("norm" in name or "bias" in name), name
    adamw = build_optimizers(model, OptimConfig())[0]
    groups = adamw.param_groups  # of the main encoder, then of the generator
    assert [group["decay"] for group in groups] == [0.01, 0.0, 0.01, 0.0]
    assert {id(p) for group in groups[1::2] for p in group["params"]} == plain


@pytest.mark.parametrize("matrices", ["adamw", "muon"])
def test_every_parameter_is_in_one_optimiser_once(matrices: str):
    model = pair()
    optimizers = build_optimizers(model, OptimConfig(matrices=matrices))
    found = [id(p) for o in optimizers for group in o.param_groups for p in group["params"]]
    assert sorted(found) == sorted({id(p) for p in model.parameters()})
    assert found.count(id(model.encoder.embeddings.table)) == 1


def test_a_shared_table_takes_one_step_not_two():
    model = pair()
    before = model.encoder.embeddings.table.detach().clone()
    take_steps(model, OptimConfig(learning_rate=0.1, weight_decay=0.0, **FLAT), [0.5])
    moved = before - model.generator.embeddings.table.detach()
    torch.testing.assert_close(moved, torch.full_like(moved, 0.1), atol=1e-5, rtol=0)


@pytest.mark.parametrize("body", ["bert", "modern"])
def test_muon_moves_the_layers_matrices_and_nothing_else(body: str):
    model = pair(body)
    adamw, muon = build_optimizers(model, OptimConfig(matrices="muon"))
    names = {id(p): name for name, p in model.named_parameters()}
    by_muon = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    assert by_muon == {
        name
        for name in names.values()
        if ".layers." in name and name.endswith("weight") and "norm" not in name
    }
    assert len(by_muon) == 3 * 4  # two layers and one, of four matrices each
    by_adamw = {names[id(p)] for group in adamw.param_groups for p in group["params"]}
    assert "encoder.embeddings.token.weight" in by_adamw
    assert "mlm_head.dense.weight" in by_adamw


def test_a_muon_step_moves_a_matrix_by_about_orthogonal_rows():
    config = OptimConfig(matrices="muon", muon_learning_rate=0.1, weight_decay=0.0, **FLAT)
    model = toy()
    matrix = model["encoder"]["layers"][0].weight
    optimizers = build_optimizers(model, config)
    set_rates(optimizers, 0, 0.0, config)
    matrix.grad = torch.tensor([[3.0, 0.0], [0.0, 0.01]])
    optimizers[1].step()
    # Orthogonalised, large and small directions move alike; the iteration in bfloat16 ends
    # with singular values between about 0.7 and 1.2.
    moved = (1.0 - matrix.detach()) / 0.1
    assert 0.6 < moved[0, 0] < 1.3
    assert 0.6 < moved[1, 1] < 1.3
    assert abs(moved[0, 1]) < 0.1


def test_rates_follow_progress_in_all_optimisers():
    config = OptimConfig(
        learning_rate=1e-3, matrices="muon", muon_learning_rate=0.02, warmup_fraction=0.1
    )
    optimizers = build_optimizers(pair(), config)
    for progress, factor in ((0.0, 0.0), (0.05, 0.5 * 0.95), (0.6, 0.4), (1.0, 0.0)):
        assert set_rates(optimizers, 3, progress, config) == pytest.approx(1e-3 * factor)
        rates = [group["lr"] for o in optimizers for group in o.param_groups]
        assert rates == pytest.approx([1e-3 * factor] * 4 + [0.02 * factor] * 2)


def test_the_reported_rate_is_the_schedule_s_with_and_without_correction():
    for correction in (True, False):
        config = OptimConfig(learning_rate=1e-3, bias_correction=correction, **FLAT)
        optimizers = build_optimizers(toy(), config)
        assert set_rates(optimizers, 0, 0.0, config) == 1e-3


def rates(model: nn.Module, config: OptimConfig) -> dict[str, float]:
    """The rate of every weight, by its name, at the peak."""
    optimizers = build_optimizers(model, config)
    set_rates(optimizers, 0, 0.0, config)
    names = {id(p): name for name, p in model.named_parameters()}
    found = [
        (names[id(p)], float(group["lr"]))
        for optimizer in optimizers
        for group in optimizer.param_groups
        for p in group["params"]
    ]
    assert len(found) == len(dict(found))
    return dict(found)


@pytest.mark.parametrize("matrices", ["adamw", "muon"])
@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"sharing": "tokens"},
        {"sharing": "none"},
        {"sharing": "gdes"},
        {"noise": NoiseConfig(source="two_tower")},
        {"algorithm": "adversarial"},
        {"objective": "all_tokens_mlm"},
    ],
    ids=str,
)
def test_the_generator_s_own_weights_have_their_own_rate(matrices: str, choices: dict):
    model = pair(**choices)
    config = OptimConfig(learning_rate=1e-3, generator_rate_ratio=0.25, matrices=matrices, **FLAT)
    main = {id(p) for p in model.encoder.parameters()}
    heads = [model.rtd_head, model.vocabulary_head, model.copy_gate]
    main |= {id(p) for head in heads if head is not None for p in head.parameters()}
    plain = rates(model, OptimConfig(learning_rate=1e-3, matrices=matrices, **FLAT))
    found = rates(model, config)
    assert found.keys() == plain.keys() == dict(model.named_parameters()).keys()
    shares = {name: found[name] / plain[name] for name in found}
    for name, weight in model.named_parameters():
        assert shares[name] == pytest.approx(1.0 if id(weight) in main else 0.25), name
    assert set(shares.values()) == {0.25, 1.0}
    assert plain["encoder.layers.0.qkv.weight"] == (0.02 if matrices == "muon" else 1e-3)


@pytest.mark.parametrize("matrices", ["adamw", "muon"])
def test_the_other_rate_changes_no_bit_of_the_main_encoder(matrices: str):
    # One step from the same gradients: the main encoder's weights and the shared tables move as
    # without a ratio, the generator's as in a run of twice the rate.
    weights = []
    for ratio, rate in ((1.0, 1.0), (2.0, 1.0), (1.0, 2.0)):
        config = OptimConfig(
            learning_rate=1e-3 * rate,
            muon_learning_rate=0.02 * rate,
            generator_rate_ratio=ratio,
            matrices=matrices,
            **FLAT,
        )
        model = pair()
        optimizers = build_optimizers(model, config)
        set_rates(optimizers, 0, 0.0, config)
        rng = torch.Generator().manual_seed(0)
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=rng)
        for optimizer in optimizers:
            optimizer.step()
        weights.append(dict(model.named_parameters()))
    one, ratio, twice = weights
    for name, weight in ratio.items():
        is_own = name.startswith(("generator.", "mlm_head."))
        assert torch.equal(weight, (twice if is_own else one)[name]), name
        assert not torch.equal(weight, (one if is_own else twice)[name]), name


def test_a_network_that_begins_later_is_corrected_by_its_own_steps():
    # As in the official code, the first update of a weight with gradient 1 is 0.1 / sqrt(0.001)
    # times the rate, whatever the other network has done before.
    config = OptimConfig(learning_rate=1e-3, weight_decay=0.0, bias_correction=False, **FLAT)
    model = pair(algorithm="two_stage")
    optimizers = build_optimizers(model, config)
    own = [p for n, p in model.named_parameters() if n.startswith(("generator.", "mlm_head."))]
    others = [p for p in model.parameters() if all(p is not q for q in own)]
    for step in range(50):
        for weight in own:
            weight.grad = torch.ones_like(weight)
        set_rates(optimizers, step, 0.0, config)
        optimizers[0].step()
    optimizers[0].zero_grad()
    before = [weight.detach().clone() for weight in others]
    for weight in others:
        weight.grad = torch.ones_like(weight)
    set_rates(optimizers, 50, 0.0, config)
    optimizers[0].step()
    expected = 1e-3 * 0.1 / (math.sqrt(0.001) + config.eps)
    for start, weight in zip(before, others, strict=True):
        moved = start - weight.detach()
        torch.testing.assert_close(moved, torch.full_like(moved, expected), rtol=1e-3, atol=0)


@pytest.mark.parametrize("matrices", ["adamw", "muon"])
def test_frozen_weights_are_in_no_optimiser(matrices: str):
    noise = NoiseConfig(source="frozen", checkpoint=Path("a-folder"))
    model = pair(noise=noise)
    found = rates(model, OptimConfig(matrices=matrices, **FLAT))
    assert found.keys() == {
        name for name, _ in model.named_parameters() if name.startswith(("encoder.", "rtd_head."))
    }


def test_both_stages_have_their_weights_in_the_optimiser():
    model = pair(algorithm="two_stage")
    assert rates(model, OptimConfig(**FLAT)).keys() == dict(model.named_parameters()).keys()
