"""What several runs say together, by hand."""

import pytest

from amber.downstream.statistics import median_index, spread


def test_one_failed_run_moves_the_mean_and_not_the_median():
    scores = [50.9, 88.0, 88.4, 88.1, 87.9]
    found = spread(scores)
    assert found.num_runs == 5
    assert found.median == 88.0
    assert (found.min, found.max) == (50.9, 88.4)
    assert found.mean == pytest.approx(80.66)
    squares = 29.76**2 + 7.34**2 + 7.74**2 + 7.44**2 + 7.24**2
    assert found.standard_deviation == pytest.approx((squares / 4) ** 0.5)
    assert median_index(scores) == 1


def test_one_run_has_no_deviation():
    found = spread([0.5])
    assert (found.median, found.min, found.max) == (0.5, 0.5, 0.5)
    assert found.standard_deviation is None


def test_of_two_runs_in_the_middle_the_worse_one_is_the_median_run():
    scores = [0.9, 0.6, 0.8, 0.7]
    assert spread(scores).median == pytest.approx(0.75)
    assert median_index(scores) == 3
    assert median_index(scores, lower_is_better=True) == 2


def test_no_runs_have_no_median():
    with pytest.raises(ValueError, match="no runs"):
        spread([])
    with pytest.raises(ValueError, match="no runs"):
        median_index([])
