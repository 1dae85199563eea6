"""Runs of fine-tuning one after the other, or several at a time in processes of their own."""

import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import torch

from amber.downstream.results import EpochRecord, SeedRun
from amber.downstream.seed import Assignment, Workload, run_seed
from amber.downstream.training import TrainingStep
from amber.errors import RunError, UserError, full_disk, is_out_of_memory
from amber.model.config import EncoderConfig
from amber.run.device import Process

SECONDS_BETWEEN_LOOKS: Final = 0.5
BYTES_PER_PROCESS: Final = 700e6
"""Of Python and torch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What a run says while it goes."""

    kind: Literal["step", "epoch", "run", "user_error", "run_error", "crash"]
    assignment: int
    step: TrainingStep | None = None
    epoch: EpochRecord | None = None
    run: SeedRun | None = None
    text: str = ""


Tell = Callable[[Message], None]


def run_all(
    work: Workload,
    assignments: Sequence[Assignment],
    process: Process,
    *,
    jobs: int,
    tell: Tell,
    is_stopped: Callable[[], bool],
) -> None:
    """Do all runs, and tell what happens; after a stop the unfinished ones are left out.

    Args:
        work: what they have in common.
        assignments: one per run.
        process: device and precision; of several GPUs each process takes one.
        jobs: processes at a time; 1 = in this one.
        tell: told what happens, always in this process.
        is_stopped: asked often.

    Raises:
        UserError: something that the user can mend.
        RunError: a run could not go on.
    """
    if jobs == 1:
        before = torch.get_num_threads()
        torch.set_num_threads(work.num_threads)
        try:
            for number, assignment in enumerate(assignments):
                if is_stopped():
                    return
                do_one(work, number, assignment, process, tell, is_stopped)
        finally:
            torch.set_num_threads(before)
        return
    context = multiprocessing.get_context("spawn")
    todo, told, stop = context.Queue(), context.Queue(), context.Event()
    for numbered in enumerate(assignments):
        todo.put(numbered)
    for _ in range(jobs):
        todo.put(None)
    workers = [
        context.Process(
            target=work_through,
            args=(work, on_gpu(process, number), todo, told, stop),
            daemon=True,
        )
        for number in range(jobs)
    ]
    try:
        start_all(workers)
        listen(workers, told, stop, tell, is_stopped)
    finally:
        todo.cancel_join_thread()
        for worker in workers:
            if worker.pid is not None:
                worker.terminate()
                worker.join()


def start_all(workers: Sequence[Any]) -> None:
    """Start processes that do not hear Ctrl-C, which a terminal sends to all of them.

    They are born with the signal ignored; the first process hears it and tells them to stop.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for worker in workers:
            worker.start()
    finally:
        signal.signal(signal.SIGINT, before)


def listen(
    workers: Sequence[Any],
    told: Any,
    stop: Any,
    tell: Tell,
    is_stopped: Callable[[], bool],
) -> None:
    """Pass on what the processes say until all have ended.

    Raises:
        UserError: as a process raised it.
        RunError: as a process raised it, or one died.
    """
    while True:
        is_over = not any(worker.is_alive() for worker in workers)
        if is_stopped():
            stop.set()
        try:
            message: Message = told.get(timeout=0.01 if is_over else SECONDS_BETWEEN_LOOKS)
        except queue.Empty:
            dead = [w.exitcode for w in workers if w.exitcode not in (None, 0)]
            if dead and not is_stopped():
                raise RunError(
                    f"a process ended with the code {dead[0]}: was it killed for its memory? try "
                    "--jobs 1, or a smaller recipe.micro_size"
                ) from None
            if is_over:
                return
            continue
        if message.kind == "user_error":
            raise UserError(message.text)
        if message.kind in ("run_error", "crash"):
            raise RunError(message.text)
        tell(message)


def work_through(work: Workload, process: Process, todo: Any, told: Any, stop: Any) -> None:
    """Do runs until there is none left: the whole life of a process.

    It ends, too, when the first process is gone: nobody would hear of the runs.
    """
    torch.set_num_threads(work.num_threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def is_stopped() -> bool:
        return stop.is_set() or not parent.is_alive()

    if process.device.type == "cuda":
        torch.cuda.set_device(process.device)
    while not is_stopped():
        numbered = todo.get()
        if numbered is None:
            return
        number, assignment = numbered
        try:
            do_one(work, number, assignment, process, told.put, is_stopped)
        except UserError as error:
            told.put(Message(kind="user_error", assignment=number, text=str(error)))
        except RunError as error:
            told.put(Message(kind="run_error", assignment=number, text=str(error)))
        except Exception as error:  # whatever it is, the first process must hear of it
            if (text := full_disk(error)) is not None:
                told.put(Message(kind="run_error", assignment=number, text=text))
                continue
            text = traceback.format_exc()
            if is_out_of_memory(error):
                text = "out of memory: lower recipe.micro_size, or take fewer --jobs"
            text = f"seed {assignment.seed}: {text}"
            told.put(Message(kind="crash", assignment=number, text=text))


def do_one(
    work: Workload,
    number: int,
    assignment: Assignment,
    process: Process,
    tell: Tell,
    is_stopped: Callable[[], bool],
) -> None:
    """Do one run and tell of it.

    Raises:
        RunError: with the seed.
    """
    try:
        run = run_seed(
            work,
            assignment,
            process,
            on_step=lambda step: tell(Message(kind="step", assignment=number, step=step)),
            on_epoch=lambda epoch: tell(Message(kind="epoch", assignment=number, epoch=epoch)),
            is_stopped=is_stopped,
        )
    except RunError as error:
        raise RunError(f"seed {assignment.seed}: {error}") from error
    if run is not None:
        tell(Message(kind="run", assignment=number, run=run))


def on_gpu(process: Process, number: int) -> Process:
    """Give each process a GPU of its own, as far as there are enough; CPUs are shared."""
    if process.device.type != "cuda":
        return process
    index = number % max(1, torch.cuda.device_count())
    return replace(process, device=torch.device("cuda", index))


def choose_jobs(
    wanted: int, num_runs: int, *, num_threads: int, device: torch.device, bytes_per_run: float
) -> int:
    """Say how many processes to use.

    Args:
        wanted: the setting; 0 = as many as fit.
        num_runs: that are still to be done.
        num_threads: of each process.
        device: on a GPU, one process for each.
        bytes_per_run: from `memory_needed`.
    """
    most = max(1, num_runs)
    if wanted:
        return min(wanted, most)
    if device.type == "cuda":
        return min(most, max(1, torch.cuda.device_count()))
    by_memory = int(0.8 * available_memory() // (bytes_per_run + BYTES_PER_PROCESS))
    return max(1, min(most, num_cores() // num_threads, by_memory))


def num_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> float:
    """Return the bytes that programs may still take; a large number where that is not known."""
    free = float("inf")
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = float(line.split()[1]) * 1024
    with suppress(OSError, ValueError):  # the limit of a container
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        used = float(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
        free = min(free, limit - used)
    return free


def memory_needed(shape: EncoderConfig, *, num_rows: int, length: int) -> float:
    """Estimate the bytes of one training: weights with AdamW's state, and activations.

    Args:
        shape: of the encoder.
        num_rows: sequences per forward pass.
        length: of the longest of them, in tokens.
    """
    width, layers = shape.hidden_size, shape.num_hidden_layers
    weights = shape.vocab_size * (shape.embedding_size or width)
    weights += layers * (4 * width**2 + 3 * width * shape.intermediate_size)
    tokens = num_rows * length
    per_token = 12 * width + 4 * shape.intermediate_size
    scores = 3 * shape.num_attention_heads * length
    return 16.0 * weights + 4.0 * layers * tokens * (per_token + scores)
