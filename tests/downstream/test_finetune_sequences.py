"""Batches of an epoch: every example once, of near-equal length, the same for the same seed."""

import numpy as np
import pytest
import torch

from amber.downstream.sequences import (
    collate,
    epoch_batches,
    join_sequences,
    micro_parts,
    sorted_batches,
)

LENGTHS = np.random.default_rng(0).integers(3, 60, 1003)


def epoch(**changes) -> list[np.ndarray]:
    return epoch_batches(LENGTHS, **{"batch_size": 16, "seed": 0, "epoch": 0} | changes)


def test_an_epoch_holds_each_example_once_in_full_batches():
    batches = epoch()
    assert sorted(np.concatenate(batches).tolist()) == list(range(1003))
    sizes = [len(batch) for batch in batches]
    assert sorted(sizes)[0] == 1003 % 16
    assert sorted(sizes)[1:] == [16] * (1003 // 16)


def test_batches_are_of_near_equal_length_in_no_order_of_length():
    batches = epoch()
    places = sum(len(batch) * LENGTHS[batch].max() for batch in batches)
    assert LENGTHS.sum() / places > 0.9
    plain = [np.arange(i, min(i + 16, 1003)) for i in range(0, 1003, 16)]
    assert LENGTHS.sum() / sum(len(b) * LENGTHS[b].max() for b in plain) < 0.6
    longest = np.array([LENGTHS[batch].max() for batch in batches])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_seed_and_epoch_decide_the_batches():
    def listed(batches):
        return [batch.tolist() for batch in batches]

    assert listed(epoch()) == listed(epoch())
    assert listed(epoch()) != listed(epoch(epoch=1))
    assert listed(epoch()) != listed(epoch(seed=1))


def test_a_batch_is_padded_to_its_longest_sequence():
    sequences = join_sequences(
        [np.array([2, 7, 3]), np.array([2, 8, 9, 9, 3]), np.array([2, 3])],
        [np.array([0, 0, 0]), np.array([0, 0, 0, 1, 1]), np.array([0, 0])],
        np.array([1, 0, 1]),
    )
    batch = collate(sequences, np.array([2, 1]), pad_id=6)
    assert batch.input_ids.tolist() == [[2, 3, 6, 6, 6], [2, 8, 9, 9, 3]]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[True, True, False, False, False], [True] * 5]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0] * 5, [0, 0, 0, 1, 1]]
    assert batch.labels.tolist() == [1, 0]
    assert batch.num_labels == 2


def test_a_batch_without_padding_has_no_mask_and_one_without_segments_no_segments():
    sequences = join_sequences(
        [np.array([2, 7, 3]), np.array([2, 8, 3])], [np.zeros(3, int)] * 2, np.array([0, 1])
    )
    batch = collate(sequences, np.array([0, 1]), pad_id=0)
    assert batch.attention_mask is None
    assert batch.token_type_ids is None


def test_labels_of_words_are_padded_with_what_counts_in_no_loss():
    sequences = join_sequences(
        [np.array([2, 7, 3]), np.array([2, 8, 9, 3])],
        [np.zeros(3, int), np.zeros(4, int)],
        np.array([-100, 4, -100, -100, 5, 6, -100]),
    )
    batch = collate(sequences, np.array([0, 1]), pad_id=0)
    assert batch.labels.tolist() == [[-100, 4, -100, -100], [-100, 5, 6, -100]]
    assert batch.num_labels == 3


def test_labels_of_several_classes_all_count():
    sequences = join_sequences(
        [np.array([2, 7, 3])] * 2, [np.zeros(3, int)] * 2, np.zeros((2, 3), np.float32)
    )
    batch = collate(sequences, np.array([0, 1]), pad_id=0)
    assert batch.labels.dtype == torch.float32
    assert batch.num_labels == 6


@pytest.mark.parametrize("num_tokens", [1, 100, 10_000])
def test_batches_to_predict_hold_each_example_once_and_not_too_many_tokens(num_tokens: int):
    batches = list(sorted_batches(LENGTHS, num_tokens=num_tokens))
    assert sorted(np.concatenate(batches).tolist()) == list(range(1003))
    assert all(len(b) == 1 or len(b) * LENGTHS[b].max() <= num_tokens for b in batches)


def test_micro_batches_are_the_batch_in_parts():
    rows = np.arange(7)
    assert [part.tolist() for part in micro_parts(rows, micro_size=0)] == [list(range(7))]
    assert [part.tolist() for part in micro_parts(rows, micro_size=3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6],
    ]
