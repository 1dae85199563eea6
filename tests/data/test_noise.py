"""The numbers are uniform, independent, and for ever the same."""

import numpy as np
import pytest

from amber.data import noise
from amber.data.noise import dropout_seed, uniforms

STREAMS = (
    noise.ORDER,
    noise.CHOOSE,
    noise.TREAT,
    noise.RANDOM_TOKEN,
    noise.SAMPLE,
    noise.PAIR_DOCUMENT,
    noise.PAIR_CUT,
    noise.DROPOUT,
)
BITS = 2**64 - 1


def grid(seed: int = 0, stream: int = noise.CHOOSE, epoch: int = 0) -> np.ndarray:
    """256 examples of 256 positions."""
    examples = np.arange(256, dtype=np.int64)
    return uniforms(seed, stream, np.full_like(examples, epoch), examples, 256)


def mix_of_integers(value: int) -> int:
    """SplitMix64 in Python's unbounded integers."""
    value = (value + 0x9E3779B97F4A7C15) & BITS
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & BITS
    return value ^ (value >> 31)


def test_the_mixing_function_gives_the_published_sequence_of_splitmix64():
    # The first outputs of the reference program for the seed 1234567.
    state = np.array([1234567], dtype=np.uint64)
    found = [
        int(noise.mix(state + np.array([i], dtype=np.uint64) * noise.GOLDEN)[0]) for i in range(3)
    ]
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_a_number_equals_one_computed_with_plain_integers(seed: int):
    epoch, example, position = 3, 70_000, 5
    stream = mix_of_integers((mix_of_integers(seed) + noise.SAMPLE) & BITS)
    key = mix_of_integers((stream + mix_of_integers(epoch)) & BITS)
    key = mix_of_integers((key + example * 0x9E3779B97F4A7C15) & BITS)
    bits = mix_of_integers((key + (position + 1) * 0x9E3779B97F4A7C15) & BITS)
    found = uniforms(seed, noise.SAMPLE, np.array([epoch]), np.array([example]), 8)
    assert found[0, position] == (bits >> 40) / 2**24


def test_the_numbers_never_change_between_versions():
    one = np.array([1], dtype=np.int64)
    found = uniforms(7, noise.CHOOSE, one, 2 * one, 3)
    assert (found * 2**24).astype(int).tolist() == [[4447653, 12957420, 13769558]]
    assert dropout_seed(7, 3, 1) == 7592341442745519161


def test_the_numbers_are_in_the_half_open_unit_interval_and_uniform():
    values = grid()
    assert values.min() >= 0.0
    assert values.max() < 1.0
    # 65,536 numbers: the mean has a deviation of 0.2887 / 256 = 0.0011
    assert abs(values.mean() - 0.5) < 5 * 0.0011
    counts = np.bincount((values.ravel() * 64).astype(int), minlength=64)
    chi_square = ((counts - 1024.0) ** 2 / 1024.0).sum()
    assert abs(chi_square - 63) < 5 * np.sqrt(2 * 63)


def test_all_streams_are_different_and_unrelated():
    assert len(set(STREAMS)) == len(STREAMS)
    table = np.corrcoef(np.stack([grid(stream=stream).ravel() for stream in STREAMS]))
    np.fill_diagonal(table, 0.0)
    assert abs(table).max() < 5 / 256  # deviation of a correlation: 1 / sqrt(65,536)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (grid(), grid(epoch=1)),
        (grid(), grid(seed=1)),
        (grid()[1:], grid()[:-1]),
        (grid()[:, 1:], grid()[:, :-1]),
        (grid()[1:, :-1], grid()[:-1, 1:]),
    ],
    ids=["epochs", "seeds", "examples", "positions", "diagonals"],
)
def test_neighbours_are_unrelated(left: np.ndarray, right: np.ndarray):
    assert abs(np.corrcoef(left.ravel(), right.ravel())[0, 1]) < 5 / 256


def test_the_numbers_do_not_depend_on_the_width_or_on_the_other_rows():
    epochs, examples = np.array([0, 1, 2]), np.array([5, 6, 7])
    wide = uniforms(3, noise.TREAT, epochs, examples, 64)
    narrow = uniforms(3, noise.TREAT, epochs[1:2], examples[1:2], 10)
    assert np.array_equal(wide[1:2, :10], narrow)


def test_dropout_seeds_differ_by_seed_step_and_rank():
    found = {dropout_seed(s, t, r) for s in range(8) for t in range(32) for r in range(8)}
    assert len(found) == 8 * 32 * 8
    assert all(0 <= seed < 2**63 for seed in found)
