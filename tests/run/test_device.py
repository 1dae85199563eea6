"""The place of a process: what cannot be is refused in every process alike."""

import pytest
import torch

from amber.errors import UserError
from amber.run.device import open_process


@pytest.mark.parametrize("rank", ["0", "2"])
def test_more_processes_than_gpus_are_refused_in_the_first_process_too(monkeypatch, rank):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    for name, value in {"WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "3", "LOCAL_RANK": rank}.items():
        monkeypatch.setenv(name, value)
    process = open_process("cuda", "float32")
    with pytest.raises(UserError, match="3 processes on this machine, but 2 GPUs"), process:
        pass
