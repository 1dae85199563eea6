"""Dropout: the share, the scale, and that nothing but the seed decides."""

import pytest
import torch

from amber.model.dropout import Dropout, dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_every_place_is_dropped_as_often_as_asked(share: float):
    torch.manual_seed(0)
    dropped = dropout(torch.ones(40_000, 4), share, is_training=True) == 0
    # four deviations of a mean of 40,000; the four columns are the four parts of each draw
    tolerance = 4 * (share * (1 - share) / 40_000) ** 0.5 + 2**-16
    assert (dropped.float().mean(dim=0) - share).abs().max() < tolerance
    together = (dropped[:, 0] & dropped[:, 1]).float().mean()
    assert abs(together - share**2) < 4 * (share**2 * (1 - share**2) / 40_000) ** 0.5 + 2**-16


def test_what_stays_is_scaled_up_and_carries_the_gradient():
    torch.manual_seed(0)
    x = torch.linspace(1, 2, 101, requires_grad=True)
    y = dropout(x, 0.5, is_training=True)
    y.sum().backward()
    is_kept = y != 0
    assert y.equal(torch.where(is_kept, 2 * x, 0.0))
    assert x.grad is not None
    assert x.grad.equal(torch.where(is_kept, 2.0, 0.0))
    assert 0 < is_kept.sum() < len(x)


@pytest.mark.parametrize("share", [1e-9, 1 - 1e-9])
def test_a_share_beyond_the_steps_gives_numbers(share: float):
    assert dropout(torch.ones(100), share, is_training=True).isfinite().all()


def test_the_seed_decides():
    x = torch.ones(33)
    torch.manual_seed(3)
    first = dropout(x, 0.5, is_training=True)
    torch.manual_seed(3)
    assert first.equal(dropout(x, 0.5, is_training=True))
    assert not first.equal(dropout(x, 0.5, is_training=True))


def test_nothing_is_dropped_in_evaluation_or_without_a_share():
    x = torch.ones(5)
    assert dropout(x, 0.5, is_training=False) is x
    assert dropout(x, 0.0, is_training=True) is x
    layer = Dropout(0.5).eval()
    assert layer(x) is x
