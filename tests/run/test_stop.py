"""The first signal asks, the second one stops; afterwards all is as before."""

import os
import signal

import pytest
import torch

from amber.run.device import Process, has_fast_bf16, open_process
from amber.run.stop import listen_for_stop

ALONE = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_becomes_a_request(number: signal.Signals):
    with listen_for_stop() as request:
        assert not request.is_agreed(ALONE)
        os.kill(os.getpid(), number)
        assert request.is_agreed(ALONE)
        assert request.signal_number == number


def test_a_second_ctrl_c_stops_at_once():
    with listen_for_stop():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_the_old_handlers_come_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with listen_for_stop():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_one_process_needs_no_others():
    tensor = torch.tensor([3.0])
    assert ALONE.sum(tensor) is tensor
    assert ALONE.gather("a") == ["a"]
    assert ALONE.longest(2.5) == 2.5
    assert ALONE.is_first
    ALONE.wait()


def test_the_precision_is_what_was_asked_for_or_what_the_chip_has():
    found = {}
    for precision in ("float32", "bf16", "auto"):
        with open_process("cpu", precision) as process, process.autocast():
            found[precision] = process.dtype
            product = torch.ones(2, 2) @ torch.ones(2, 2)
            assert product.dtype == process.dtype
    assert found["float32"] == torch.float32
    assert found["bf16"] == torch.bfloat16
    is_fast = has_fast_bf16(torch.device("cpu"))
    assert found["auto"] == (torch.bfloat16 if is_fast else torch.float32)
