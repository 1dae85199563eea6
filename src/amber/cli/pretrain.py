"""`amber pretrain`: train, show how it goes, and say what came out."""

import signal
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from amber.cli.method import baseline_words, detector, proposer
from amber.cli.output import duration, open_console, plain_table, print_json, short_number
from amber.cli.progress import Progress
from amber.run.config import PretrainConfig
from amber.run.held_out import baselines
from amber.run.pretrain import pretrain
from amber.run.results import Summary, auto_class
from amber.run.setup import token_counts

ROWS = (
    ("masked_lm_loss", "{proposer} loss, nats", ".3f"),
    ("masked_lm_accuracy", "{proposer} accuracy", ".1%"),
    ("generator_reward", "reward, nats", ".3f"),
    ("encoder_lm_loss", "naming loss, nats", ".3f"),
    ("encoder_lm_accuracy", "named right", ".1%"),
    ("disc_loss", "{detector} loss, nats", ".4f"),
    ("disc_auc", "{detector} AUC", ".3f"),
    ("disc_accuracy", "{detector} accuracy", ".1%"),
    ("replaced_fraction", "replaced", ".1%"),
    ("label_conflict_fraction", "label conflicts", ".1%"),
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
    counts = token_counts(config.data).numpy()
    without = baselines(summary.after, counts, summary.unigram_entropy)
    parts = (summary.before, summary.after, without)
    names = {
        "proposer": proposer(config.objective, config.noise.source),
        "detector": detector(config.objective),
    }
    rows = [
        [label.format(**names), *(f"{part[name]:{form}}" if name in part else "" for part in parts)]
        for name, label, form in ROWS
        if name in summary.after
    ]
    console.print(plain_table(("held-out", "before", "after", "baseline"), rows))
    words = baseline_words(config.objective, summary.after, unigram_entropy=summary.unigram_entropy)
    console.print(f"\n{words}\n", markup=False, soft_wrap=True)
    for folder in summary.models:
        remark = " (transformers has no class for it)" if Path(folder).name == "towers" else ""
        console.print(f"model: {folder}{remark}", markup=False, soft_wrap=True)
    console.print()
    for line in loading_lines(summary.models[-1], config):
        console.print(line, markup=False, soft_wrap=True)


def loading_lines(folder: str, config: PretrainConfig) -> list[str]:
    """Return the lines of Python that load a model folder with transformers."""
    name = auto_class(Path(folder).name, config.objective, config.model.body)
    remarks = {
        "electric": "# transformers has no class for energies: this one gives them as its scores",
        "all_tokens_mlm": "# transformers has no copy gate: this one gives the scores without it",
    }
    return [
        *[line for objective, line in remarks.items() if objective == config.objective],
        f"from transformers import AutoTokenizer, {name}",
        f'tokenizer = AutoTokenizer.from_pretrained("{folder}")',
        f'model = {name}.from_pretrained("{folder}")',
    ]
