"""All that is known before fine-tuning begins: the examples as token ids, and the runs to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer

from amber.config import to_dict
from amber.downstream.config import FinetuneConfig
from amber.downstream.encoded import EncodedExamples, encode_examples, with_both_orders
from amber.downstream.material import Material, read_material
from amber.downstream.parallel import memory_needed, num_cores
from amber.downstream.points import model_folder, read_points, read_shape
from amber.downstream.recipe import Recipe
from amber.downstream.record import (
    OWN_FILES,
    data_fingerprint,
    find_finished,
    recipe_values,
    refuse_models,
    run_settings,
    write_config,
)
from amber.downstream.results import (
    FinetuneResult,
    SeedRun,
)
from amber.downstream.scoring import Baseline, baselines_of
from amber.downstream.seed import Assignment, Encoding, Workload
from amber.downstream.training import num_steps
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.files import fitting_tokenizer
from amber.model.task_folder import OpenedModel, open_for_task
from amber.model.task_shape import HeadStyle
from amber.run.device import Process
from amber.tasks.own import OwnData
from amber.tasks.tagged import joiner_of
from amber.tokens.tokenizer import special_ids

MOST_THREADS: Final = 16
HEADS: Final[dict[str, HeadStyle]] = {"hf": "hugging_face", "official": "official"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The runs of a command."""

    out: Path
    work: Workload
    points: tuple[Mapping[str, Any], ...]
    """What each combination of a sweep changes; one that changes nothing without a sweep."""

    assignments: tuple[Assignment, ...]
    finished: Mapping[int, SeedRun]
    """Runs that were there before, by the number of their assignment."""

    outlines: tuple[FinetuneResult, ...]
    """The result of each combination without its runs."""

    bytes_per_run: float


def make_plan(config: FinetuneConfig, process: Process) -> Plan:
    """Read and check everything, and list the runs.

    Raises:
        UserError: something about the settings, the files or the folders.
    """
    assert config.out is not None
    refuse_models(config.out)
    folder = model_folder(config)
    shape, material = read_shape(folder), read_material(config)
    tokenizer = fitting_tokenizer(folder, shape)
    points = read_points(config, material, folder)
    recipes = [recipe for _, recipe in points]
    opened = open_network(folder, config, material)
    keys = list(dict.fromkeys(encoding_key(recipe) for recipe in recipes))
    encoded = [encode(material, tokenizer, recipe_with(recipes, key)) for key in keys]
    for recipe in recipes:
        check_length(encoded[keys.index(encoding_key(recipe))]["train"], recipe)
    data = [data_fingerprint(each) for each in encoded]
    common = run_settings(config, process, folder)
    baselines = {
        split: baselines_of(material.task, material.golds["train"], gold, labels=material.labels)
        for split, gold in material.golds.items()
        if split != "train"
    }
    work = Workload(
        model_dir=folder,
        task=material.task,
        labels=material.labels,
        head=HEADS[config.head],
        is_pretrained=not config.from_scratch,
        keep=config.keep,
        patience=config.patience,
        pad_id=special_ids(tokenizer).pad,
        scored_split=config.score_on,
        num_threads=config.threads or threads_for(config.seeds * len(points)),
        num_train=len(material.train),
        baselines=baselines,
        details=details_of(config, material),
        encodings={
            number: Encoding(train=each["train"].sequences, scored=without_train(each))
            for number, each in enumerate(encoded)
        },
    )
    assignments = tuple(
        Assignment(
            seed=seed,
            point=point,
            recipe=recipe,
            encoding=(number := keys.index(encoding_key(recipe))),
            out=config.out,
            folder=f"point-{point + 1}/seed-{seed}" if config.sweep else f"seed-{seed}",
            settings=common | {"recipe": recipe_values(recipe), "data_fingerprint": data[number]},
        )
        for point, recipe in enumerate(recipes)
        for seed in range(config.seed, config.seed + config.seeds)
    )
    finished = find_finished(config.out, assignments)
    write_config(config, recipes, common, data)
    return Plan(
        out=config.out,
        work=work,
        points=tuple(changes for changes, _ in points),
        assignments=assignments,
        finished=finished,
        outlines=tuple(
            outline(
                config,
                process,
                material,
                encoded[keys.index(encoding_key(recipe))],
                opened,
                recipe,
                folder,
                baselines,
            )
            for recipe in recipes
        ),
        bytes_per_run=max(bytes_needed(shape, each["train"], recipes) for each in encoded),
    )


def open_network(folder: Path, config: FinetuneConfig, material: Material) -> OpenedModel:
    """Start the network once, to see that it can be, and what of it comes from the folder."""
    return open_for_task(
        folder,
        kind=material.task.kind,
        labels=material.labels,
        head=HEADS[config.head],
        seed=config.seed,
        is_pretrained=not config.from_scratch,
    )


def check_length(train: EncodedExamples, recipe: Recipe) -> None:
    """Refuse a training that would change nothing: the rate of the first step is 0.

    Raises:
        UserError: it is the only step.
    """
    if num_steps(len(train.sequences), recipe) == 1 and recipe.warmup_fraction > 0:
        raise UserError(
            f"the training has one step, {len(train.sequences)} sequences once, and the warm-up "
            "begins at the rate 0: raise recipe.epochs, or lower recipe.batch_size"
        )


def encoding_key(recipe: Recipe) -> tuple[Any, ...]:
    """What of a recipe changes the token ids."""
    return recipe.length, recipe.stride, recipe.max_question, recipe.both_orders


def recipe_with(recipes: Sequence[Recipe], key: tuple[Any, ...]) -> Recipe:
    """Return the first recipe with this key."""
    return next(recipe for recipe in recipes if encoding_key(recipe) == key)


def encode(material: Material, tokenizer: Tokenizer, recipe: Recipe) -> dict[str, EncodedExamples]:
    """Encode train and what is scored."""
    train = with_both_orders(material.train) if recipe.both_orders else material.train
    return {
        split: encode_examples(
            material.task.kind,
            examples,
            tokenizer,
            labels=material.labels,
            length=recipe.length,
            stride=recipe.stride,
            max_question=recipe.max_question,
        )
        for split, examples in {"train": train, **material.scored}.items()
    }


def without_train(encoded: dict[str, EncodedExamples]) -> dict[str, EncodedExamples]:
    """Return what is scored."""
    return {split: each for split, each in encoded.items() if split != "train"}


def details_of(config: FinetuneConfig, material: Material) -> dict[str, Any]:
    """Return what a prediction needs to know of the task."""
    task = material.task
    details: dict[str, Any] = {"task": config.task, "metrics": list(task.metrics)}
    if config.dev_fraction:
        details["dev_fraction"] = config.dev_fraction
    if config.own != OwnData() or config.task == "own":
        own = to_dict(config.own)
        details["own"] = {n: v for n, v in own.items() if f"own.{n}" not in OWN_FILES}
    if (joiner := joiner_of(material.train)) is not None:
        details["joiner"] = joiner
    return details


def threads_for(num_runs: int) -> int:
    """Share the cores out among the runs, whatever the number of processes.

    The last digits of sums depend on the number of threads, and results shall not depend on jobs.
    """
    return max(1, min(MOST_THREADS, num_cores() // num_runs))


def bytes_needed(shape: EncoderConfig, train: EncodedExamples, recipes: Sequence[Recipe]) -> float:
    """Estimate the memory of the largest training."""
    length = int(train.sequences.lengths.max())
    num_rows = max(recipe.micro_size or recipe.batch_size for recipe in recipes)
    return memory_needed(shape, num_rows=num_rows, length=length)


def outline(
    config: FinetuneConfig,
    process: Process,
    material: Material,
    encoded: dict[str, EncodedExamples],
    opened: OpenedModel,
    recipe: Recipe,
    folder: Path,
    baselines: dict[str, dict[str, Baseline]],
) -> FinetuneResult:
    """Return the result as it is before the first run."""
    task = material.task
    return FinetuneResult(
        task=task.name,
        kind=task.kind,
        out=str(config.out),
        is_done=False,
        signal_number=0,
        model=str(folder),
        size=recipe.size,
        loaded_share=opened.share,
        new_weights=opened.new,
        ignored_weights=opened.ignored,
        head=config.head,
        recipe=recipe_values(recipe),
        precision="bf16" if process.dtype == torch.bfloat16 else "float32",
        labels=material.labels,
        metrics=task.metrics,
        scored_split=config.score_on,
        num_examples={
            "train": len(material.train),
            **{split: len(examples) for split, examples in material.scored.items()},
        },
        num_sequences=len(encoded["train"].sequences),
        limit_train=config.limit_train,
        truncated_share={split: each.truncated_share for split, each in encoded.items()},
        counts={split: each.counts for split, each in encoded.items()},
        files=material.files,
        notes=material.notes,
        keep=config.keep,
        baselines=baselines,
        runs=(),
        spreads={},
        median_seed=None,
        median_model=None,
        points=(),
        chosen={},
        seconds=0.0,
        num_reused=0,
    )
