"""`amber demo`: prepare, pretrain, evaluate, inspect, fine-tune, on text that is already there."""

import signal
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from amber.cli import evaluate, inspect
from amber.cli.bar import Bar
from amber.cli.demo_parts import (
    SEEDS,
    TRAIN_PER_LIBRARY,
    DemoFolder,
    DemoText,
    evaluate_settings,
    finetune_settings,
    inspect_settings,
    open_demo,
    prepare_settings,
    pretrain_settings,
    write_task,
    write_text,
)
from amber.cli.finetune import Screen
from amber.cli.output import duration, open_console, print_json, short_number
from amber.cli.prepare import Reading
from amber.cli.pretrain import loading_lines
from amber.cli.progress import Progress
from amber.cli.settings import resolve
from amber.cost.parameters import parameter_counts
from amber.downstream.finetune import finetune
from amber.downstream.results import FinetuneResult
from amber.electra.config import generator_shape
from amber.run.commands import DemoConfig
from amber.run.config import PretrainConfig
from amber.run.held_out import HeldOut, evaluate_folder
from amber.run.inspected import Inspection
from amber.run.inspection import inspect_text
from amber.run.pretrain import pretrain
from amber.run.results import Summary
from amber.tokens.prepare import prepare
from amber.tokens.shards import MANIFEST_NAME, Manifest, load_manifest


def run(config: DemoConfig, *, is_json: bool) -> int:
    """Go the whole path; return 0, or 128 and the signal's number when stopped."""
    console = open_console(is_json=is_json)
    folder = open_demo(config)
    try:
        text, manifest = make_data(folder, console)
        settings = resolve(PretrainConfig, pretrain_settings(config, folder), config_path=None)
        heading(console, 2, f"pretrain: {folder.run}")
        console.print(
            f"replacements are drawn at temperature {settings.noise.temperature:g}: so short a run "
            "learns to find odd ones only; a long one uses 1",
            soft_wrap=True,
        )
        with Progress(console, settings) as progress:
            summary = pretrain(settings, show=progress.show)
        if not summary.is_done:
            return stopped(config, console, summary.signal_number or signal.SIGINT)
        heading(console, 3, "evaluate")
        held_out = evaluate_folder(evaluate_settings(folder))
        evaluate.show(held_out, console, before=summary.before)
        heading(console, 4, "inspect: three sentences that are not in the text")
        inspection = inspect_text(inspect_settings(folder))
        inspect.show(inspection, console, has_tables=False)
        heading(console, 5, f"finetune: which library does a sentence document? {folder.task}")
        tuned = classify(folder, console)
        if not all(result.is_done for result in tuned):
            signal_number = next(r.signal_number for r in tuned if not r.is_done)
            return stopped(config, console, signal_number or signal.SIGINT)
    except KeyboardInterrupt:
        return stopped(config, console, signal.SIGINT)
    show_result(text, manifest, summary, settings, tuned, console)
    if is_json:
        parts = as_dictionary(text, manifest, summary, held_out, inspection)
        names = ("pretrained", "from_scratch")
        print_json(parts | {n: asdict(r) for n, r in zip(names, tuned, strict=True)})
    return 0


def make_data(folder: DemoFolder, console: Console) -> tuple[DemoText, Manifest]:
    """Write the text and prepare it, unless that is done."""
    heading(console, 1, f"prepare: {folder.text} -> {folder.data}")
    console.print(
        "text: the language reference of Python, and docstrings of the standard library, numpy "
        "and torch",
        soft_wrap=True,
    )
    with console.status("reading docstrings") if console.is_terminal else nullcontext():
        text = write_text(folder)
    if (folder.data / MANIFEST_NAME).is_file():
        manifest = load_manifest(folder.data)
    else:
        reading = Reading(console)
        with reading.live if console.is_terminal else nullcontext():
            manifest = prepare(prepare_settings(folder), on_progress=reading.note)
    console.print(
        f"{text.num_documents:,} documents, {text.num_characters / 1e6:.1f} million characters: "
        f"{short_number(manifest.train.num_tokens)} tokens to train on, "
        f"{short_number(manifest.held_out.num_tokens)} held out, vocabulary of "
        f"{manifest.vocab_size:,}",
        soft_wrap=True,
    )
    return text, manifest


def classify(folder: DemoFolder, console: Console) -> list[FinetuneResult]:
    """Fine-tune the discriminator, and the same network without its pre-training."""
    write_task(folder)
    console.print(
        f"first sentences of docstrings, with the library that each is from: only "
        f"{TRAIN_PER_LIBRARY} of each to train on, because labels are what is dear; {SEEDS} seeds, "
        "the median counts; then the same network from random weights",
        soft_wrap=True,
    )
    results: list[FinetuneResult] = []
    for from_scratch in (False, True):
        console.print()
        with Bar(console, "examples") as bar:
            config = finetune_settings(folder, from_scratch=from_scratch)
            results.append(finetune(config, show=Screen(console, bar, has_epochs=False).show))
        if not results[-1].is_done:
            break
    return results


def heading(console: Console, number: int, words: str) -> None:
    """Print where the demo is."""
    console.print(f"\n[{number}/5] {words}\n", style="bold", markup=False, soft_wrap=True)


def stopped(config: DemoConfig, console: Console, signal_number: int) -> int:
    """Say how to go on; return the exit code."""
    console.print(
        f"\nstopped: the same command goes on from here (amber demo --out {config.out})",
        markup=False,
        soft_wrap=True,
    )
    return 128 + signal_number


def show_result(
    text: DemoText,
    manifest: Manifest,
    summary: Summary,
    settings: PretrainConfig,
    tuned: list[FinetuneResult],
    console: Console,
) -> None:
    """Print what came out, in a few lines."""
    table = Table.grid(padding=(0, 3))
    for name, value in [*result_rows(text, manifest, summary, settings), *task_rows(tuned)]:
        table.add_row(Text(f"  {name}"), Text(value))
    console.print("\nDone\n", style="bold")
    console.print(table)
    folder = summary.models[-1]
    console.print("\nTo use the model (pip install transformers):\n", markup=False)
    for line in loading_lines(folder, settings):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    console.print(
        f'\nTo see more of it: amber inspect {summary.out} "a sentence of yours"',
        markup=False,
        soft_wrap=True,
    )


def result_rows(
    text: DemoText,
    manifest: Manifest,
    summary: Summary,
    settings: PretrainConfig,
) -> list[tuple[str, str]]:
    """Say in a line each what was trained, on what, how long, and what it learned."""
    main = settings.model.resolved(manifest.vocab_size)
    generator = generator_shape(main, settings.generator)
    sizes = parameter_counts(main, generator, objective="rtd")
    before, after = summary.before, summary.after
    return [
        (
            "text",
            f"{text.path}: {text.num_documents:,} documents, vocabulary of "
            f"{manifest.vocab_size:,} tokens",
        ),
        (
            "networks",
            f"discriminator {main.num_hidden_layers} layers x {main.hidden_size}, generator "
            f"{generator.num_hidden_layers} x {generator.hidden_size}; "
            f"{short_number(sum(sizes.values()))} parameters",
        ),
        (
            "training",
            f"{summary.steps:,} steps, {short_number(summary.tokens)} tokens in "
            f"{duration(summary.seconds)}",
        ),
        (
            "generator",
            f"{before['masked_lm_loss']:.2f} -> {after['masked_lm_loss']:.2f} nats per hidden "
            f"token; knowing only token frequencies: {manifest.unigram_entropy:.2f}",
        ),
        (
            "discriminator",
            f"AUC {before['disc_auc']:.2f} -> {after['disc_auc']:.2f} (guessing: 0.50); accuracy "
            f'{after["disc_accuracy"]:.1%}, always "original": {after["majority_accuracy"]:.1%}',
        ),
        ("model", summary.models[-1]),
    ]


def task_rows(tuned: list[FinetuneResult]) -> list[tuple[str, str]]:
    """Say how well the classifiers do, beside always giving the most frequent label."""
    pretrained, scratch = tuned
    metric, split = pretrained.metric, pretrained.scored_split
    spreads = [result.spreads[split][metric] for result in (pretrained, scratch)]
    texts = [f"{s.median:.1%} ({s.min:.1%} to {s.max:.1%})" for s in spreads]
    majority = pretrained.baselines[split][metric].value
    return [
        (
            "classifier",
            f"{metric} {texts[0]} of {spreads[0].num_runs} seeds; without pre-training {texts[1]}; "
            f"the most frequent label: {majority:.1%}",
        ),
        ("its folder", str(Path(pretrained.out, str(pretrained.median_model)))),
    ]


def as_dictionary(
    text: DemoText,
    manifest: Manifest,
    summary: Summary,
    held_out: HeldOut,
    inspection: Inspection,
) -> dict[str, object]:
    """Return all results as one JSON object."""
    return {
        "text": asdict(text),
        "data": {
            "vocab_size": manifest.vocab_size,
            "train": asdict(manifest.train),
            "held_out": asdict(manifest.held_out),
            "unigram_entropy": manifest.unigram_entropy,
        },
        "run": asdict(summary),
        "evaluation": asdict(held_out),
        "inspection": asdict(inspection),
    }
