"""Each metric against scikit-learn, and one case by hand."""

import math
import pickle

import numpy as np
import pytest
import torch
from pairs import COUNTS, TOWERS, UNIGRAM, hide, losses, make_batch, make_model, number_of
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from amber.data.batch import Batch
from amber.electra.mask import Masked
from amber.electra.metrics import Tally, auc
from amber.electra.outcome import Answer, Corrupted, Outcome, Predictions, Proposal

RTD: tuple[Predictions, Predictions] = ("masked", "real")


def by_hand() -> tuple[Outcome, Batch, Masked]:
    """Two rows of 4 and 3 real tokens; 3 chosen positions; a vocabulary of 3."""
    ids = torch.tensor([[0, 1, 2, 0], [0, 1, 0, 0]])
    batch = Batch(
        input_ids=ids,
        attention_mask=torch.tensor([[True] * 4, [True] * 3 + [False]]),
        token_type_ids=torch.zeros_like(ids),
        noise=torch.zeros(5, 2, 4),
        examples=torch.arange(2),
    )
    masked = Masked(
        input_ids=ids,
        positions=torch.tensor([[1, 2], [1, 0]]),
        is_used=torch.tensor([[True, True], [True, False]]),
        is_maskable=batch.attention_mask,
    )
    half = [math.log(p) for p in (0.25, 0.5, 0.25)]  # guesses 1; entropy 1.5 ln 2
    logits = torch.tensor([[half, half], [half, [1.0, 0.0, 0.0]]])
    corrupted = torch.tensor([[0, 1, 1, 0], [0, 2, 0, 0]])
    chosen = torch.tensor([[False, True, True, False], [False, True, False, False]])
    answer = Answer(
        corrupted=Corrupted(ids, corrupted, corrupted != ids, chosen),
        loss=torch.tensor(3.5),
        is_scored=batch.attention_mask,
        logits=torch.tensor([[-1.0, 0.5, 2.0, -2.0], [-3.0, -0.5, -4.0, 9.0]]),
    )
    proposal = Proposal(torch.tensor(99.0), torch.tensor(2.4), logits)
    return Outcome(proposal, answer), batch, masked


def random_outcome(seed: int) -> tuple[Outcome, Batch, Masked]:
    """Labels and scores without any meaning; scores with ties."""
    rng = torch.Generator().manual_seed(seed)
    batch = make_batch([40, 64, 0, 9], width=64, seed=seed)
    masked = hide(batch)
    replaced = (torch.rand(4, 64, generator=rng) < 0.3) & batch.attention_mask
    scores = (torch.randn(4, 64, generator=rng) + replaced).mul(4).round() / 4
    logits = torch.randn(*masked.positions.shape, 40, generator=rng)
    chosen = torch.zeros_like(replaced).scatter(1, masked.positions, masked.is_used)
    corrupted = Corrupted(batch.input_ids, batch.input_ids + replaced, replaced, chosen)
    answer = Answer(corrupted, torch.tensor(1.0), batch.attention_mask, scores)
    one = torch.tensor(1.0)
    return Outcome(Proposal(one, one, logits), answer), batch, masked


def tally(*outcomes: tuple[Outcome, Batch, Masked]) -> Tally:
    """Count batches."""
    result = Tally()
    for outcome in outcomes:
        result.add(*outcome)
    return result


def test_all_metrics_of_a_small_case_by_hand():
    found = tally(by_hand()).metrics(RTD)
    assert found == pytest.approx(
        {
            "masked_lm_loss": 2.4 / 3,
            "masked_lm_accuracy": 2 / 3,  # 1 is guessed for 1, 2, 1
            "generator_entropy": 1.5 * math.log(2),
            "sampled_masked_lm_accuracy": 1 / 3,  # 1, 1, 2 are sampled for 1, 2, 1
            "disc_loss": 3.5 / 7,
            "disc_accuracy": 5 / 7,  # wrong: 0.5 at an original, -0.5 at a replaced one
            "disc_auc": 9 / 10,  # of 2 x 5 pairs, 0.5 above -0.5 is the wrong one
            "disc_precision": 1 / 2,
            "disc_recall": 1 / 2,
            "replaced_fraction": 2 / 7,
            "majority_accuracy": 5 / 7,
        },
        rel=1e-6,
    )


def test_the_discriminator_metrics_equal_those_of_scikit_learn():
    outcomes = [random_outcome(seed) for seed in range(3)]
    found = tally(*outcomes).metrics(RTD)
    pairs = [(o.answer, b.attention_mask) for o, b, _ in outcomes]
    labels = np.concatenate([a.corrupted.is_replaced[real].numpy() for a, real in pairs])
    scores = np.concatenate([a.logits[real].numpy() for a, real in pairs])
    said = scores > 0
    assert found["disc_auc"] == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
    assert found["disc_accuracy"] == pytest.approx(accuracy_score(labels, said))
    assert found["disc_precision"] == pytest.approx(precision_score(labels, said))
    assert found["disc_recall"] == pytest.approx(recall_score(labels, said))
    assert found["replaced_fraction"] == pytest.approx(labels.mean())
    assert found["majority_accuracy"] == pytest.approx(1 - labels.mean())


@pytest.mark.parametrize("distinct", [1, 2, 5, 1000])
def test_the_area_equals_that_of_scikit_learn_with_many_ties(distinct: int):
    rng = np.random.default_rng(distinct)
    labels = rng.random(2000) < 0.1
    scores = rng.integers(0, distinct, 2000).astype(np.float32) + labels * (distinct > 5)
    found = auc(torch.from_numpy(scores), torch.from_numpy(labels))
    assert found == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


def test_the_area_by_hand():
    scores = torch.tensor([3.0, 1.0, 2.0, 2.0])
    labels = torch.tensor([True, False, True, False])
    assert auc(scores, labels) == 3.5 / 4  # a tie counts one half
    assert auc(scores, ~labels) == 0.5 / 4


def test_without_both_classes_nothing_is_told_apart():
    scores = torch.tensor([3.0, 1.0])
    for labels in ([True, True], [False, False]):
        assert auc(scores, torch.tensor(labels)) == 0.5
    assert auc(scores[:0], torch.zeros(0, dtype=torch.bool)) == 0.5


def test_merged_counts_equal_the_counts_of_all_batches():
    outcomes = [random_outcome(seed) for seed in range(4)]
    left, right = tally(*outcomes[:1]), tally(*outcomes[1:])
    left.merge(pickle.loads(pickle.dumps(right)))
    assert left.metrics(RTD) == pytest.approx(tally(*outcomes).metrics(RTD), rel=1e-12)
    nothing = Tally()
    nothing.merge(left)
    assert nothing.metrics(RTD) == left.metrics(RTD)


def test_ratios_are_over_all_batches_not_means_of_ratios():
    one, other = by_hand(), random_outcome(0)
    found = tally(one, other).metrics(RTD)
    num_tokens = 7 + int(other[1].attention_mask.sum())
    assert found["disc_loss"] == pytest.approx((3.5 + 1.0) / num_tokens)


def changed(outcome: Outcome, **fields: object) -> Outcome:
    """The same outcome with another answer."""
    assert outcome.answer is not None
    return outcome._replace(answer=outcome.answer._replace(**fields))


def test_nothing_replaced_and_nothing_said_gives_numbers():
    outcome, batch, masked = by_hand()
    nothing = outcome.answer.corrupted._replace(is_replaced=torch.zeros(2, 4, dtype=torch.bool))
    quiet = changed(outcome, corrupted=nothing, logits=torch.full((2, 4), -1.0))
    found = tally((quiet, batch, masked)).metrics(RTD)
    assert (found["disc_precision"], found["disc_recall"], found["disc_auc"]) == (0.0, 0.0, 0.5)
    assert found["disc_accuracy"] == found["majority_accuracy"] == 1.0


def test_only_scored_tokens_are_in_the_binary_metrics():
    # Scored: the 3 chosen ones, with labels F T T and scores 0.5, 2, -0.5.
    outcome, batch, masked = by_hand()
    answer = outcome.answer
    only = changed(outcome, is_scored=answer.corrupted.is_chosen)
    found = tally((only, batch, masked)).metrics(("masked", "masked"))
    assert found["disc_loss"] == pytest.approx(3.5 / 3)
    assert found["disc_accuracy"] == pytest.approx(1 / 3)
    assert found["disc_precision"] == found["disc_recall"] == 1 / 2
    assert found["disc_auc"] == 1 / 2
    assert found["majority_accuracy"] == pytest.approx(1 / 3)
    assert found["replaced_fraction"] == pytest.approx(2 / 7)  # of the real tokens, as ever


@pytest.mark.parametrize(("second", "count"), [("masked", 3), ("ordinary", 5), ("real", 7)])
def test_losses_are_means_over_the_predictions(second: Predictions, count: int):
    outcome, batch, masked = by_hand()
    maskable = batch.attention_mask.clone()
    maskable[:, 0] = False
    ordinary = Masked(
        input_ids=masked.input_ids,
        positions=masked.positions,
        is_used=masked.is_used,
        is_maskable=maskable,
    )
    found = tally((outcome, batch, ordinary)).metrics((second, second))
    assert found["disc_loss"] == pytest.approx(3.5 / count)
    assert found["masked_lm_loss"] == pytest.approx(2.4 / count)


def test_labels_by_source_that_contradict_the_text_are_counted():
    # All three chosen ones are labelled replaced; the first was sampled right: 1 of 3.
    outcome, batch, masked = by_hand()
    by_source = outcome.answer.corrupted._replace(is_replaced=outcome.answer.corrupted.is_chosen)
    found = tally((changed(outcome, corrupted=by_source), batch, masked)).metrics(RTD)
    assert found["label_conflict_fraction"] == pytest.approx(1 / 3)
    assert found["replaced_fraction"] == pytest.approx(2 / 7)
    assert found["majority_accuracy"] == pytest.approx(4 / 7)
    assert "label_conflict_fraction" not in tally(by_hand()).metrics(RTD)


def test_named_tokens_are_counted_at_the_chosen_positions():
    # The text at the three chosen places is 1, 2, 1; named are 1, 0, 1. Others do not count.
    outcome, batch, masked = by_hand()
    named = torch.tensor([[0, 1, 0, 0], [0, 1, 0, 9]])
    both = changed(outcome, named=named)
    found = tally((both, batch, masked)).metrics(RTD)
    assert found["encoder_lm_accuracy"] == pytest.approx(2 / 3)
    assert found["encoder_lm_loss"] == 3.5 / 7
    assert "disc_loss" not in found
    assert found["disc_auc"] == 9 / 10
    alone = tally((changed(both, logits=None), batch, masked)).metrics(("masked", "masked"))
    assert alone["encoder_lm_loss"] == pytest.approx(3.5 / 3)
    assert not any(name.startswith(("disc_", "majority")) for name in alone)


def test_the_reward_is_a_mean_over_the_chosen_positions():
    outcome, batch, masked = by_hand()
    rewarded = outcome._replace(proposal=outcome.proposal._replace(reward=torch.tensor(1.5)))
    found = tally((rewarded, batch, masked), (rewarded, batch, masked)).metrics(RTD)
    assert found["generator_reward"] == 0.5


def test_without_a_network_that_proposes_there_are_no_metrics_of_it():
    outcome, batch, masked = by_hand()
    found = tally((outcome._replace(proposal=None), batch, masked)).metrics(RTD)
    expected = tally(by_hand()).metrics(RTD)
    gone = {"masked_lm_loss", "masked_lm_accuracy", "generator_entropy"}
    assert found == {name: value for name, value in expected.items() if name not in gone}


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"noise": TOWERS},
        {"objective": "rtd_masked"},
        {"objective": "electric", "noise": TOWERS},
        {"objective": "all_tokens_mlm"},
        {"objective": "replace_mlm"},
    ],
    ids=str,
)
def test_the_metrics_of_a_real_forward_pass_agree_with_its_losses(body: str, choices: dict):
    model, batch = make_model(body, **choices), make_batch([40, 64, 9], width=64)
    masked = hide(batch)
    outcome = model(batch, masked)
    found = tally((outcome, batch, masked)).metrics(model.predictions)
    counts = number_of(masked, batch)
    first, second = (float(loss.detach()) for loss in losses(outcome))
    main = found.get("disc_loss", found.get("encoder_lm_loss"))
    assert found["masked_lm_loss"] == pytest.approx(first / counts[model.predictions[0]])
    assert main == pytest.approx(second / counts[model.predictions[1]])
    assert found["replaced_fraction"] <= counts["masked"] / counts["real"]
    assert found["sampled_masked_lm_accuracy"] == pytest.approx(
        1 - found["replaced_fraction"] * counts["real"] / counts["masked"]
    )


def test_the_mlm_objective_has_no_discriminator_metrics(body: str):
    model, batch = make_model(body, objective="mlm"), make_batch([40, 64], width=64)
    masked = hide(batch)
    found = tally((model(batch, masked), batch, masked)).metrics(model.predictions)
    assert set(found) == {"masked_lm_loss", "masked_lm_accuracy", "generator_entropy"}


def test_what_frequencies_reach_as_energies_is_measured_for_electric():
    model = make_model(objective="electric", noise=UNIGRAM)
    batch = make_batch([9, 12], width=12)
    masked = hide(batch)
    known = (COUNTS.double() + 1).log() - (COUNTS.double() + 1).sum().log()
    tally = Tally(known.float())
    with torch.no_grad():
        outcome = model.eval()(batch, masked)
    tally.add(outcome, batch, masked)
    nats = 0.0
    for row, at in masked.is_maskable.nonzero().tolist():
        token = outcome.answer.corrupted.input_ids[row, at]
        share = masked.is_used[row].sum() / masked.is_maskable[row].sum()
        odds = share * COUNTS[token] / COUNTS.sum() / known[token].exp()  # k q / (n exp(-E))
        is_noise = bool(outcome.answer.corrupted.is_replaced[row, at])
        nats -= math.log(odds / (1 + odds) if is_noise else 1 / (1 + odds))
    found = tally.metrics(model.predictions)["frequency_disc_loss"]
    assert found == pytest.approx(nats / int(masked.is_maskable.sum()), rel=1e-4)


def test_energies_start_at_the_uniform_distribution():
    model = make_model(objective="electric", noise=UNIGRAM)
    assert float(model.rtd_head.classifier.bias.detach()) == pytest.approx(math.log(40))
