"""Losses are sums in nats; their gradient is probability minus label."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from amber.electra.loss import (
    all_tokens_loss_sum,
    copy_log_probabilities,
    electric_logits,
    mlm_loss_sum,
    reinforce_loss_sum,
    rtd_loss_sum,
)


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


def test_label_smoothing_by_hand():
    # Smoothing 0.1: targets 0.05 and 0.95. P(replaced) = 3/4: a replaced token costs
    # -(0.95 ln 3/4 + 0.05 ln 1/4), an original one -(0.05 ln 3/4 + 0.95 ln 1/4).
    logits = torch.full((1, 3), math.log(3))
    replaced = torch.tensor([[True, False, True]])
    scored = torch.tensor([[True, True, False]])
    found = float(rtd_loss_sum(logits, replaced, scored, label_smoothing=0.1))
    assert found == pytest.approx(-(math.log(3 / 4) + math.log(1 / 4)), rel=1e-6)
    only = torch.tensor([[True, False, False]])
    found = float(rtd_loss_sum(logits, replaced, only, label_smoothing=0.1))
    assert found == pytest.approx(-(0.95 * math.log(3 / 4) + 0.05 * math.log(1 / 4)), rel=1e-6)


def test_a_smoothed_loss_is_least_at_the_smoothed_probability():
    logit = torch.tensor(math.log(0.95 / 0.05), requires_grad=True)
    true = torch.tensor(True)
    rtd_loss_sum(logit, true, true, label_smoothing=0.1).backward()
    assert logit.grad is not None
    assert abs(float(logit.grad)) < 1e-6


def naive_all_tokens(
    logits: Tensor, gate: Tensor, copied: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """-log(D [copied = label] + (1 - D) softmax) and the likeliest token, in float64."""
    chance = gate.double().sigmoid().unsqueeze(-1)
    p = (1 - chance) * logits.double().softmax(-1)
    p = p + chance * F.one_hot(copied, logits.shape[-1])
    return -p.gather(-1, labels.unsqueeze(-1)).log().sum(), p.argmax(-1)


def copy_case(n: int = 200) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, gates, copied tokens and labels; half of the labels are the copied tokens."""
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(n, 11, generator=rng) * 2
    gate = torch.randn(n, generator=rng) * 4
    labels = torch.randint(11, (n,), generator=rng)
    copied = torch.where(torch.rand(n, generator=rng) < 0.5, labels, labels.roll(1))
    return logits.requires_grad_(), gate.requires_grad_(), copied, labels


def test_the_copy_gate_by_hand():
    # D = 1/4 and softmax 1/2, 1/3, 1/6. Copied 1, label 1: 1/4 + 3/4 * 1/3 = 1/2; copied 1,
    # label 0: 3/4 * 1/2 = 3/8, and the likeliest token is the copied one at 1/2.
    logits = torch.tensor([[1 / 2, 1 / 3, 1 / 6]] * 2).log()
    gate = torch.full((2,), math.log(1 / 3))
    copied, labels = torch.tensor([1, 1]), torch.tensor([1, 0])
    loss, best = all_tokens_loss_sum(logits, gate, copied, labels)
    assert float(loss) == pytest.approx(math.log(2) + math.log(8 / 3), rel=1e-6)
    assert best.tolist() == [1, 1]
    # D = 1/10: the copied one has 0.1 + 0.9 / 3 = 0.4, token 0 has 0.45.
    _, best = all_tokens_loss_sum(logits, torch.full((2,), math.log(1 / 9)), copied, labels)
    assert best.tolist() == [0, 0]


def test_the_copy_gate_s_loss_and_gradients_equal_the_plain_formula_in_float64():
    logits, gate, copied, labels = copy_case()
    loss, best = all_tokens_loss_sum(logits, gate, copied, labels)
    expected, likeliest = naive_all_tokens(logits, gate, copied, labels)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0.0)
    assert torch.equal(best, likeliest)
    found = torch.autograd.grad(loss, (logits, gate))
    exact = torch.autograd.grad(expected, (logits, gate))
    torch.testing.assert_close(found, exact, atol=1e-6, rtol=1e-5)


def test_copying_and_generating_sum_to_one():
    logits, gate, copied, _ = copy_case()
    generated, same = copy_log_probabilities(logits, gate, copied)
    p = generated.exp().scatter(-1, copied.unsqueeze(-1), same.exp().unsqueeze(-1))
    torch.testing.assert_close(p.sum(-1), torch.ones(len(p)), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("size", [100.0, 1e4])
def test_extreme_gates_give_finite_losses_and_gradients(size: float):
    # A label that is not copied at gate g costs g + the softmax's own nats; one that is, nothing.
    logits = torch.tensor([[0.0, 1.0, 2.0]] * 4, requires_grad=True)
    gate = torch.tensor([size, size, -size, -size], requires_grad=True)
    copied, labels = torch.tensor([0, 0, 0, 0]), torch.tensor([0, 1, 0, 1])
    loss, best = all_tokens_loss_sum(logits, gate, copied, labels)
    softmax = torch.tensor([0.0, 1.0, 2.0]).double().log_softmax(0)
    expected = 0.0 + (size - softmax[1]) - softmax[0] - softmax[1]
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-6)
    assert best.tolist() == [0, 0, 2, 2]
    loss.backward()
    for gradient in (logits.grad, gate.grad):
        assert gradient is not None
        assert gradient.isfinite().all()
    assert gate.grad is not None
    torch.testing.assert_close(gate.grad, torch.tensor([0.0, 1.0, 0.0, 0.0]))


def test_no_tokens_cost_nothing():
    none = torch.zeros(0, dtype=torch.long)
    loss, best = all_tokens_loss_sum(torch.zeros(0, 5), torch.zeros(0), none, none)
    assert float(loss) == 0.0
    assert len(best) == 0


def test_the_probability_of_noise_is_that_of_the_papers_formula():
    # k q / (k q + n exp(-E)), with the plain quotient in float64.
    rng = torch.Generator().manual_seed(0)
    energy = torch.randn(300, generator=rng) * 3
    log_q = -8 * torch.rand(300, generator=rng)
    for k, n in ((1, 7), (15, 100), (15, 85), (1, 1)):
        ratio = torch.full((300,), k / n).log()
        found = electric_logits(energy, log_q, ratio).sigmoid()
        q, p = log_q.double().exp(), (-energy.double()).exp()
        torch.testing.assert_close(found.double(), k * q / (k * q + n * p), atol=1e-6, rtol=1e-5)


def test_noise_that_never_gives_a_token_makes_it_data_for_certain():
    energy = torch.tensor([0.0, 2.0], requires_grad=True)
    logits = electric_logits(energy, torch.full((2,), -torch.inf), torch.zeros(2))
    loss = rtd_loss_sum(logits, torch.zeros(2).bool(), torch.ones(2).bool())
    loss.backward()
    assert 0 <= float(loss.detach()) < 1e-11
    assert energy.grad is not None
    assert energy.grad.abs().max() < 1e-11


def test_no_gradient_passes_to_the_noise():
    energy = torch.zeros(3, requires_grad=True)
    log_q = torch.full((3,), -1.0, requires_grad=True)
    electric_logits(energy, log_q, torch.zeros(3)).sum().backward()
    assert log_q.grad is None
    assert energy.grad is not None


def test_the_gradient_of_reinforce_is_reward_minus_baseline_times_the_score():
    # Softmax 1/2, 1/4, 1/4; the sample is token 2. R = 3 nats, b = -log sigmoid(0) = ln 2:
    # the gradient of the loss is -(3 - ln 2) (one-hot - softmax).
    scores = torch.tensor([0.5, 0.25, 0.25]).log().requires_grad_()
    baseline = torch.zeros(1, requires_grad=True)
    log_p = scores.log_softmax(-1)[2:]
    loss, other = reinforce_loss_sum(log_p, torch.tensor([3.0]), baseline, torch.tensor([True]))
    (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
    expected = -(3 - math.log(2)) * torch.tensor([-0.5, -0.25, 0.75])
    torch.testing.assert_close(gradient, expected)
    # the baseline is not moved by the first loss, nor the scores by the second
    assert torch.autograd.grad(loss, baseline, allow_unused=True) == (None,)
    assert torch.autograd.grad(other, scores, allow_unused=True, retain_graph=True) == (None,)
    # cross-entropy against exp(-3): sigmoid(0) - exp(-3)
    (gradient,) = torch.autograd.grad(other, baseline)
    torch.testing.assert_close(gradient, torch.tensor([0.5 - math.exp(-3)]))


def test_a_sample_that_costs_the_discriminator_much_becomes_more_probable():
    for reward, rises in ((3.0, True), (0.1, False)):  # expected: ln 2 = 0.69
        scores = torch.zeros(3, requires_grad=True)
        log_p = scores.log_softmax(-1)[1:2]
        loss, _ = reinforce_loss_sum(
            log_p, torch.tensor([reward]), torch.zeros(1), torch.tensor([True])
        )
        (gradient,) = torch.autograd.grad(loss, scores)
        after = (scores - 0.1 * gradient).detach().softmax(-1)[1]
        assert (after > 1 / 3) == rises


def test_the_baseline_learns_the_reward():
    reward = torch.tensor([0.2, 1.0, 2.5])
    baseline = torch.zeros(3, requires_grad=True)
    for _ in range(200):
        _, loss = reinforce_loss_sum(torch.zeros(3), reward, baseline, torch.ones(3).bool())
        (gradient,) = torch.autograd.grad(loss, baseline)
        baseline.data -= 4.0 * gradient
    torch.testing.assert_close(-F.logsigmoid(baseline.detach()), reward, atol=1e-3, rtol=0.0)


def test_unused_slots_teach_nothing_whatever_is_in_them():
    log_p = torch.tensor([-1.0, -torch.inf], requires_grad=True)
    baseline = torch.tensor([0.0, 50.0], requires_grad=True)
    used = torch.tensor([True, False])
    losses = reinforce_loss_sum(log_p, torch.tensor([1.0, 80.0]), baseline, used)
    one = torch.tensor([1.0])
    alone = reinforce_loss_sum(log_p[:1], one, baseline[:1], used[:1])
    torch.testing.assert_close(losses, alone)
    sum(losses).backward()
    for gradient in (log_p.grad, baseline.grad):
        assert gradient is not None
        assert gradient[0] != 0
        assert gradient[1] == 0
