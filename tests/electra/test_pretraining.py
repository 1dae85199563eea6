"""Which gradient goes where, what the discriminator sees, and what is one tensor."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from pairs import (
    MASK,
    SPECIAL,
    UNK,
    gradients,
    hide,
    losses,
    make_batch,
    make_model,
)
from torch import nn

from amber.data.batch import Batch
from amber.electra.config import MaskConfig, NoiseConfig


def is_own(name: str) -> bool:
    """Whether a weight is the generator's alone."""
    return name.startswith(("generator.", "mlm_head.")) and ".embeddings." not in name


def is_shared(name: str) -> bool:
    """Whether a weight is shared by both."""
    return ".embeddings." in name


def seen_by(module: nn.Module, model: nn.Module, batch: Batch) -> tuple:
    """What a module is given in a forward pass, and what it gives."""
    calls = []
    handle = module.register_forward_hook(lambda _, given, result: calls.append((given, result)))
    model(batch, hide(batch))
    handle.remove()
    assert len(calls) == 1
    return calls[0]


def test_the_discriminator_s_gradient_does_not_reach_the_generator(body: str):
    model, batch = make_model(body), make_batch([40, 64], width=64)
    outcome = model(batch, hide(batch))
    found = gradients(model, 0.0 * outcome.proposal.loss + 50.0 * outcome.answer.loss)
    own = [name for name, _ in model.named_parameters() if is_own(name)]
    assert len(own) >= 9
    assert not any(found[name].any() for name in own if name in found)
    assert all(found[n].any() for n in found if n.startswith("encoder.layers"))


def test_both_losses_and_both_gradients_are_there_from_the_first_step(body: str):
    model, batch = make_model(body), make_batch([40, 64], width=64)
    outcome = model(batch, hide(batch))
    assert outcome.proposal.loss.item() > 0
    assert outcome.answer.loss.item() > 0
    found = gradients(model, outcome.proposal.loss + outcome.answer.loss)
    assert set(found) == {name for name, _ in model.named_parameters()}
    # a token that does not occur has no gradient, but each table has one
    assert all(gradient.any() for gradient in found.values())


def test_shared_tables_receive_both_gradients(body: str):
    model, batch = make_model(body), make_batch([40, 64], width=64)
    outcome = model(batch, hide(batch))
    mlm = gradients(model, outcome.proposal.loss)
    rtd = gradients(model, outcome.answer.loss)
    both = gradients(model, outcome.proposal.loss + outcome.answer.loss)
    shared = [name for name in both if is_shared(name)]
    assert len(shared) == (5 if body == "bert" else 2)  # tables and norm
    for name in shared:
        assert mlm[name].any()
        assert rtd[name].any()
        torch.testing.assert_close(both[name], mlm[name] + rtd[name], atol=1e-5, rtol=1e-4)


def test_every_real_token_is_learned_from_though_few_are_masked(body: str):
    model, batch = make_model(body), make_batch([40, 64], width=64)
    _, logits = seen_by(model.rtd_head, model, batch)
    logits.retain_grad()
    outcome = model(batch, hide(batch))
    labels = outcome.answer.corrupted.is_replaced.float()
    real = batch.attention_mask
    F.binary_cross_entropy_with_logits(logits[real], labels[real], reduction="sum").backward()
    assert (logits.grad[real] != 0).all()
    assert int(hide(batch).is_used.sum()) < 0.16 * int(real.sum())


def test_the_gradient_at_every_token_is_probability_minus_label(body: str):
    model, batch = make_model(body), make_batch([40, 64], width=64)
    kept = []
    handle = model.rtd_head.register_forward_hook(lambda _, __, result: kept.append(result))
    outcome = model(batch, hide(batch))
    handle.remove()
    kept[0].retain_grad()
    outcome.answer.loss.backward()
    expected = (
        kept[0].detach().sigmoid() - outcome.answer.corrupted.is_replaced.float()
    ) * batch.attention_mask
    torch.testing.assert_close(kept[0].grad, expected)
    assert int((kept[0].grad != 0).sum()) == 104  # every real token, 16 of them masked
    assert int(hide(batch).is_used.sum()) == 15


def test_the_discriminator_never_sees_a_mask(body: str):
    model, batch = make_model(body), make_batch([40, 64, 20], width=64)
    given, _ = seen_by(model.encoder, model, batch)
    assert not (given[0] == MASK).any()
    given, _ = seen_by(model.generator, model, batch)
    assert (given[0] == MASK).any()


def test_a_mask_of_the_text_itself_stays(body: str):
    model, batch = make_model(body), make_batch([40], width=64)
    batch.input_ids[0, 7] = MASK
    given, _ = seen_by(model.encoder, model, batch)
    assert (given[0] == MASK).nonzero().tolist() == [[0, 7]]


def test_the_samples_follow_from_the_fourth_part_of_the_noise():
    model, batch = make_model("modern"), make_batch([40, 64], width=64)
    masked = hide(batch)
    batch.noise[:3] = 0.5  # used up by the masks
    batch.noise[3] = 0.0  # takes the first token that may be sampled: [UNK]
    sampled = model(batch, masked).answer.corrupted.input_ids.gather(1, masked.positions)
    assert (sampled[masked.is_used] == UNK).all()


def test_the_temperature_is_used():
    model, batch = make_model("modern"), make_batch([40, 64], width=64)
    masked = hide(batch)
    outcome = model(batch, masked, temperature=1e-4)  # the likeliest token, whatever the noise
    likeliest = outcome.proposal.logits.index_fill(2, SPECIAL, -torch.inf).argmax(dim=2)
    sampled = outcome.answer.corrupted.input_ids.gather(1, masked.positions)
    assert torch.equal(sampled[masked.is_used], likeliest[masked.is_used])


def test_the_labels_are_where_the_discriminator_s_input_differs_from_the_text(body: str):
    model, batch = make_model(body), make_batch([40, 64, 20], width=64)
    masked = hide(batch, MaskConfig(fraction=0.5, random_fraction=0.3))
    outcome = model(batch, masked)
    assert torch.equal(
        outcome.answer.corrupted.is_replaced, outcome.answer.corrupted.input_ids != batch.input_ids
    )
    is_chosen = torch.zeros_like(batch.attention_mask).scatter_(1, masked.positions, masked.is_used)
    assert not (outcome.answer.corrupted.is_replaced & ~is_chosen).any()
    assert outcome.answer.corrupted.is_replaced.any()
    new = outcome.answer.corrupted.input_ids[outcome.answer.corrupted.is_replaced]
    assert not torch.isin(new, SPECIAL).any()


def test_the_mlm_loss_equals_a_full_prediction_with_ignored_labels(body: str):
    for objective in ("rtd", "mlm"):
        model, batch = make_model(body, objective=objective), make_batch([40, 64], width=64)
        masked = hide(batch)
        outcome = model(batch, masked)
        hidden = model.generator(masked.input_ids, batch.attention_mask, batch.token_type_ids)
        logits = model.mlm_head(hidden.flatten(0, 1), model.encoder.embeddings.table)
        labels = torch.full_like(batch.input_ids, -100)
        for row in (0, 1):
            chosen = masked.positions[row, masked.is_used[row]]
            labels[row, chosen] = batch.input_ids[row, chosen]
        expected = F.cross_entropy(logits, labels.flatten(), reduction="sum")
        torch.testing.assert_close(outcome.proposal.loss, expected)


def test_the_mlm_objective_has_one_encoder_and_no_discriminator(body: str):
    model, batch = make_model(body, objective="mlm"), make_batch([40, 64], width=64)
    outcome = model(batch, hide(batch))
    assert model.generator is model.encoder
    assert outcome.answer is None
    found = gradients(model, outcome.proposal.loss)
    assert set(found) == {name for name, _ in model.named_parameters()}
    assert not any(name.startswith(("generator.", "rtd_head.")) for name in found)


def test_tables_stay_one_tensor_after_a_move_a_copy_and_a_load(body: str):
    model = make_model(body)
    loaded = make_model(body, seed=1)
    loaded.load_state_dict(model.state_dict())
    for one in (model, copy.deepcopy(model), make_model(body).to(torch.float64), loaded):
        assert one.generator.embeddings is one.encoder.embeddings
        table = one.encoder.embeddings.table
        assert one.generator.embeddings.token.weight is table
        assert sum(p is table for p in one.parameters()) == 1
        assert table.data_ptr() == one.generator.embeddings.table.data_ptr()
    assert torch.equal(loaded.encoder.embeddings.table, model.encoder.embeddings.table)


def test_a_step_on_one_network_s_table_moves_the_other_s(body: str):
    model = copy.deepcopy(make_model(body))
    with torch.no_grad():
        model.generator.embeddings.token.weight += 1.0
    assert torch.equal(model.encoder.embeddings.token.weight, model.generator.embeddings.table)


def test_padding_changes_neither_losses_nor_gradients(body: str):
    model = make_model(body)
    found = []
    for width in (40, 64):
        batch = make_batch([40, 33, 9], width=width)
        outcome = model(batch, hide(batch))
        found.append(
            (outcome, gradients(model, outcome.proposal.loss + 50.0 * outcome.answer.loss))
        )
    (left, left_gradients), (right, right_gradients) = found
    ids = right.answer.corrupted.input_ids
    assert torch.equal(left.answer.corrupted.input_ids, ids[:, :40])
    torch.testing.assert_close(losses(left), losses(right), atol=1e-5, rtol=1e-5)
    for name, gradient in left_gradients.items():
        torch.testing.assert_close(gradient, right_gradients[name], atol=2e-4, rtol=1e-4)


def test_a_row_of_padding_costs_nothing_and_changes_no_gradient(body: str):
    model = make_model(body)
    empty = make_batch([0], width=8)
    outcome = model(empty, hide(empty))
    assert outcome.proposal.loss.item() == 0.0
    assert outcome.answer.loss.item() == 0.0
    assert not outcome.answer.corrupted.is_replaced.any()
    found = gradients(model, outcome.proposal.loss + 50.0 * outcome.answer.loss)
    assert not any(gradient.any() for gradient in found.values())
    # all processes exchange the same gradients: none may be missing
    assert set(found) == {name for name, _ in model.named_parameters()}


def test_the_generator_starts_elsewhere_and_does_not_move_the_discriminator_s_start():
    model, alone = make_model("modern"), make_model("modern", objective="mlm")
    start = dict(alone.named_parameters())
    for name, parameter in model.named_parameters():
        if name.startswith("encoder."):
            assert torch.equal(parameter, start[name])
    own, main = model.generator.layers[0], model.encoder.layers[0]
    assert not torch.equal(own.qkv.weight, main.qkv.weight)


def test_a_fresh_pair_guesses_nothing():
    model, batch = make_model("modern"), make_batch([64] * 8, width=64)
    outcome = model(batch, hide(batch))
    num_masked, num_tokens = int(hide(batch).is_used.sum()), 8 * 64
    assert outcome.proposal.loss.item() / num_masked == pytest.approx(math.log(40), rel=0.15)
    assert outcome.answer.loss.item() / num_tokens == pytest.approx(math.log(2), rel=0.3)


def test_segments_reach_both_networks():
    model, batch = make_model("bert"), make_batch([40], width=40)
    batch.token_type_ids[0, 20:] = 1
    for module in (model.generator, model.encoder):
        given, _ = seen_by(module, model, batch)
        assert torch.equal(given[2], batch.token_type_ids)


def test_a_falling_temperature_changes_by_a_constant_factor():
    # From 2 to 1: after a quarter 2 ** 0.75, half way the square root of 2.
    noise = NoiseConfig(temperature=2.0, final_temperature=1.0)
    shares = (0.0, 0.25, 0.5, 1.0)
    found = [noise.temperature_at(share) for share in shares]
    assert found == pytest.approx([2.0, 1.68179283, 1.41421356, 1.0])
    assert NoiseConfig(temperature=1.5).temperature_at(0.7) == 1.5
