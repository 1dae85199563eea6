"""Each objective: what it sees, where its head is computed, what its loss counts."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pairs import (
    COMBINATIONS,
    COUNTS,
    MASK,
    ORDINARY,
    TOWERS,
    UNIFORM,
    UNIGRAM,
    gradients,
    hide,
    losses,
    make_batch,
    make_model,
    mean_loss,
    number_of,
    randomize,
    rows_of,
)
from torch import Tensor, nn

from amber.data.batch import Batch
from amber.electra.config import LossConfig, MaskConfig, NoiseConfig
from amber.electra.mask import Masked
from amber.electra.outcome import Outcome
from amber.electra.pretraining import PretrainingModel

WITHOUT_SPECIAL = LossConfig(include_special=False)


def run(
    body: str, lengths: list[int] | None = None, *, seed: int = 0, **choices: Any
) -> tuple[PretrainingModel, Batch, Masked]:
    """A model with weights that matter, and two or more rows."""
    model = make_model(body, **choices)
    randomize(model, seed=seed)
    batch = make_batch(lengths or [40, 64], width=64, seed=seed)
    return model, batch, hide(batch)


def listen(
    module: nn.Module, model: PretrainingModel, batch: Batch, masked: Masked
) -> tuple[tuple, Tensor, Outcome]:
    """What a module is given and gives in a forward pass; the result keeps its gradient."""
    calls = []
    handle = module.register_forward_hook(lambda _, given, result: calls.append((given, result)))
    outcome = model(batch, masked)
    handle.remove()
    assert len(calls) == 1
    calls[0][1].retain_grad()
    return *calls[0], outcome


def chosen(masked: Masked) -> Tensor:
    return torch.zeros_like(masked.is_maskable).scatter(1, masked.positions, masked.is_used)


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        ({}, ("masked", "real")),
        ({"loss": WITHOUT_SPECIAL}, ("masked", "ordinary")),
        ({"objective": "rtd_masked"}, ("masked", "masked")),
        ({"objective": "replace_mlm"}, ("masked", "masked")),
        ({"objective": "mlm"}, ("masked", "masked")),
        ({"objective": "all_tokens_mlm"}, ("masked", "real")),
        ({"objective": "all_tokens_mlm", "loss": WITHOUT_SPECIAL}, ("masked", "ordinary")),
        ({"objective": "electric", "noise": TOWERS}, ("ordinary", "ordinary")),
        ({"objective": "electric", "noise": UNIGRAM}, ("masked", "ordinary")),
        ({"noise": TOWERS}, ("ordinary", "real")),
    ],
    ids=str,
)
def test_what_the_losses_are_means_over(choices: dict, expected: tuple):
    assert make_model(**choices).predictions == expected


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"loss": WITHOUT_SPECIAL},
        {"objective": "electric", "noise": TOWERS},
        {"objective": "electric", "noise": UNIFORM},
        {"noise": NoiseConfig(random_fraction=0.3)},
    ],
    ids=str,
)
def test_a_score_everywhere_learns_at_the_predictions_alone(body: str, choices: dict):
    model, batch, masked = run(body, **choices)
    _, logits, outcome = listen(model.rtd_head, model, batch, masked)
    assert logits.shape == batch.input_ids.shape
    outcome.answer.loss.backward()
    expected = {"real": batch.attention_mask, "ordinary": masked.is_maskable}
    assert torch.equal(logits.grad != 0, expected[model.predictions[1]])
    assert torch.equal(outcome.answer.is_scored, expected[model.predictions[1]])


def test_rtd_masked_is_computed_and_learns_at_the_chosen_positions_alone(body: str):
    model, batch, masked = run(body, objective="rtd_masked")
    _, logits, outcome = listen(model.rtd_head, model, batch, masked)
    assert logits.shape == masked.positions.shape
    outcome.answer.loss.backward()
    assert torch.equal(logits.grad != 0, masked.is_used)
    assert torch.equal(outcome.answer.is_scored, chosen(masked))
    everywhere = model.rtd_head(
        model.encoder(outcome.answer.corrupted.input_ids, batch.attention_mask)
    )
    at = chosen(masked)
    torch.testing.assert_close(outcome.answer.logits[at], everywhere[at].detach())
    labels = outcome.answer.corrupted.is_replaced[at].float()
    expected = F.binary_cross_entropy_with_logits(everywhere[at], labels, reduction="sum")
    torch.testing.assert_close(outcome.answer.loss, expected)


def test_the_two_binary_objectives_ask_the_same_of_the_chosen_tokens(body: str):
    everywhere, batch, masked = run(body)
    at_masks, _, _ = run(body, objective="rtd_masked")
    left, right = everywhere(batch, masked).answer, at_masks(batch, masked).answer
    at = chosen(masked)
    assert torch.equal(left.corrupted.is_replaced, right.corrupted.is_replaced)
    torch.testing.assert_close(left.logits[at], right.logits[at])


def test_replace_mlm_sees_samples_and_names_the_original_tokens(body: str):
    model, batch, masked = run(body, objective="replace_mlm")
    given, _, outcome = listen(model.encoder, model, batch, masked)
    corrupted = outcome.answer.corrupted
    assert torch.equal(given[0], corrupted.input_ids)
    assert not (given[0] == MASK).any()
    assert (corrupted.input_ids != batch.input_ids).any()
    hidden = model.encoder(corrupted.input_ids, batch.attention_mask)[chosen(masked)]
    scores = model.vocabulary_head(hidden, model.encoder.embeddings.table)
    labels = batch.input_ids[chosen(masked)]
    torch.testing.assert_close(
        outcome.answer.loss, F.cross_entropy(scores, labels, reduction="sum")
    )
    assert torch.equal(outcome.answer.named[chosen(masked)], scores.argmax(-1))
    assert outcome.answer.logits is None


@pytest.mark.parametrize("objective", ["replace_mlm", "mlm"])
def test_a_vocabulary_head_is_computed_at_the_slots_and_learns_at_the_used_ones(
    body: str, objective: str
):
    model, batch, masked = run(body, objective=objective)
    head = model.mlm_head if objective == "mlm" else model.vocabulary_head
    given, logits, outcome = listen(head, model, batch, masked)
    assert len(given[0]) == masked.positions.numel()
    sum(losses(outcome)).backward()
    assert torch.equal(logits.grad.any(-1), masked.is_used.flatten())
    assert int(masked.is_used.sum()) < masked.is_used.numel()


@pytest.mark.parametrize("loss", [LossConfig(), WITHOUT_SPECIAL], ids=["all", "ordinary"])
def test_all_tokens_are_copied_or_named(body: str, loss: LossConfig):
    model, batch, masked = run(body, objective="all_tokens_mlm", loss=loss)
    given, logits, outcome = listen(model.vocabulary_head, model, batch, masked)
    is_scored = batch.attention_mask if loss.include_special else masked.is_maskable
    assert len(given[0]) == int(is_scored.sum())
    assert torch.equal(outcome.answer.is_scored, is_scored)
    outcome.answer.loss.backward()
    assert logits.grad.any(-1).all()
    # the plain formula at every scored token, in float64
    ids = outcome.answer.corrupted.input_ids
    assert not (ids == MASK).any()
    hidden = model.encoder(ids, batch.attention_mask)
    scores = model.vocabulary_head(hidden.flatten(0, 1), model.encoder.embeddings.table)
    gate = model.copy_gate(hidden).double().sigmoid().unsqueeze(-1)
    p = gate * F.one_hot(ids, 40) + (1 - gate) * scores.view(2, 64, 40).double().softmax(-1)
    nats = -p.gather(-1, batch.input_ids.unsqueeze(-1)).log().squeeze(-1)
    torch.testing.assert_close(
        outcome.answer.loss.double(), nats[is_scored].sum(), rtol=1e-5, atol=0
    )
    assert torch.equal(outcome.answer.named[is_scored], p.argmax(-1)[is_scored])
    copies = gate.squeeze(-1)[is_scored] > 0.5
    assert torch.equal(outcome.answer.logits[is_scored] < 0, copies)


@pytest.mark.parametrize("ratio", ["paper", "official"])
def test_electric_tells_noise_from_data_by_the_papers_formula(body: str, ratio: str):
    loss = LossConfig(nce_ratio=ratio)
    model, batch, masked = run(body, objective="electric", noise=TOWERS, loss=loss)
    with torch.no_grad():
        model.rtd_head.classifier.weight.mul_(0.3)
    outcome = model(batch, masked, temperature=1.5)
    corrupted = outcome.answer.corrupted
    assert torch.equal(corrupted.is_replaced, chosen(masked))
    with torch.no_grad():
        energy = model.rtd_head(model.encoder(corrupted.input_ids, batch.attention_mask))
        scores = model.generator(
            batch.input_ids, batch.attention_mask, batch.token_type_ids, masked.is_maskable
        )
        forbidden = torch.full((40,), 0.0).index_fill(0, model.forbidden_ids, -torch.inf)
        q = ((scores + forbidden).double() / 1.5).softmax(-1)
    total = 0.0
    at, place = masked.is_maskable.nonzero(), 0
    for row in (0, 1):
        k, n = int(masked.is_used[row].sum()), int(masked.is_maskable[row].sum())
        n = n if ratio == "paper" else n - k
        for column in at[at[:, 0] == row, 1].tolist():
            noise = k * q[place, corrupted.input_ids[row, column]]
            data = n * (-energy[row, column].double()).exp()
            is_noise = bool(corrupted.is_replaced[row, column])
            total -= ((noise if is_noise else data) / (noise + data)).log()
            place += 1
    torch.testing.assert_close(
        outcome.answer.loss.detach().double(), torch.as_tensor(total), rtol=1e-4, atol=1e-4
    )


def test_electric_labels_by_source_where_the_sample_is_the_token_itself(body: str):
    model = make_model(body, objective="electric", noise=UNIFORM)
    batch = make_batch([64] * 8, width=64)
    masked = hide(batch, MaskConfig(fraction=0.5))
    corrupted = model(batch, masked).answer.corrupted
    same = (corrupted.input_ids == batch.input_ids) & chosen(masked)
    assert same.any()
    assert torch.equal(corrupted.is_replaced, chosen(masked))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_noise_of_the_corpus_is_its_frequencies_at_the_temperature(temperature: float):
    model, batch, masked = run("modern", objective="electric", noise=UNIGRAM)
    corrupted = model(batch, masked, temperature=temperature).answer.corrupted
    log_q = model.log_noise(corrupted, None, masked, temperature)
    chances = COUNTS.double() ** (1 / temperature)
    expected = (chances / chances.sum())[corrupted.input_ids] * masked.is_maskable
    found = log_q.double().exp() * masked.is_maskable
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-9)
    assert (COUNTS[corrupted.input_ids[chosen(masked)]] > 0).all()


@pytest.mark.parametrize("source", ["unigram", "uniform"])
def test_a_source_without_a_network_gives_its_tokens_in_their_shares(source: str):
    noise = NoiseConfig(source=source)
    model, batch = make_model("modern", noise=noise), make_batch([64] * 100, width=64)
    masked = hide(batch, MaskConfig(fraction=0.5))
    outcome = model(batch, masked)
    assert model.generator is None
    assert outcome.proposal is None
    tokens = outcome.answer.corrupted.input_ids[chosen(masked)]
    weights = COUNTS if source == "unigram" else torch.isin(torch.arange(40), ORDINARY)
    shares = weights.double() / weights.sum()
    n = len(tokens)
    deviation = (shares * (1 - shares) / n) ** 0.5
    assert ((tokens.bincount(minlength=40) / n - shares).abs() <= 4.5 * deviation).all()


@pytest.mark.parametrize("source", ["generator", "unigram", "uniform", "two_tower"])
def test_the_original_token_is_never_drawn_where_it_is_forbidden(body: str, source: str):
    noise = NoiseConfig(source=source, forbid_original=True)
    model, batch = make_model(body, noise=noise), make_batch([64] * 8, width=64)
    masked = hide(batch, MaskConfig(fraction=0.5))
    corrupted = model(batch, masked).answer.corrupted
    assert torch.equal(corrupted.is_replaced, chosen(masked))
    assert torch.equal(corrupted.input_ids != batch.input_ids, chosen(masked))


def test_top_k_of_one_takes_the_likeliest_token_but_the_original(body: str):
    model, batch, masked = run(body, noise=NoiseConfig(top_k=1, forbid_original=True))
    outcome = model(batch, masked)
    labels = batch.input_ids.gather(1, masked.positions).unsqueeze(-1)
    scores = outcome.proposal.logits.index_fill(-1, model.forbidden_ids, -torch.inf)
    likeliest = scores.scatter(-1, labels, -torch.inf).argmax(-1)
    sampled = outcome.answer.corrupted.input_ids.gather(1, masked.positions)
    assert torch.equal(sampled[masked.is_used], likeliest[masked.is_used])


@pytest.mark.parametrize("rule", ["content", "source"])
def test_random_tokens_elsewhere_are_labelled_replaced(body: str, rule: str):
    choices = {"label_rule": rule, "noise": NoiseConfig(random_fraction=0.3)}
    model, batch, masked = run(body, [64] * 8, **choices)
    plain, _, _ = run(body, [64] * 8, label_rule=rule)
    corrupted = model(batch, masked).answer.corrupted
    before = plain(batch, masked).answer.corrupted
    differs = corrupted.input_ids != batch.input_ids
    elsewhere = differs & ~chosen(masked)
    assert 0.2 < int(elsewhere.sum()) / int((masked.is_maskable & ~chosen(masked)).sum()) < 0.4
    assert not (elsewhere & ~masked.is_maskable).any()
    assert torch.equal(corrupted.input_ids[chosen(masked)], before.input_ids[chosen(masked)])
    expected = differs if rule == "content" else differs | chosen(masked)
    assert torch.equal(corrupted.is_replaced, expected)


def test_a_generator_of_two_towers_proposes_what_its_scores_at_the_place_say(body: str):
    model, batch, masked = run(body, [40, 64, 9], noise=TOWERS)
    outcome = model(batch, masked)
    where = torch.full(batch.input_ids.shape, -1)
    where[masked.is_maskable] = torch.arange(int(masked.is_maskable.sum()))
    slots = where.gather(1, masked.positions)
    used = masked.is_used
    assert torch.equal(outcome.proposal.logits[used], outcome.proposal.everywhere[slots[used]])
    text = batch.input_ids[masked.is_maskable]
    expected = F.cross_entropy(outcome.proposal.everywhere, text, reduction="sum")
    torch.testing.assert_close(outcome.proposal.loss.detach(), expected)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_micro_batches_add_up_to_the_whole_batch(name: str):
    model, whole = make_model("modern", **COMBINATIONS[name]), make_batch([4, 64, 30, 9], width=64)
    if name == "two_stage":
        model.start_discriminator()
    randomize(model, scale=0.1)
    counts = number_of(hide(whole), whole)
    expected = gradients(model, mean_loss(model, whole, counts))
    total: dict[str, Tensor] = {}
    for rows in (slice(0, 1), slice(1, 4)):
        found = gradients(model, mean_loss(model, rows_of(whole, rows), counts))
        total = {name: total.get(name, 0.0) + gradient for name, gradient in found.items()}
    assert total.keys() == expected.keys()
    assert any(gradient.any() for gradient in expected.values())
    for name, gradient in expected.items():
        scale = float(gradient.abs().max())
        torch.testing.assert_close(total[name], gradient, atol=1e-4 * scale + 1e-6, rtol=1e-4)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_batch_of_padding_costs_nothing_and_changes_no_gradient(name: str):
    model, empty = make_model("bert", **COMBINATIONS[name]), make_batch([0], width=8)
    if name == "two_stage":
        model.start_discriminator()
    outcome = model(empty, hide(empty))
    assert [loss.item() for loss in losses(outcome)] == [0.0, 0.0]
    assert outcome.answer is None or not outcome.answer.corrupted.is_replaced.any()
    found = gradients(model, sum(losses(outcome)))
    assert not any(gradient.any() for gradient in found.values())
    # all processes exchange the same gradients: none may be missing
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    if name == "two_stage":
        trained = {n for n in trained if n.startswith(("encoder.", "rtd_head."))}
    assert set(found) == trained


@pytest.mark.parametrize("name", COMBINATIONS)
def test_bfloat16_gives_float32_sums_near_those_of_float32(name: str):
    model, batch = make_model("modern", **COMBINATIONS[name]), make_batch([40, 64], width=64)
    if name == "two_stage":
        model.start_discriminator()
    masked = hide(batch)
    exact = model(batch, masked)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outcome = model(batch, masked)
        with torch.no_grad():
            evaluated = model.eval()(batch, masked)
    for found, again in zip(losses(outcome), losses(evaluated), strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.detach(), again)
    # a sample on a border may differ, so the main encoder may see another text
    (found, _), (expected, _) = losses(outcome), losses(exact)
    if name.startswith("adversarial"):
        found, expected = outcome.proposal.nats, exact.proposal.nats
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.0)
    if outcome.answer is not None and torch.equal(
        outcome.answer.corrupted.input_ids, exact.answer.corrupted.input_ids
    ):
        torch.testing.assert_close(outcome.answer.loss, exact.answer.loss, rtol=0.02, atol=0.0)
    found = gradients(model, sum(losses(outcome)))
    assert all(gradient.isfinite().all() for gradient in found.values())
