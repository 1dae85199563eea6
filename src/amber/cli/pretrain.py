"""`amber pretrain`: train, show how it goes, and say what came out."""

import signal
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from amber.cli.output import duration, open_console, plain_table, print_json, short_number
from amber.cli.progress import Progress
from amber.run.config import PretrainConfig
from amber.run.pretrain import pretrain
from amber.run.results import Summary

ROWS = (
    ("masked_lm_loss", "MLM loss, nats", ".3f"),
    ("masked_lm_accuracy", "MLM accuracy", ".1%"),
    ("disc_loss", "RTD loss, nats", ".4f"),
    ("disc_auc", "RTD AUC", ".3f"),
    ("disc_accuracy", "RTD accuracy", ".1%"),
    ("majority_accuracy", 'always "original"', ".1%"),
    ("replaced_fraction", "replaced", ".1%"),
)
"""Metric, its name in the closing table, how it is written."""


def run(config: PretrainConfig, *, is_json: bool) -> int:
    """Train; return 0, or 128 and the signal's number when the run was stopped."""
    console = open_console(is_json=is_json)
    with Progress(console, config) as progress:
        summary = pretrain(config, show=progress.show)
    if is_json:
        print_json(asdict(summary))
    show_summary(summary, config, console)
    if summary.is_done:
        return 0
    return 128 + (summary.signal_number or signal.SIGINT)


def show_summary(summary: Summary, config: PretrainConfig, console: Console) -> None:
    """Print how the run went, where the models are and how to load them."""
    took = (
        f"{summary.steps:,} steps, {short_number(summary.tokens)} tokens, "
        f"{summary.flops:.3g} FLOPs, {duration(summary.seconds)}"
    )
    if not summary.is_done:
        console.print(f"\nstopped and saved after {took}", markup=False, soft_wrap=True)
        console.print(f"to go on: amber pretrain --out {summary.out} --resume", soft_wrap=True)
        return
    console.print(f"\ndone: {took}\n", markup=False, soft_wrap=True)
    rows = [
        [label, *(f"{part[name]:{form}}" for part in (summary.before, summary.after))]
        for name, label, form in ROWS
        if name in summary.before and name in summary.after
    ]
    console.print(plain_table(("held-out", "before", "after"), rows))
    console.print(
        f"\nknowing only how frequent each token is gives an MLM loss of "
        f"{summary.unigram_entropy:.3f} nats\n",
        soft_wrap=True,
    )
    for folder in summary.models:
        console.print(f"model: {folder}", markup=False, soft_wrap=True)
    console.print()
    for line in loading_lines(summary.models[-1], config):
        console.print(line, markup=False, soft_wrap=True)


def loading_lines(folder: str, config: PretrainConfig) -> list[str]:
    """Return the lines of Python that load a model folder with transformers."""
    name = "AutoModelForMaskedLM"
    if Path(folder).name == "discriminator":
        is_bert = config.model.body == "bert"
        name = "AutoModelForPreTraining" if is_bert else "AutoModelForTokenClassification"
    return [
        f"from transformers import AutoTokenizer, {name}",
        f'tokenizer = AutoTokenizer.from_pretrained("{folder}")',
        f'model = {name}.from_pretrained("{folder}")',
    ]
