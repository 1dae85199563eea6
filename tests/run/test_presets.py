"""Every shipped preset trains: two steps, then a folder that is whole."""

from pathlib import Path
from typing import get_args

import pytest

from amber.cli.settings import resolve
from amber.run.config import Preset, PretrainConfig
from amber.run.pretrain import pretrain


@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name != "tiny" else [])
        for name in get_args(Preset)
    ],
)
def test_a_preset_takes_two_steps(preset: str, data_dir: Path, tmp_path: Path):
    given = {
        "data": str(data_dir),
        "out": str(tmp_path / "run"),
        "preset": preset,
        "batch": {"size": 2, "length": 32},
        "budget": {"steps": 2},
        "optim": {"warmup_steps": 1},
        "evaluation": {"examples": 2, "batch_size": 2},
        "checkpoint": {"keep": 1},
        "precision": "float32",
    }
    config = resolve(PretrainConfig, given, config_path=None)
    summary = pretrain(config, show=lambda event: None)
    assert summary.is_done
    assert summary.steps == 2
    assert (tmp_path / "run" / "discriminator" / "model.safetensors").is_file()
