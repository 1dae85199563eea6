"""Losses are sums in nats; their gradient is probability minus label."""

import math

import pytest
import torch

from amber.electra.loss import mlm_loss_sum, rtd_loss_sum


def test_the_mlm_loss_by_hand():
    # Probabilities 1/4, 3/4: a right token of 1/4 costs ln 4, of 3/4 ln 4/3; unused slots nothing.
    logits = torch.tensor([[[0.0, math.log(3)]] * 3])
    labels = torch.tensor([[0, 1, 0]])
    used = torch.tensor([[True, True, False]])
    expected = math.log(4) + math.log(4 / 3)
    assert float(mlm_loss_sum(logits, labels, used)) == pytest.approx(expected, rel=1e-6)


def test_the_rtd_loss_by_hand():
    # P(replaced) = 3/4 at both: "replaced" costs ln 4/3, "original" ln 4; padding costs nothing.
    logits = torch.full((1, 3), math.log(3))
    replaced = torch.tensor([[True, False, False]])
    real = torch.tensor([[True, True, False]])
    expected = math.log(4 / 3) + math.log(4)
    assert float(rtd_loss_sum(logits, replaced, real)) == pytest.approx(expected, rel=1e-6)


def test_the_gradient_of_the_rtd_loss_is_probability_minus_label():
    # The paper's D is the probability of "original"; our logit a is that of "replaced", so
    # D = sigmoid(-a). At D = 0.7, P(replaced) = sigmoid(a) = 0.3, and by the mean over 2 tokens:
    # d loss / d a = (0.3 - 0) / 2 for an original and (0.3 - 1) / 2 for a replaced token. By the
    # paper's logit -a, the signs turn: -0.3 and +0.7 (times 1/2): D of an original must rise.
    logits = torch.full((1, 3), -math.log(0.7 / 0.3), requires_grad=True)
    replaced = torch.tensor([[False, True, False]])
    real = torch.tensor([[True, True, False]])
    (rtd_loss_sum(logits, replaced, real) / real.sum()).backward()
    assert logits.grad is not None
    torch.testing.assert_close(-2 * logits.grad, torch.tensor([[-0.3, 0.7, 0.0]]))


def test_the_gradient_of_the_mlm_loss_is_probability_minus_one_hot():
    logits = torch.tensor([[[0.0, math.log(3)], [5.0, 1.0]]], requires_grad=True)
    used = torch.tensor([[True, False]])
    mlm_loss_sum(logits, torch.tensor([[0, 0]]), used).backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[[-0.75, 0.75], [0.0, 0.0]]]))


def test_sums_over_micro_batches_equal_the_whole_batch():
    # Rows of 2 and 16 real tokens: a mean of the two means would weigh the short row eightfold.
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 16, generator=rng, requires_grad=True)
    replaced = torch.rand(2, 16, generator=rng) < 0.3
    real = torch.arange(16) < torch.tensor([[2], [16]])
    whole = rtd_loss_sum(logits, replaced, real) / 18
    parts = [rtd_loss_sum(logits[i : i + 1], replaced[i : i + 1], real[i : i + 1]) for i in (0, 1)]
    together = parts[0] / 18 + parts[1] / 18
    torch.testing.assert_close(together, whole)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (whole, together)]
    torch.testing.assert_close(gradients[0], gradients[1])
    of_means = (parts[0] / 2 + parts[1] / 16) / 2
    assert abs(float(of_means.detach() - whole.detach())) > 0.01


def test_a_row_of_padding_costs_nothing_and_has_no_gradient():
    logits = torch.randn(1, 4, requires_grad=True)
    loss = rtd_loss_sum(logits, torch.zeros(1, 4, dtype=torch.bool), torch.zeros(1, 4).bool())
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_losses_are_float32_whatever_the_logits_are():
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 64, generator=rng).bfloat16()
    replaced, real = torch.rand(8, 64, generator=rng) < 0.2, torch.ones(8, 64).bool()
    vocabulary = torch.randn(8, 4, 50, generator=rng).bfloat16()
    labels, used = torch.randint(50, (8, 4), generator=rng), torch.ones(8, 4).bool()
    for is_on in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_on):
            rtd = rtd_loss_sum(logits, replaced, real)
            mlm = mlm_loss_sum(vocabulary, labels, used)
        assert rtd.dtype == mlm.dtype == torch.float32
        assert torch.equal(rtd, rtd_loss_sum(logits.float(), replaced, real))
        assert torch.equal(mlm, mlm_loss_sum(vocabulary.float(), labels, used))
