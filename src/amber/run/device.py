"""Where a run computes: the device, the precision, and this process's place among others."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from amber.errors import UserError

Value = TypeVar("Value")
Precision = Literal["auto", "float32", "bf16"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One of `num_ranks` processes that train together."""

    rank: int
    num_ranks: int
    device: torch.device
    dtype: torch.dtype
    """Of matrix products: float32 or bfloat16."""

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def autocast(self) -> torch.autocast:
        """Return the context in which the networks run."""
        is_bf16 = self.dtype == torch.bfloat16
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=is_bf16)

    def sum(self, values: Tensor) -> Tensor:
        """Add up a tensor over all processes, in place."""
        if self.num_ranks > 1:
            dist.all_reduce(values)
        return values

    def longest(self, seconds: float) -> float:
        """Return the longest of the processes' times: all count the same budget."""
        return max(self.gather(seconds))

    def gather(self, value: Value) -> list[Value]:
        """Collect one object of each process, in the order of the ranks."""
        if self.num_ranks == 1:
            return [value]
        values = [value] * self.num_ranks
        dist.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.num_ranks > 1:
            dist.barrier()


@contextlib.contextmanager
def open_process(device: Literal["auto", "cpu", "cuda"], precision: Precision) -> Iterator[Process]:
    """Join the processes that torchrun started, if it did, and choose device and precision.

    Args:
        device: auto takes a GPU where there is one.
        precision: auto takes bf16 where the chip has it.

    Raises:
        UserError: a GPU or bf16 is asked for and is not there.
    """
    num_ranks = int(os.environ.get("WORLD_SIZE", "1"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU here: use device cpu or auto")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        _refuse_shared_gpus(local_rank, torch.cuda.device_count())
        torch.cuda.set_device(local_rank)
        place = torch.device("cuda", local_rank)
    else:
        place = torch.device("cpu")
    if precision == "bf16" and device == "cuda" and not torch.cuda.is_bf16_supported():
        raise UserError("precision is bf16, but this GPU has no bfloat16: use float32")
    is_bf16 = precision == "bf16" or (precision == "auto" and has_fast_bf16(place))
    process = Process(
        rank=int(os.environ.get("RANK", "0")),
        num_ranks=num_ranks,
        device=place,
        dtype=torch.bfloat16 if is_bf16 else torch.float32,
    )
    if num_ranks == 1:
        yield process
        return
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=timedelta(minutes=30))
    try:
        yield process
    finally:
        dist.destroy_process_group()


def _refuse_shared_gpus(local_rank: int, num_gpus: int) -> None:
    """Refuse more processes than GPUs on a machine, in each of them: the first one must say it."""
    num_processes = max(int(os.environ.get("LOCAL_WORLD_SIZE", "1")), local_rank + 1)
    if num_processes > num_gpus:
        raise UserError(
            f"{num_processes} processes on this machine, but {num_gpus} GPUs: start as many "
            "processes as there are GPUs, at most"
        )


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the chip multiplies bfloat16 matrices itself."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
