"""Who learns from what: joint, two_stage and adversarial training, frozen and shared networks."""

import pytest
import torch
import torch.nn.functional as F
from pairs import (
    FROZEN,
    SPECIAL,
    TOWERS,
    gradients,
    hide,
    losses,
    make_batch,
    make_frozen,
    make_model,
    randomize,
    shape_of,
)
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import Method, NoiseConfig
from amber.electra.mask import Masked
from amber.electra.pretraining import PretrainingModel

GENERATOR = ("generator.", "mlm_head.", "baseline.")


def text() -> tuple[Batch, Masked]:
    batch = make_batch([40, 64], width=64)
    return batch, hide(batch)


def learned(model: PretrainingModel, loss: Tensor) -> set[str]:
    """The weights that a loss moves."""
    return {name for name, gradient in gradients(model, loss).items() if gradient.any()}


def names(model: PretrainingModel, *beginnings: str) -> set[str]:
    return {name for name, _ in model.named_parameters() if name.startswith(beginnings)}


def tables(names: set[str]) -> set[str]:
    return {name for name in names if ".embeddings." in name}


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"objective": "rtd_masked"},
        {"objective": "replace_mlm"},
        {"objective": "all_tokens_mlm"},
        {"noise": TOWERS},
        {"objective": "electric", "noise": TOWERS},
        {"algorithm": "adversarial"},
    ],
    ids=str,
)
def test_with_nothing_shared_each_loss_moves_its_own_network_and_all_of_it(
    body: str, choices: dict
):
    model = make_model(body, sharing="none", **choices)
    randomize(model)
    own = names(model, *GENERATOR)
    first, second = losses(model(*text()))
    assert learned(model, first) == own
    assert learned(model, second) == names(model, "") - own


@pytest.mark.parametrize("objective", ["rtd", "replace_mlm", "all_tokens_mlm"])
def test_with_gdes_the_base_table_learns_from_the_generator_s_loss_alone(body: str, objective: str):
    model = make_model(body, sharing="gdes", objective=objective)
    own = names(model, *GENERATOR)
    assert "generator.embeddings.token.weight" in own
    assert "encoder.embeddings.delta.weight" in names(model, "encoder.")
    first, second = losses(model(*text()))
    assert learned(model, first) == own
    assert learned(model, second) == names(model, "") - own


def test_with_gdes_the_delta_s_gradient_is_that_of_a_table_of_its_own(body: str):
    model, other = make_model(body, sharing="gdes"), make_model(body, sharing="none")
    batch, masked = text()
    randomize(model)
    with torch.no_grad():
        weights = dict(model.named_parameters())
        for name, weight in other.named_parameters():
            if name == "encoder.embeddings.token.weight":
                weight.copy_(model.encoder.embeddings.table)
            elif name in weights and weight.shape == weights[name].shape:
                weight.copy_(weights[name])
    found = gradients(model, model(batch, masked).answer.loss)
    # the same text for both discriminators, whatever the generators propose
    ids = model(batch, masked).answer.corrupted
    scores = other.rtd_head(other.encoder(ids.input_ids, batch.attention_mask))
    real = batch.attention_mask
    loss = F.binary_cross_entropy_with_logits(
        scores[real], ids.is_replaced[real].float(), reduction="sum"
    )
    expected = gradients(other, loss)
    torch.testing.assert_close(
        found["encoder.embeddings.delta.weight"],
        expected["encoder.embeddings.token.weight"],
        atol=1e-4,  # the sums are of about 10, in another order
        rtol=1e-4,
    )


def test_a_shared_token_table_learns_from_both_losses_and_the_rest_from_one(body: str):
    model = make_model(body, sharing="tokens")
    first, second = losses(model(*text()))
    by_first, by_second = learned(model, first), learned(model, second)
    assert by_first & by_second == {"encoder.embeddings.token.weight"}
    assert by_first | by_second == names(model, "")


def test_with_all_shared_both_losses_move_the_one_encoder(body: str):
    model = make_model(body, sharing="all")
    assert model.generator is model.encoder
    first, second = losses(model(*text()))
    by_first, by_second = learned(model, first), learned(model, second)
    assert by_first - by_second == names(model, "mlm_head.")
    assert by_second - by_first == names(model, "rtd_head.")
    assert by_first & by_second == names(model, "encoder.")


def test_shared_tables_of_two_towers_learn_from_both_losses(body: str):
    model = make_model(body, objective="electric", noise=TOWERS)
    first, second = losses(model(*text()))
    both = learned(model, first) & learned(model, second)
    assert both == tables(names(model, "encoder."))
    assert learned(model, second) == names(model, "encoder.", "rtd_head.")


def test_a_frozen_generator_proposes_and_does_not_learn(body: str):
    model = make_model(body, noise=FROZEN)
    batch, masked = text()
    outcome = model(batch, masked)
    assert not outcome.proposal.loss.requires_grad
    assert not outcome.proposal.logits.requires_grad
    assert learned(model, outcome.answer.loss) == names(model, "encoder.", "rtd_head.")
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == names(model, "encoder.", "rtd_head.")
    encoder, head = make_frozen(body)
    hidden = encoder(masked.input_ids, batch.attention_mask)
    chosen = hidden.gather(1, masked.positions.unsqueeze(-1).expand(-1, -1, 16))
    scores = head(chosen.flatten(0, 1), encoder.embeddings.table)
    torch.testing.assert_close(outcome.proposal.logits.flatten(0, 1), scores.detach())


def test_a_frozen_generator_has_no_dropout_in_training_and_the_rest_has(body: str):
    shape = shape_of(body)
    model = PretrainingModel(
        shape,
        None,
        Method(noise=FROZEN),
        forbidden_ids=SPECIAL.clone(),
        ordinary_ids=torch.arange(5, 40),
        frozen=make_frozen(body, dropout=0.5),
        seed=0,
    )
    model.train()
    assert model.encoder.training
    assert not any(part.training for part in model.generator.modules())
    assert not any(part.training for part in model.mlm_head.modules())
    one, other = (model(*text()).proposal.logits for _ in range(2))
    assert torch.equal(one, other)
    model.eval()
    assert not model.encoder.training
    assert torch.equal(model.train()(*text()).proposal.logits, one)


def test_in_the_first_stage_the_generator_learns_alone(body: str):
    model = make_model(body, algorithm="two_stage")
    outcome = model(*text())
    assert model.stage == "generator"
    assert outcome.answer is None
    assert learned(model, outcome.proposal.loss) == names(model, "generator.", "mlm_head.")


def test_in_the_second_stage_the_discriminator_learns_alone_from_the_generator_s_start(body: str):
    model = make_model(body, algorithm="two_stage")
    model.train()
    randomize(model)
    generator = {name: p.detach().clone() for name, p in model.generator.named_parameters()}
    assert not torch.equal(generator["layers.0.qkv.weight"], model.encoder.layers[0].qkv.weight)
    model.start_discriminator()
    weights = dict(model.encoder.named_parameters())
    assert weights.keys() == generator.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, generator[name]), name
        assert weight is not dict(model.generator.named_parameters())[name]
    outcome = model(*text())
    assert not outcome.proposal.loss.requires_grad
    assert learned(model, outcome.answer.loss) == names(model, "encoder.", "rtd_head.")
    for mode in (model, model.train()):
        assert mode.encoder.training
        assert not mode.generator.training
        assert not mode.mlm_head.training


def test_what_the_second_stage_learns_does_not_move_the_generator(body: str):
    model = make_model(body, algorithm="two_stage")
    model.start_discriminator()
    before = model(*text()).proposal.logits
    randomize(model.encoder, seed=3)
    assert torch.equal(model(*text()).proposal.logits, before)


def test_a_resumed_second_stage_freezes_the_generator_and_copies_nothing(body: str):
    model = make_model(body, algorithm="two_stage")
    before = model.encoder.layers[0].qkv.weight.detach().clone()
    model.freeze_generator()
    assert model.stage == "discriminator"
    assert not model.generator.training
    assert torch.equal(model.encoder.layers[0].qkv.weight, before)


@pytest.mark.parametrize("objective", ["rtd", "rtd_masked"])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_adversarial_generator_follows_the_reward_by_an_independent_computation(
    body: str, objective: str, temperature: float
):
    model = make_model(body, algorithm="adversarial", objective=objective, sharing="none")
    randomize(model)
    batch, masked = text()
    outcome = model(batch, masked, temperature=temperature)
    found = gradients(model, outcome.proposal.loss)

    used = masked.is_used
    sampled = outcome.answer.corrupted.input_ids.gather(1, masked.positions)[used]
    labels = batch.input_ids.gather(1, masked.positions)[used]
    hidden = model.generator(masked.input_ids, batch.attention_mask)
    hidden = hidden.gather(1, masked.positions.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))
    hidden = hidden[used]
    scores = model.mlm_head(hidden, model.generator.embeddings.table) / temperature
    scores = scores.index_fill(-1, SPECIAL, -torch.inf)
    log_p = scores.log_softmax(-1).gather(-1, sampled.unsqueeze(-1)).squeeze(-1)
    real = (-outcome.answer.logits.gather(1, masked.positions)[used]).sigmoid()  # the paper's D
    reward = -torch.where(sampled == labels, real, 1 - real).log()
    score = model.baseline.classifier(hidden.detach()).squeeze(-1)
    expected = -score.sigmoid().log()
    gain = ((reward - expected.detach()) * log_p).sum()
    to_match = (-reward).exp()
    fit = -(to_match * score.sigmoid().log() + (1 - to_match) * (1 - score.sigmoid()).log()).sum()
    exact = gradients(model, -gain + fit)
    assert found.keys() == exact.keys()
    for name, gradient in exact.items():
        scale = float(gradient.abs().max())
        torch.testing.assert_close(found[name], gradient, atol=1e-4 * scale, rtol=1e-3, msg=name)
    torch.testing.assert_close(outcome.proposal.reward, reward.sum(), rtol=1e-4, atol=0)


def test_a_sample_that_fools_the_discriminator_becomes_more_probable(body: str):
    # One chosen token; the discriminator calls everything original, so a replaced token costs
    # it 10 nats: more than expected. Where it calls everything replaced, the cost is near 0.
    batch = make_batch([6], width=8)
    masked = hide(batch)
    assert int(masked.is_used.sum()) == 1
    slot = (0, 0)
    for score, rises in ((-10.0, True), (10.0, False)):
        noise = NoiseConfig(forbid_original=True)
        model = make_model(body, algorithm="adversarial", sharing="none", noise=noise)
        with torch.no_grad():
            model.rtd_head.classifier.weight.zero_()
            model.rtd_head.classifier.bias.fill_(score)
        outcome = model(batch, masked)
        assert float(outcome.proposal.reward) == pytest.approx(10.0 if rises else 0.0, abs=1e-3)
        token = int(outcome.answer.corrupted.input_ids.gather(1, masked.positions)[slot])
        before = outcome.proposal.logits.detach()[slot].softmax(-1)[token]
        found = gradients(model, outcome.proposal.loss)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.sub_(1e-3 * found.get(name, torch.zeros(())))
        after = model(batch, masked).proposal.logits.detach()[slot].softmax(-1)[token]
        assert (after > before) == rises


def test_the_baseline_s_error_does_not_reach_the_generator_s_layers(body: str):
    model = make_model(body, algorithm="adversarial", sharing="none")
    batch, masked = text()
    outcome = model(batch, masked)
    assert learned(model, outcome.proposal.expected.sum()) == names(model, "baseline.")


def test_the_adversarial_generator_does_not_learn_to_name_the_hidden_tokens(body: str):
    # With the discriminator's score the same everywhere and the baseline right about it, there
    # is nothing to learn, though the generator is far from the text.
    model = make_model(body, algorithm="adversarial", noise=NoiseConfig(forbid_original=True))
    with torch.no_grad():
        for head in (model.rtd_head, model.baseline):
            head.classifier.weight.zero_()
            head.classifier.bias.zero_()  # R = ln 2 = b
    outcome = model(*text())
    assert float(outcome.proposal.nats) > 10
    found = gradients(model, outcome.proposal.loss)
    assert all(gradient.abs().max() < 1e-5 for gradient in found.values())


def test_adversarial_evaluation_needs_no_gradient_and_gives_the_mlm_loss_too(body: str):
    model = make_model(body, algorithm="adversarial").eval()
    batch, masked = text()
    with torch.no_grad():
        outcome = model(batch, masked)
    joint = make_model(body).eval()(batch, masked)
    torch.testing.assert_close(outcome.proposal.nats, joint.proposal.nats)
    assert outcome.proposal.reward is not None
    assert torch.equal(outcome.answer.corrupted.input_ids, joint.answer.corrupted.input_ids)
