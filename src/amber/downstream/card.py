"""The model card of a fine-tuned folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from amber import __version__
from amber.downstream.recipe import Recipe
from amber.downstream.results import SeedRun
from amber.downstream.scoring import Baseline
from amber.model.task_shape import HeadStyle
from amber.tasks.example import Kind
from amber.tasks.task import Task

CLASSIFIES: Final = ("text-classification", "AutoModelForSequenceClassification")
LOADS: Final[dict[Kind, tuple[str, str]]] = {
    "classification": CLASSIFIES,
    "multilabel": CLASSIFIES,
    "regression": CLASSIFIES,
    "tagging": ("token-classification", "AutoModelForTokenClassification"),
    "qa": ("question-answering", "AutoModelForQuestionAnswering"),
}
"""Name of the pipeline and class of `transformers`."""

WHAT: Final[dict[Kind, str]] = {
    "classification": "gives a text one of its labels",
    "multilabel": "gives a text any number of its labels",
    "regression": "gives a text a number",
    "tagging": "gives each word of a text a tag",
    "qa": "finds the answer to a question in a context",
}
MOST_LABELS: Final = 20


def model_card(
    task: Task,
    run: SeedRun,
    *,
    recipe: Recipe,
    labels: tuple[str, ...],
    head: HeadStyle,
    start: Path | None,
    num_train: int,
    baselines: Mapping[str, Mapping[str, Baseline]],
    scored_split: str,
) -> str:
    """Write README.md: what the model does, how it was trained, how it scores and is used.

    Args:
        task: what it was trained for.
        run: its scores.
        recipe: of its training.
        labels: in the order of their numbers.
        head: `transformers` has no class for the official one.
        start: folder of the encoder that it started from; None: random weights.
        num_train: examples.
        baselines: by split and metric.
        scored_split: the one that counts.
    """
    pipeline, loader = LOADS[task.kind]
    is_official = head == "official"
    named = ", ".join(labels[:MOST_LABELS]) + (" ..." if len(labels) > MOST_LABELS else "")
    lines = ["---"]
    if not is_official:
        lines += ["library_name: transformers", f"pipeline_tag: {pipeline}"]
    lines += [
        "tags: [amber]",
        "---",
        "",
        f"# {f'{task.kind} on own data' if task.name == 'own' else task.name}",
        "",
        f"This model {WHAT[task.kind]}{f': {named}' if named else ''}.",
        "",
        f"It was fine-tuned with amber {__version__} on {num_train:,} examples of "
        f"{'own data' if task.name == 'own' else f'the task {task.name}'}, starting from "
        f"{'random weights' if start is None else name_of(start)}.",
        "",
        "    amber predict FOLDER FILE",
        "",
    ]
    if is_official:
        lines.append("`transformers` has no class for its head, which is that of the ELECTRA code.")
    else:
        lines += [
            "```python",
            f"from transformers import {loader}, AutoTokenizer",
            'tokenizer = AutoTokenizer.from_pretrained("FOLDER")',
            f'model = {loader}.from_pretrained("FOLDER")',
            "```",
        ]
    lines += ["", "| | score | baseline |", "|---|---|---|"]
    for split, scores in run.scores.items():
        for name, value in scores.items():
            floor = baselines[split][name]
            lines.append(f"| {split} {name} | {value:.4f} | {floor.value:.4f} ({floor.guess}) |")
    lines += [
        "",
        "| | |",
        "|---|---|",
        f"| seed | {run.seed} |",
        f"| trained | {len(run.epochs)} epochs, {run.num_steps:,} steps of {recipe.batch_size} |",
        f"| weights of epoch | {run.epoch} |",
        f"| learning rate | {recipe.learning_rate:g}, layer decay {recipe.layer_decay:g} "
        f"({recipe.layer_decay_rule}) |",
        f"| longest input | {recipe.length} tokens |",
    ]
    if run.collapsed:
        lines += ["", f"**Every prediction on {scored_split} is `{run.collapsed}`.**"]
    return "\n".join(lines) + "\n"


def name_of(folder: Path) -> str:
    """Name a model folder, with its run where it is a part of one."""
    folder = folder.resolve()
    is_part = folder.name in ("discriminator", "encoder", "generator")
    return f"{folder.parent.name}/{folder.name}" if is_part else folder.name
