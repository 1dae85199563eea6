"""Each metric against scikit-learn, and one case by hand."""

import math
import pickle

import numpy as np
import pytest
import torch
from pairs import hide, make_batch, make_model
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from amber.data.batch import Batch
from amber.electra.mask import Masked
from amber.electra.metrics import Tally, auc
from amber.electra.pretraining import Detection, Outcome


def by_hand() -> tuple[Outcome, Batch, Masked]:
    """Two rows of 4 and 3 real tokens; 3 chosen positions; a vocabulary of 3."""
    ids = torch.tensor([[0, 1, 2, 0], [0, 1, 0, 0]])
    batch = Batch(
        input_ids=ids,
        attention_mask=torch.tensor([[True] * 4, [True] * 3 + [False]]),
        token_type_ids=torch.zeros_like(ids),
        noise=torch.zeros(4, 2, 4),
        examples=torch.arange(2),
    )
    masked = Masked(
        input_ids=ids,
        positions=torch.tensor([[1, 2], [1, 0]]),
        is_used=torch.tensor([[True, True], [True, False]]),
    )
    half = [math.log(p) for p in (0.25, 0.5, 0.25)]  # guesses 1; entropy 1.5 ln 2
    logits = torch.tensor([[half, half], [half, [1.0, 0.0, 0.0]]])
    corrupted = torch.tensor([[0, 1, 1, 0], [0, 2, 0, 0]])
    detection = Detection(
        loss=torch.tensor(3.5),
        corrupted=corrupted,
        is_replaced=corrupted != ids,
        logits=torch.tensor([[-1.0, 0.5, 2.0, -2.0], [-3.0, -0.5, -4.0, 9.0]]),
    )
    return Outcome(torch.tensor(2.4), logits, detection), batch, masked


def random_outcome(seed: int) -> tuple[Outcome, Batch, Masked]:
    """Labels and scores without any meaning; scores with ties."""
    rng = torch.Generator().manual_seed(seed)
    batch = make_batch([40, 64, 0, 9], width=64, seed=seed)
    masked = hide(batch)
    replaced = (torch.rand(4, 64, generator=rng) < 0.3) & batch.attention_mask
    scores = (torch.randn(4, 64, generator=rng) + replaced).mul(4).round() / 4
    logits = torch.randn(*masked.positions.shape, 40, generator=rng)
    detection = Detection(torch.tensor(1.0), batch.input_ids + replaced, replaced, scores)
    return Outcome(torch.tensor(1.0), logits, detection), batch, masked


def tally(*outcomes: tuple[Outcome, Batch, Masked]) -> Tally:
    """Count batches."""
    result = Tally()
    for outcome in outcomes:
        result.add(*outcome)
    return result


def test_all_metrics_of_a_small_case_by_hand():
    found = tally(by_hand()).metrics()
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
    found = tally(*outcomes).metrics()
    pairs = [(o.rtd, b.attention_mask) for o, b, _ in outcomes]
    labels = np.concatenate([rtd.is_replaced[real].numpy() for rtd, real in pairs if rtd])
    scores = np.concatenate([rtd.logits[real].numpy() for rtd, real in pairs if rtd])
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
    assert left.metrics() == pytest.approx(tally(*outcomes).metrics(), rel=1e-12)
    nothing = Tally()
    nothing.merge(left)
    assert nothing.metrics() == left.metrics()


def test_ratios_are_over_all_batches_not_means_of_ratios():
    one, other = by_hand(), random_outcome(0)
    found = tally(one, other).metrics()
    num_tokens = 7 + int(other[1].attention_mask.sum())
    assert found["disc_loss"] == pytest.approx((3.5 + 1.0) / num_tokens)


def test_nothing_replaced_and_nothing_said_gives_numbers():
    outcome, batch, masked = by_hand()
    assert outcome.rtd
    quiet = outcome.rtd._replace(
        is_replaced=torch.zeros(2, 4, dtype=torch.bool), logits=torch.full((2, 4), -1.0)
    )
    found = tally((outcome._replace(rtd=quiet), batch, masked)).metrics()
    assert (found["disc_precision"], found["disc_recall"], found["disc_auc"]) == (0.0, 0.0, 0.5)
    assert found["disc_accuracy"] == found["majority_accuracy"] == 1.0


def test_the_metrics_of_a_real_forward_pass_agree_with_its_losses(body: str):
    model, batch = make_model(body), make_batch([40, 64, 9], width=64)
    masked = hide(batch)
    outcome = model(batch, masked)
    found = tally((outcome, batch, masked)).metrics()
    num_masked, num_tokens = int(masked.is_used.sum()), int(batch.attention_mask.sum())
    assert found["masked_lm_loss"] == pytest.approx(float(outcome.mlm_loss.detach()) / num_masked)
    assert found["disc_loss"] == pytest.approx(float(outcome.rtd.loss.detach()) / num_tokens)
    assert found["replaced_fraction"] <= num_masked / num_tokens
    assert found["sampled_masked_lm_accuracy"] == pytest.approx(
        1 - found["replaced_fraction"] * num_tokens / num_masked
    )


def test_the_mlm_objective_has_no_discriminator_metrics(body: str):
    model, batch = make_model(body, objective="mlm"), make_batch([40, 64], width=64)
    masked = hide(batch)
    found = tally((model(batch, masked), batch, masked)).metrics()
    assert set(found) == {"masked_lm_loss", "masked_lm_accuracy", "generator_entropy"}
