"""Runs in processes of their own."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

from amber.run.config import PretrainConfig


def without_dropout(config: PretrainConfig) -> PretrainConfig:
    return replace(config, model=replace(config.model, hidden_dropout=0.0, attention_dropout=0.0))


PROGRAM = """
import pickle
import sys
from pathlib import Path

from amber.run.pretrain import pretrain


def show(event):
    print(event.kind, event.step, file=sys.stderr, flush=True)


pretrain(pickle.loads(Path(sys.argv[1]).read_bytes()), show=show)
"""


def run_apart(config: PretrainConfig, *launcher: str, **environment: str) -> str:
    """Train in processes of their own, and return what they printed."""
    folder = config.out.parent
    (folder / "program.py").write_text(PROGRAM)
    (folder / "config.pickle").write_bytes(pickle.dumps(config))
    done = subprocess.run(
        [sys.executable, *launcher, str(folder / "program.py"), str(folder / "config.pickle")],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
