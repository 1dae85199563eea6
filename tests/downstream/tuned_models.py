"""Tiny fine-tuned folders whose weights are random, made in no time."""

from pathlib import Path

import torch

from amber.model.task_folder import open_for_task, save_task_model

LABELS = {
    "classification": ("negative", "neutral", "positive"),
    "multilabel": ("red", "round"),
    "regression": (),
    "tagging": ("O", "B-PER", "I-PER"),
    "qa": (),
}
READ = {
    "tagging": {"length": 16, "stride": 8},
    "qa": {"length": 24, "stride": 8, "max_question": 6, "max_answer": 5},
}


def tune(folder: Path, model: Path, kind: str, *, labels=None, head="hugging_face", **details):
    """Put a head on a model, and random weights in both."""
    opened = open_for_task(
        model,
        kind=kind,  # type: ignore[arg-type]
        labels=LABELS[kind] if labels is None else labels,
        head=head,
        seed=3,
    )
    rng = torch.Generator().manual_seed(7)  # under which the predictions differ
    with torch.no_grad():
        for weight in opened.model.parameters():
            if weight.ndim == 2:
                weight.copy_(torch.randn(weight.shape, generator=rng) / weight.shape[1] ** 0.5)
    told = {"task": "own", "own": {"kind": kind}, "length": 16, **READ.get(kind, {}), **details}
    save_task_model(folder, opened.model, tokenizer_dir=model, card="# tiny\n", details=told)
    return folder
