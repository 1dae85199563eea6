"""The method's settings: weights over the budget, defaults, which networks there are."""

import itertools
from dataclasses import replace

import pytest
from pairs import BERT, FROZEN, MODERN, TOWERS, UNIFORM, UNIGRAM

from amber.electra.config import (
    GeneratorConfig,
    LossConfig,
    MaskConfig,
    Method,
    NoiseConfig,
    generator_shape,
)
from amber.errors import UserError


def test_a_weight_that_falls_from_50_to_30_is_40_half_way():
    loss = LossConfig(discriminator_weight=50.0, final_discriminator_weight=30.0)
    found = [loss.weights_at(progress, "rtd") for progress in (0.0, 0.25, 0.5, 1.0)]
    assert found == [(1.0, 50.0), (1.0, 45.0), (1.0, 40.0), (1.0, 30.0)]


def test_the_generator_s_weight_changes_by_itself():
    loss = LossConfig(generator_weight=2.0, final_generator_weight=0.0)
    assert [loss.weights_at(p, "rtd") for p in (0.0, 0.5, 1.0)] == [
        (2.0, 50.0),
        (1.0, 50.0),
        (0.0, 50.0),
    ]


@pytest.mark.parametrize(
    ("objective", "weight"),
    [
        ("rtd", 50.0),
        ("rtd_masked", 50.0),
        ("electric", 50.0),
        ("replace_mlm", 1.0),
        ("all_tokens_mlm", 1.0),
    ],
)
def test_the_main_weight_is_50_for_a_score_per_token_and_1_for_a_vocabulary(
    objective: str, weight: float
):
    for progress in (0.0, 1.0):
        assert Method(objective=objective).weights_at(progress) == (1.0, weight)
    falls = Method(objective=objective, loss=LossConfig(final_discriminator_weight=0.5))
    assert falls.weights_at(0.5) == (1.0, (weight + 0.5) / 2)
    given = Method(objective=objective, loss=LossConfig(discriminator_weight=7.0))
    assert given.weights_at(0.5) == (1.0, 7.0)


def test_a_weight_of_zero_is_not_taken_for_none():
    loss = LossConfig(discriminator_weight=0.0, final_discriminator_weight=10.0)
    assert [loss.weights_at(p, "rtd")[1] for p in (0.0, 0.5)] == [0.0, 5.0]
    loss = LossConfig(final_discriminator_weight=0.0)
    assert loss.weights_at(1.0, "rtd") == (1.0, 0.0)


def test_the_masked_language_model_has_one_loss():
    assert Method(objective="mlm").weights_at(0.3) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("noise", "has_network", "is_trained"),
    [
        (NoiseConfig(), True, True),
        (TOWERS, True, True),
        (FROZEN, True, False),
        (UNIGRAM, False, False),
        (UNIFORM, False, False),
    ],
)
def test_which_sources_have_a_network_and_which_of_them_learn(
    noise: NoiseConfig, has_network: bool, is_trained: bool
):
    for algorithm in ("joint", "two_stage", "adversarial"):
        method = Method(noise=noise, algorithm=algorithm)
        assert method.has_network == has_network
        assert method.is_generator_trained == is_trained
        assert method.is_shared == (is_trained and algorithm != "two_stage")
    mlm = Method(objective="mlm", noise=noise)
    found = (mlm.has_network, mlm.is_generator_trained, mlm.is_shared)
    assert found == (False, False, False)


def test_the_defaults_are_the_paper_s():
    method = Method()
    assert (method.objective, method.algorithm, method.sharing, method.label_rule) == (
        "rtd",
        "joint",
        "embeddings",
        "content",
    )
    noise = NoiseConfig()
    assert (noise.source, noise.temperature, noise.top_k, noise.top_p) == ("generator", 1.0, 0, 1.0)
    assert not noise.forbid_original
    assert noise.random_fraction == 0.0
    assert (LossConfig().label_smoothing, LossConfig().include_special) == (0.0, True)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (NoiseConfig, {"top_p": 0.0}, r"noise.top_p must be in \(0, 1\], got 0.0"),
        (NoiseConfig, {"top_k": -1}, "noise.top_k must be at least 0, got -1"),
        (NoiseConfig, {"random_fraction": 1.0}, r"noise.random_fraction must be in \[0, 1\)"),
        (NoiseConfig, {"source": "frozen"}, "noise.checkpoint must be given"),
        (NoiseConfig, {"checkpoint": FROZEN.checkpoint}, "noise.checkpoint must be given"),
        (LossConfig, {"label_smoothing": 1.0}, r"loss.label_smoothing must be in \[0, 1\)"),
        (LossConfig, {"final_discriminator_weight": -1.0}, "loss.final_discriminator_weight must"),
        (LossConfig, {"generator_weight": 0.0, "discriminator_weight": 0.0}, "nothing would"),
        (MaskConfig, {"keep_fraction": 0.6, "random_fraction": 0.5}, "must not exceed 1 together"),
    ],
)
def test_impossible_settings_are_refused_by_name(kind: type, settings: dict, message: str):
    with pytest.raises(UserError, match=message):
        kind(**settings)


def test_a_generator_with_tables_of_its_own_has_their_width_and_any_width_in_both_bodies():
    for shape in (BERT, MODERN):
        found = generator_shape(shape, GeneratorConfig(width_fraction=0.5), sharing="none")
        assert (found.hidden_size, found.embedding_size) == (8, 8)
    for sharing, depth in itertools.product(("embeddings", "tokens", "gdes"), (0.5, 1.0)):
        config = GeneratorConfig(width_fraction=0.5, depth_fraction=depth)
        found = generator_shape(BERT, config, sharing=sharing)
        assert found.embedding_size == BERT.embedding_size
        with pytest.raises(UserError, match="or set sharing to none"):
            generator_shape(MODERN, config, sharing=sharing)


def test_one_network_for_both_has_one_size():
    for config in (GeneratorConfig(width_fraction=0.5), GeneratorConfig(depth_fraction=0.5)):
        with pytest.raises(UserError, match="both networks are one"):
            generator_shape(BERT, config, sharing="all")
    assert generator_shape(BERT, GeneratorConfig(), sharing="all") == BERT
    assert generator_shape(replace(MODERN), GeneratorConfig(), sharing="all") == MODERN
