"""The order of an epoch is a permutation that looks random."""

import numpy as np
import pytest

from amber.data.order import shuffled


def order(count: int, *, epoch: int = 0, seed: int = 0) -> list[int]:
    """The whole order of one epoch."""
    places = np.arange(count, dtype=np.int64)
    return shuffled(places, np.full_like(places, epoch), count=count, seed=seed).tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 1000, 4097])
def test_every_example_has_one_place(count: int):
    for epoch in (0, 1, 7):
        assert sorted(order(count, epoch=epoch)) == list(range(count))


def test_epochs_and_seeds_have_their_own_order():
    orders = [order(1000), order(1000, epoch=1), order(1000, seed=1), order(1000, epoch=1, seed=1)]
    for i, left in enumerate(orders):
        for right in orders[:i]:
            # Two random orders agree at one place on average.
            assert sum(a == b for a, b in zip(left, right, strict=True)) < 10


def test_places_of_several_epochs_can_be_asked_for_at_once():
    places = np.array([3, 3, 0], dtype=np.int64)
    epochs = np.array([0, 1, 1], dtype=np.int64)
    found = shuffled(places, epochs, count=20, seed=4).tolist()
    assert found == [order(20, seed=4)[3], *(order(20, epoch=1, seed=4)[i] for i in (3, 0))]


@pytest.mark.parametrize("count", [5, 11])
def test_every_example_is_equally_likely_at_every_place(count: int):
    epochs = np.repeat(np.arange(2000, dtype=np.int64), count)
    places = np.tile(np.arange(count, dtype=np.int64), 2000)
    found = shuffled(places, epochs, count=count, seed=0)
    table = np.zeros((count, count))
    np.add.at(table, (places, found), 1)
    expected = 2000 / count
    chi_square = ((table - expected) ** 2 / expected).sum()
    freedom = (count - 1) ** 2
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


def test_neighbours_in_the_order_are_not_neighbours_in_the_data():
    found = np.array(order(4097))
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 5 / np.sqrt(4097)
    assert abs(np.corrcoef(found, np.arange(4097))[0, 1]) < 5 / np.sqrt(4097)


def test_the_order_never_changes_between_versions():
    assert order(8, epoch=2, seed=7) == [7, 3, 4, 5, 1, 0, 6, 2]
