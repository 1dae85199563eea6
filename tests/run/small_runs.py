"""A finished run on a few hundred words, made in a second."""

import random
from dataclasses import dataclass
from pathlib import Path

from amber.data.config import BatchConfig
from amber.electra.config import GeneratorConfig, MaskConfig, NoiseConfig, Objective
from amber.model.config import EncoderConfig
from amber.run.config import BudgetConfig, EvaluationConfig, LogConfig, PretrainConfig
from amber.run.pretrain import pretrain
from amber.run.results import Summary
from amber.tokens.config import PrepareConfig
from amber.tokens.prepare import prepare

WORDS = (
    "the a cat dog bird sees hears likes one two small big house tree and or not with under over "
    "\u732b \u72d7 \u6811 \U0001f600"
)


@dataclass(frozen=True)
class SmallRun:
    """Its folders, and what it said at its end."""

    data: Path
    out: Path
    summary: Summary


def write_data(folder: Path, *, seed: int = 0) -> Path:
    """Prepare 60 documents of random words."""
    rng = random.Random(seed)
    documents = [" ".join(rng.choices(WORDS.split(), k=rng.randint(5, 60))) for _ in range(60)]
    text = folder / "text.txt"
    text.write_text("\n\n".join(documents), encoding="utf-8")
    data = folder / "data"
    prepare(
        PrepareConfig(
            text=(str(text),), out=data, vocab_size=120, held_out_fraction=0.3, num_workers=1
        )
    )
    return data


def train_small(folder: Path, *, objective: Objective = "rtd") -> SmallRun:
    """Prepare and pretrain for three steps, with settings that are not the defaults."""
    folder.mkdir()
    data, out = write_data(folder), folder / "run"
    shape = EncoderConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        embedding_size=16,
        max_position_embeddings=130,
    )
    config = PretrainConfig(
        data=data,
        out=out,
        objective=objective,
        device="cpu",
        precision="float32",
        model=shape,
        generator=GeneratorConfig(depth_fraction=0.5 if objective == "rtd" else 1.0),
        noise=NoiseConfig(source="two_tower" if objective == "electric" else "generator"),
        mask=MaskConfig(fraction=0.25)
        if objective == "electric"
        else MaskConfig(fraction=0.25, keep_fraction=0.3, random_fraction=0.3),
        batch=BatchConfig(size=4, length=24, num_workers=0),
        budget=BudgetConfig(steps=3),
        evaluation=EvaluationConfig(examples=11, batch_size=4),
        log=LogConfig(every_steps=1),
    )
    return SmallRun(data, out, pretrain(config, show=lambda event: None))
