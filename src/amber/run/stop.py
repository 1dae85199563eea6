"""Ctrl-C and SIGTERM: finish the step, save, and stop; a second one stops at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch

from amber.run.device import Process


class StopRequest:
    """Whether somebody asked the run to stop, and with which signal."""

    def __init__(self) -> None:
        """Nobody has, yet."""
        self.signal_number = 0

    def is_agreed(self, process: Process) -> bool:
        """Whether any process was asked to stop: then all stop at the same step."""
        asked = torch.tensor([float(self.signal_number > 0)], device=process.device)
        return bool(process.sum(asked).item() > 0)


@contextmanager
def listen_for_stop() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; put the old handlers back at the end."""
    request = StopRequest()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        request.signal_number = number
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    for number in signals:
        signal.signal(number, ask)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
