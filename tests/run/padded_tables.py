"""A finished run with token tables longer than its tokenizer, as models padded to a multiple."""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

TABLE, BIAS = "model.embeddings.tok_embeddings.weight", "decoder.bias"


def pad_tables(run: Path, out: Path, *, num_more: int) -> None:
    """Copy a run of the modern body; the generator would choose the new rows nearly always."""
    shutil.copytree(run, out, dirs_exist_ok=True)
    for name in ("discriminator", "generator"):
        weights = load_file(out / name / "model.safetensors")
        width = weights[TABLE].shape[1]
        weights[TABLE] = torch.cat([weights[TABLE], torch.zeros(num_more, width)])
        if BIAS in weights:
            weights[BIAS] = torch.cat([weights[BIAS], torch.full((num_more,), 20.0)])
        save_file(weights, out / name / "model.safetensors", metadata={"format": "pt"})
        path = out / name / "config.json"
        settings = json.loads(path.read_text())
        path.write_text(json.dumps(settings | {"vocab_size": settings["vocab_size"] + num_more}))
