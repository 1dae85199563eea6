"""What a device can do: the yardstick for how much of it a run uses (MFU)."""

import time
from collections.abc import Callable

import torch


def measured_peak(
    device: torch.device,
    dtype: torch.dtype,
    *,
    seconds: float = 0.5,
    size: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Time large square matrix products on the device; return the best operations a second.

    What products reach, not what the data sheet says: a share of 1 is possible in principle.

    Args:
        device: where.
        dtype: of both matrices.
        seconds: how long to go on, at least one product after a first untimed one.
        size: rows of the matrices; 1024 on a CPU and 8192 elsewhere unless given.
        clock: returns seconds.
    """
    is_cpu = device.type == "cpu"
    size = size or (1024 if is_cpu else 8192)
    num_products = 1 if is_cpu else 10  # between two waits: a wait costs as much as a short product
    left = torch.ones(size, size, device=device, dtype=dtype)
    result = left @ left
    best, end = 0.0, clock() + seconds
    while True:
        if not is_cpu:
            torch.accelerator.synchronize(device)
        begin = clock()
        for _ in range(num_products):
            torch.mm(left, left, out=result)
        if not is_cpu:
            torch.accelerator.synchronize(device)
        now = clock()
        best = max(best, num_products * 2 * size**3 / max(now - begin, 1e-9))
        if now >= end:
            return best
