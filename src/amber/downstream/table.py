"""Fine-tune on every task of a group that is there, and put the scores into one table."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from amber.downstream.config import FinetuneConfig
from amber.downstream.finetune import Show, finetune
from amber.downstream.material import read_material, read_task
from amber.downstream.points import model_folder, read_points, read_shape
from amber.downstream.recipe import idle_settings
from amber.downstream.results import FinetuneResult, to_json, write_whole
from amber.downstream.scoring import Baseline, golds_of
from amber.downstream.statistics import Spread
from amber.errors import UserError
from amber.tasks.glue import PAPER_AVERAGE
from amber.tasks.load import find_folder
from amber.tasks.named import GROUPS, find_task

TABLE: Final = "table.json"
AVERAGED: Final = {"glue": PAPER_AVERAGE}
"""By group, the tasks of its average, where they are not all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskRow:
    """What came out for one task."""

    task: str
    metric: str
    split: str
    spread: Spread
    baseline: Baseline
    num_collapsed: int
    """Runs whose predictions are all the same."""

    seconds: float
    """Of training, over all runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskAverage:
    """The mean over tasks of the median score."""

    value: float
    baseline: float
    tasks: tuple[str, ...]
    missing: tuple[str, ...]
    """Tasks that belong to the average and are not in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskTable:
    """The results of a group of tasks."""

    group: str
    out: str
    model: str
    is_done: bool
    """False when it was stopped."""

    signal_number: int
    """Of the signal that stopped it; 0 = none."""

    rows: tuple[TaskRow, ...]
    average: TaskAverage | None
    """None when no task of it is done."""

    skipped: dict[str, str]
    """Task -> why it was not run."""

    results: tuple[FinetuneResult, ...]
    seconds: float
    """Of the whole command."""


def finetune_tasks(
    config: FinetuneConfig,
    *,
    show: Callable[[str], Show] = lambda task: lambda event: None,
    on_skip: Callable[[str, str], None] = lambda task, reason: None,
) -> TaskTable:
    """Fine-tune on each task of a group, into a folder of its own in `config.out`.

    All files are read and checked before anything is trained. Settings without effect on a task
    are left out there, and a task with fewer examples than `limit_train` takes all.

    Args:
        config: its task is a group.
        show: called with the name of a task when it begins; returns what is told of it.
        on_skip: told which tasks are left out, and why.

    Raises:
        UserError: no task is there, or one of them is bad.
        RunError: a run could not go on; those that were finished are kept.
    """
    assert config.task is not None
    assert config.out is not None
    start = time.perf_counter()
    if config.dev_fraction:
        raise UserError(
            f"dev_fraction has no effect on {config.task}, whose tasks have dev files: leave it out"
        )
    configs, skipped = dict[str, FinetuneConfig](), dict[str, str]()
    for name in GROUPS[config.task]:
        one = replace(config, task=name, out=config.out / name)
        reason = why_skipped(one, config.data[0])
        if reason:
            skipped[name] = reason
            on_skip(name, reason)
        else:
            configs[name] = adapted(one)
    if not configs:
        raise UserError(
            f"{config.data[0]}: no folder of a task of {config.task} to train on: give the folder "
            f"that holds {', '.join(find_task(name).folders[0] for name in skipped)}, or some of "
            "them"
        )
    refuse_idle(config, configs.values())
    results: list[FinetuneResult] = []
    for name, one in configs.items():
        results.append(finetune(one, show=show(name)))
        if not results[-1].is_done:
            break
    rows = tuple(row_of(result) for result in results if result.is_done)
    table = TaskTable(
        group=config.task,
        out=str(config.out),
        model=results[0].model,
        is_done=len(rows) == len(configs),
        signal_number=results[-1].signal_number,
        rows=rows,
        average=average_of(config.task, rows),
        skipped=skipped,
        results=tuple(results),
        seconds=time.perf_counter() - start,
    )
    write_whole(config.out / TABLE, to_json(table))
    return table


def why_skipped(config: FinetuneConfig, data_dir: Path) -> str:
    """Say what a task lacks to be run; nothing when all is there.

    Raises:
        UserError: one of its files is bad.
    """
    assert config.task is not None
    task = find_task(config.task)
    folder = find_folder(task, data_dir)
    if folder is None or folder == data_dir:  # file names such as train.tsv are those of many tasks
        return f"no folder {' or '.join(task.folders)} with its files"
    _, data = read_task(config)
    for split in ("train", config.score_on):
        if split not in data.splits:
            return f"no {split} file in {folder}"
        golds_of(data.splits[split], where=data.files[split])
    return ""


def adapted(config: FinetuneConfig) -> FinetuneConfig:
    """Leave out of a group's settings what has no effect on one of its tasks, and check the rest.

    Raises:
        UserError: bad files, or settings that do not fit.
    """
    folder = model_folder(config)
    task, data = read_task(config)
    idle = idle_settings(
        config.recipe,
        kind=task.kind,
        head=config.head,
        body=read_shape(folder).body,
        is_unordered=task.is_unordered,
    )
    defaults = {part.name: part.default for part in fields(config.recipe)}
    has_fewer = config.limit_train >= len(data.splits["train"])
    one = replace(
        config,
        recipe=replace(config.recipe, **{name: defaults[name] for name in idle}),
        limit_train=0 if has_fewer else config.limit_train,
    )
    read_points(one, read_material(one), folder)
    return one


def refuse_idle(config: FinetuneConfig, configs: Iterable[FinetuneConfig]) -> None:
    """Refuse settings that were left out everywhere.

    Raises:
        UserError: with the first of them.
    """
    for part in fields(config.recipe):
        given = getattr(config.recipe, part.name)
        if given != part.default and all(getattr(c.recipe, part.name) != given for c in configs):
            raise UserError(
                f"recipe.{part.name} has no effect on any task of {config.task} that is there: "
                "leave it out"
            )


def row_of(result: FinetuneResult) -> TaskRow:
    """Take what the table shows out of a finished result."""
    split, metric = result.scored_split, result.metric
    return TaskRow(
        task=result.task,
        metric=metric,
        split=split,
        spread=result.spreads[split][metric],
        baseline=result.baselines[split][metric],
        num_collapsed=sum(bool(run.collapsed) for run in result.runs),
        seconds=sum(run.seconds for run in result.runs),
    )


def average_of(group: str, rows: tuple[TaskRow, ...]) -> TaskAverage | None:
    """Average the median scores over the tasks that the group's average is of.

    That of GLUE is the plain mean of eight tasks, without WNLI (Clark et al. 2020, table 3).
    """
    wanted = AVERAGED.get(group, GROUPS[group])
    chosen = [row for row in rows if row.task in wanted]
    if not chosen:
        return None
    tasks = tuple(row.task for row in chosen)
    return TaskAverage(
        value=statistics.fmean(row.spread.median for row in chosen),
        baseline=statistics.fmean(row.baseline.value for row in chosen),
        tasks=tasks,
        missing=tuple(name for name in wanted if name not in tasks),
    )
