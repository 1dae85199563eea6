"""Fine-tune: from a pre-trained folder and a task to models with scores, over several seeds."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from amber.downstream.config import FinetuneConfig
from amber.downstream.parallel import Message, choose_jobs, run_all
from amber.downstream.plan import Plan, make_plan
from amber.downstream.results import (
    RESULTS,
    EpochRecord,
    FinetuneResult,
    Point,
    SeedRun,
    best_point,
    median_run,
    spreads_of,
    to_json,
    write_whole,
)
from amber.downstream.training import TrainingStep
from amber.errors import UserError
from amber.run.device import Process, open_process
from amber.run.stop import listen_for_stop


@dataclass(frozen=True, kw_only=True, slots=True)
class FinetuneEvent:
    """Something that happened, for the screen."""

    kind: Literal["start", "step", "epoch", "run"]
    result: FinetuneResult | None = None
    """At the start: what is known before the first run; runs that were there before are in it."""

    seed: int | None = None
    changes: Mapping[str, Any] | None = None
    """Of the combination of a sweep."""

    num_jobs: int = 1
    done: int = 0
    """Sequences trained on, over all runs of this command."""

    total: int = 0
    """Sequences that all runs of this command train on."""

    step: TrainingStep | None = None
    epoch: EpochRecord | None = None
    run: SeedRun | None = None


Show = Callable[[FinetuneEvent], None]


def finetune(config: FinetuneConfig, *, show: Show = lambda event: None) -> FinetuneResult:
    """Train with every seed, score, and write models and results.

    Runs that an earlier call with the same settings finished are used again.

    Args:
        config: all settings.
        show: told what happens.

    Raises:
        UserError: bad settings, files or folders; nothing was trained.
        RunError: a run could not go on; those that were finished are kept.
    """
    if config.show_rates:
        raise UserError("show_rates prints the rates and trains nothing: leave it out to train")
    start = time.perf_counter()
    with open_process(config.device, config.precision) as process, listen_for_stop() as stop:
        if process.num_ranks > 1:
            raise UserError(
                "fine-tuning runs its seeds in processes of its own: start it without torchrun, "
                "with --jobs"
            )
        plan = make_plan(config, process)
        tracker = Tracker(plan, process, config, show)
        show(replace(tracker.event("start"), result=tracker.result(start, signal_number=0)))
        if tracker.todo:
            run_all(
                plan.work,
                [plan.assignments[number] for number in tracker.todo],
                process,
                jobs=tracker.num_jobs,
                tell=tracker.tell,
                is_stopped=lambda: stop.signal_number > 0,
            )
        result = tracker.result(start, signal_number=stop.signal_number)
    write_whole(plan.out / RESULTS, to_json(result))
    return result


class Tracker:
    """Collects what the runs say."""

    def __init__(self, plan: Plan, process: Process, config: FinetuneConfig, show: Show) -> None:
        """Begin with the runs that were there before."""
        self.plan = plan
        self.show = show
        self.runs: dict[int, SeedRun] = dict(plan.finished)
        self.todo = [n for n in range(len(plan.assignments)) if n not in self.runs]
        self.done = dict.fromkeys(self.todo, 0)
        self.num_jobs = choose_jobs(
            config.jobs,
            len(self.todo),
            num_threads=plan.work.num_threads,
            device=process.device,
            bytes_per_run=plan.bytes_per_run,
        )

    def size(self, number: int) -> int:
        """Sequences that a run trains on, over its epochs."""
        assignment = self.plan.assignments[number]
        train = self.plan.work.encodings[assignment.encoding].train
        return len(train) * assignment.recipe.epochs

    def event(self, kind: Literal["start", "step", "epoch", "run"]) -> FinetuneEvent:
        """Say how far all runs are."""
        return FinetuneEvent(
            kind=kind,
            num_jobs=self.num_jobs,
            done=sum(self.done.values()),
            total=sum(self.size(number) for number in self.todo),
        )

    def tell(self, message: Message) -> None:
        """Take in what a run says, and pass it on."""
        number = self.todo[message.assignment]
        assignment = self.plan.assignments[number]
        if message.step is not None:
            self.done[number] += message.step.num_examples
        if message.run is not None:
            self.runs[number] = message.run
            self.done[number] = self.size(number)
        assert message.kind in ("step", "epoch", "run")
        self.show(
            replace(
                self.event(message.kind),
                seed=assignment.seed,
                changes=self.plan.points[assignment.point],
                step=message.step,
                epoch=message.epoch,
                run=message.run,
            )
        )

    def points(self) -> tuple[Point, ...]:
        """Put the runs of each combination together; combinations without a run are left out."""
        plan, found = self.plan, list[Point]()
        split, metric = plan.work.scored_split, plan.work.task.metrics[0]
        for point, changes in enumerate(plan.points):
            runs = tuple(
                self.runs[number]
                for number, assignment in enumerate(plan.assignments)
                if assignment.point == point and number in self.runs
            )
            if runs:
                summary = spreads_of(runs)[split][metric]
                found.append(Point(changes=dict(changes), runs=runs, spread=summary))
        return tuple(found)

    def result(self, start: float, *, signal_number: int) -> FinetuneResult:
        """Say what has come out so far."""
        plan, points = self.plan, self.points()
        split, metric = plan.work.scored_split, plan.work.task.metrics[0]
        is_done = len(self.runs) == len(plan.assignments)
        is_sweep = len(plan.points) > 1
        chosen = best_point(points, metric=metric) if points and (is_done or not is_sweep) else None
        runs = chosen.runs if chosen else ()
        median = median_run(runs, split=split, metric=metric) if is_done else None
        point = plan.points.index(chosen.changes) if chosen else 0
        return replace(
            plan.outlines[point],
            is_done=is_done,
            signal_number=signal_number,
            runs=runs,
            spreads=spreads_of(runs),
            median_seed=median.seed if median else None,
            median_model=median.model if median else None,
            points=points if is_sweep else (),
            chosen=dict(chosen.changes) if chosen and is_sweep else {},
            seconds=time.perf_counter() - start,
            num_reused=len(plan.finished),
        )
