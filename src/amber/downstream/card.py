"""The model card of a fine-tuned folder."""

from typing import Final

from amber import __version__
from amber.downstream.recipe import Recipe
from amber.downstream.results import SeedRun
from amber.tasks.example import Kind
from amber.tasks.task import Task

PIPELINES: Final[dict[Kind, str]] = {
    "classification": "text-classification",
    "multilabel": "text-classification",
    "regression": "text-classification",
    "tagging": "token-classification",
    "qa": "question-answering",
}
WHAT: Final[dict[Kind, str]] = {
    "classification": "gives a text one of its labels",
    "multilabel": "gives a text any number of its labels",
    "regression": "gives a text a number",
    "tagging": "gives each word of a text a tag",
    "qa": "finds the answer to a question in a context",
}


def model_card(task: Task, run: SeedRun, *, recipe: Recipe, scored_split: str) -> str:
    """Write README.md: what the model does, how it was trained, how it scored."""
    lines = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {PIPELINES[task.kind]}",
        "tags: [amber]",
        "---",
        "",
        f"# {task.name}",
        "",
        f"This model {WHAT[task.kind]}. It was fine-tuned with amber {__version__} on the task "
        f"{task.name}.",
        "",
        "| | |",
        "|---|---|",
        f"| seed | {run.seed} |",
        f"| trained | {len(run.epochs)} epochs, {run.num_steps:,} steps of {recipe.batch_size} |",
        f"| learning rate | {recipe.learning_rate:g}, layer decay {recipe.layer_decay:g} "
        f"({recipe.layer_decay_rule}) |",
        f"| longest input | {recipe.length} tokens |",
        f"| weights of epoch | {run.epoch} |",
    ]
    for split, scores in run.scores.items():
        lines += [f"| {split} {name} | {value:.4f} |" for name, value in scores.items()]
    if run.collapsed:
        lines += ["", f"**Every prediction on {scored_split} is `{run.collapsed}`.**"]
    return "\n".join(lines) + "\n"
