import torch

from amber.cost.peak import measured_peak


def test_the_peak_is_the_best_of_the_timed_products():
    # Clock readings: the end is set at 0 + 10; products take 4 s, 2 s and 5 s.
    times = iter([0.0, 0.0, 4.0, 4.0, 6.0, 6.0, 11.0])
    peak = measured_peak(
        torch.device("cpu"), torch.float32, seconds=10.0, size=8, clock=lambda: next(times)
    )
    assert peak == 2 * 8**3 / 2.0
