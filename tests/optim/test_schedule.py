"""The rate at chosen moments, by hand."""

import pytest

from amber.errors import UserError
from amber.optim.config import OptimConfig
from amber.optim.schedule import rate_factor


@pytest.mark.parametrize(
    ("step", "rate"),
    [(0, 0.0), (5000, 2.4875e-4), (10_000, 4.95e-4), (500_000, 2.5e-4), (1_000_000, 0.0)],
)
def test_the_official_schedule_is_the_product_of_warm_up_and_decay(step: int, rate: float):
    # 5e-4 * (1 - step / 1e6) * min(1, step / 1e4); at 5000: 5e-4 * 0.995 * 0.5
    config = OptimConfig(learning_rate=5e-4, warmup_steps=10_000, schedule="linear")
    found = config.learning_rate * rate_factor(step / 1_000_000, step, config)
    assert found == pytest.approx(rate, rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(
    ("progress", "factor"),
    [(0.0, 0.0), (0.01, 0.5), (0.02, 1.0), (0.5, 1.0), (0.8, 1.0), (0.9, 0.55), (1.0, 0.1)],
)
def test_the_trapezoid(progress: float, factor: float):
    # Falls from 1 to the floor of 0.1 over the last fifth: half way it is 0.55.
    config = OptimConfig(
        schedule="trapezoid", warmup_fraction=0.02, decay_fraction=0.2, floor_fraction=0.1
    )
    assert rate_factor(progress, 7, config) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("progress", "factor"), [(0.0, 0.0), (0.05, 0.5), (0.5, 0.6), (1.0, 0.2), (0.25, 0.88284271)]
)
def test_the_cosine(progress: float, factor: float):
    # 0.2 + 0.8 * (1 + cos(pi * progress)) / 2; at 1/4: 0.2 + 0.4 * 1.70710678
    config = OptimConfig(schedule="cosine", warmup_fraction=0.1, floor_fraction=0.2)
    expected = factor if progress != 0.05 else 0.5 * (0.2 + 0.4 * 1.98768834)
    assert rate_factor(progress, 7, config) == pytest.approx(expected)


@pytest.mark.parametrize(("progress", "factor"), [(0.0, 0.0), (0.005, 0.5), (0.3, 1.0), (1.0, 1.0)])
def test_the_constant(progress: float, factor: float):
    config = OptimConfig(schedule="constant", warmup_fraction=0.01)
    assert rate_factor(progress, 7, config) == pytest.approx(factor)


def test_without_warm_up_the_rate_starts_at_its_peak():
    for schedule in ("linear", "trapezoid", "cosine", "constant"):
        config = OptimConfig(schedule=schedule, warmup_fraction=0.0)
        assert rate_factor(0.0, 0, config) == 1.0


def test_a_trapezoid_without_decay_stays_at_its_peak():
    config = OptimConfig(schedule="trapezoid", warmup_fraction=0.0, decay_fraction=0.0)
    assert rate_factor(1.0, 7, config) == 1.0


def test_only_warm_up_in_steps_looks_at_the_step():
    by_share = OptimConfig(warmup_fraction=0.1)
    assert rate_factor(0.05, 1, by_share) == rate_factor(0.05, 1000, by_share)
    by_steps = OptimConfig(warmup_steps=10)
    assert rate_factor(0.05, 1, by_steps) == pytest.approx(0.95 / 10)
    assert rate_factor(0.05, 10, by_steps) == pytest.approx(0.95)


def test_two_warm_ups_exclude_each_other():
    with pytest.raises(UserError, match="exclude each other"):
        OptimConfig(warmup_fraction=0.1, warmup_steps=10)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("eps", -1e-6),
        ("muon_learning_rate", 0.0),
        ("weight_decay", -0.1),
        ("max_grad_norm", float("nan")),
        ("warmup_steps", -1),
        ("warmup_fraction", 1.1),
        ("decay_fraction", -0.1),
        ("floor_fraction", 2.0),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("muon_momentum", 1.0),
    ],
)
def test_impossible_values_are_refused(name: str, value: float):
    with pytest.raises(UserError, match=rf"optim.{name} must be .*, got {value}"):
        OptimConfig(**{name: value})
