"""A small prepared corpus, and a run small enough for a test."""

import random
from pathlib import Path

import pytest

from amber.data.config import BatchConfig
from amber.electra.config import GeneratorConfig
from amber.model.config import EncoderConfig
from amber.optim.config import OptimConfig
from amber.run.config import (
    BudgetConfig,
    CheckpointConfig,
    EvaluationConfig,
    LogConfig,
    PretrainConfig,
)
from amber.tokens.config import PrepareConfig
from amber.tokens.prepare import prepare


def made_up_text(num_documents: int, seed: int) -> str:
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(300)]
    documents = [
        " ".join(rng.choices(words, k=rng.randint(5, 120))) + "." for _ in range(num_documents)
    ]
    return "\n\n".join(documents) + "\n"


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text(made_up_text(80, seed=1))
    out = folder / "data"
    prepare(
        PrepareConfig(
            text=(str(folder / "text.txt"),),
            out=out,
            vocab_size=300,
            held_out_fraction=0.1,
            num_workers=1,
        )
    )
    return out


@pytest.fixture
def tiny_run(data_dir: Path, tmp_path: Path) -> PretrainConfig:
    return PretrainConfig(
        data=data_dir,
        out=tmp_path / "run",
        precision="float32",
        model=EncoderConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            embedding_size=16,
            max_position_embeddings=64,
            hidden_dropout=0.1,
            attention_dropout=0.1,
        ),
        generator=GeneratorConfig(depth_fraction=0.5),
        batch=BatchConfig(size=8, micro_size=3, length=32),
        optim=OptimConfig(learning_rate=1e-3, warmup_fraction=0.1),
        budget=BudgetConfig(steps=20),
        evaluation=EvaluationConfig(every_steps=8, examples=16, batch_size=4),
        checkpoint=CheckpointConfig(every_steps=10, keep=9),
        log=LogConfig(every_steps=1),
    )
