"""Pre-train: from settings to finished model folders."""

import time
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import torch

from amber import __version__
from amber.config import differences, read_toml, to_dict, to_toml
from amber.data.loader import held_out_batches, train_batches
from amber.errors import UserError
from amber.run.checkpoint import TrainState, list_checkpoints, load_newest, save_checkpoint
from amber.run.config import RESUMABLE, PretrainConfig
from amber.run.device import open_process
from amber.run.evaluation import evaluate, held_out_loss, known_frequencies
from amber.run.initial import load_initial_weights
from amber.run.log import Event, Kind, Log, Show, Values
from amber.run.results import Summary, write_results
from amber.run.setup import Run, build_run, token_counts
from amber.run.step import progress_of, train_step
from amber.run.stop import StopRequest, listen_for_stop
from amber.tokens.shards import verify


def pretrain(config: PretrainConfig, *, show: Show) -> Summary:
    """Train until the budget is used up, or until Ctrl-C or SIGTERM, and write the models.

    Args:
        config: all settings.
        show: told what happens; only in the first process.

    Raises:
        UserError: bad settings, data or checkpoints; nothing was trained.
        RunError: the loss became not finite; the last checkpoint is sound.
    """
    with open_process(config.device, config.precision) as process, listen_for_stop() as stop:
        check_folder(config)
        run = build_run(config, process)
        check_resume(run)
        if process.is_first:
            verify(config.data)
        state = TrainState()
        notes: list[str] = []
        if config.resume:
            checkpoints = config.out / "checkpoints"
            state = load_newest(checkpoints, run.model, run.optimizers, warn=notes.append)
            if state.is_second_stage:
                run.model.freeze_generator()
        elif config.init:
            fingerprint = run.manifest.tokenizer_fingerprint
            notes += load_initial_weights(config.init, run.model, tokenizer_fingerprint=fingerprint)
        process.wait()
        log = open_log(run, state, notes, show) if process.is_first else None
        try:
            after = train(run, state, log, stop)
            summary = write_results(run, state, after=after, signal_number=stop.signal_number)
            process.wait()
            if log:
                log.write(event("end", state, run))
        finally:
            if log:
                log.close()
    return summary


def check_folder(config: PretrainConfig) -> None:
    """Look at the run's folder before anything else is done.

    Raises:
        UserError: it holds a run already and this is not a resumption, or the reverse.
    """
    has_run = bool(list_checkpoints(config.out / "checkpoints"))
    if config.resume and not has_run:
        raise UserError(
            f"{config.out}: there is no checkpoint to resume from: start without --resume"
        )
    if not config.resume and has_run:
        raise UserError(
            f"{config.out}: holds a run already: give --resume to go on, or another --out"
        )


def open_log(run: Run, state: TrainState, notes: list[str], show: Show) -> Log:
    """Make the run's folder, write the settings down and open the log.

    Raises:
        UserError: the folder cannot be made.
    """
    config = run.config
    try:
        config.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{config.out}: cannot be made ({error}); give another --out") from error
    write_settings(run)
    kept = state.step if config.resume else -1
    log = Log(config.out, tensorboard=config.log.tensorboard, step=kept, show=show)
    for note in notes:
        show(event("warning", state, run, text=note))
    where = f"{run.process.device}, {str(run.process.dtype).removeprefix('torch.')}"
    ranks = run.process.num_ranks
    where += f", {ranks} processes" if ranks > 1 else ""
    show(event("start", state, run, values=describe(run), text=where))
    return log


def settings(run: Run) -> dict[str, Any]:
    """Return what determines a run: its settings and its data."""
    is_bf16 = run.process.dtype == torch.bfloat16
    return to_dict(run.config) | {
        "precision": "bf16" if is_bf16 else "float32",  # what auto came to
        "data_fingerprint": run.manifest.fingerprint,
        "tokenizer_fingerprint": run.manifest.tokenizer_fingerprint,
    }


def check_resume(run: Run) -> None:
    """Refuse to resume with other settings, another corpus or another tokenizer.

    Raises:
        UserError: with the keys that differ.
    """
    if not run.config.resume:
        return
    path = run.config.out / "config.toml"
    saved = read_toml(path)
    saved.pop("versions", None)
    changed = [
        difference
        for difference in differences(saved, settings(run))
        if difference.split(":")[0] not in RESUMABLE
    ]
    if changed:
        raise UserError(
            f"{path}: a resumed run keeps its settings, these differ: {'; '.join(changed)}: "
            "leave them as they were, or start a new run"
        )


def write_settings(run: Run) -> None:
    """Write config.toml: every setting, the data's fingerprints and the versions."""
    versions = {name: version(name) for name in ("torch", "tokenizers", "numpy")}
    text = to_toml(settings(run) | {"versions": {"amber": __version__} | versions})
    beside = run.config.out / ".config.toml.unfinished"
    beside.write_text(text, encoding="utf-8")
    beside.replace(run.config.out / "config.toml")


def event(
    kind: Kind,
    state: TrainState,
    run: Run,
    *,
    values: Values | None = None,
    text: str = "",
) -> Event:
    """Say where the run is when something happens."""
    progress = progress_of(state, run)
    return Event(kind=kind, step=state.step, progress=progress, values=values or {}, text=text)


def describe(run: Run) -> Values:
    """Return the sizes of the networks and of the data, for the screen."""
    main = sum(p.numel() for p in run.model.encoder.parameters())
    return {
        "num_parameters": sum(p.numel() for p in run.model.parameters()),
        "num_encoder_parameters": main,
        "num_train_tokens": run.train.shards.num_tokens,
        "num_train_examples": run.train.layout.count,
        "num_held_out_examples": run.held_out.layout.count,
        "padding": run.train.layout.padding(),
        "unigram_entropy": run.manifest.unigram_entropy,
        "peak": run.peak,
    }


def train(run: Run, state: TrainState, log: Log | None, stop: StopRequest) -> dict[str, float]:
    """Train until the budget is used up or a stop is asked for.

    Args:
        run: the networks, the data, the settings.
        state: where to start; advanced in place.
        log: of the first process; None in the others.
        stop: set by Ctrl-C or SIGTERM.

    Returns:
        The held-out metrics at the end; empty when the run was stopped before it.
    """
    config, process = run.config, run.process
    latest: dict[str, float] = {}
    if state.step == 0:
        latest = state.first_evaluation = measure(run, state, log)
    rank, num_ranks = process.rank, process.num_ranks
    batches = train_batches(
        run.train, config.batch, first_step=state.step, rank=rank, num_ranks=num_ranks
    )
    run.model.train()
    measured_step, saved_step = -1, state.step if config.resume else -1
    while progress_of(state, run) < 1.0 and not stop.is_agreed(process):
        before, start = replace(state), time.perf_counter()
        is_logged = (state.step + 1) % config.log.every_steps == 0
        metrics = train_step(run, next(batches), state, is_logged=is_logged)
        state.seconds += process.longest(time.perf_counter() - start)
        state.window.append({**metrics, **step_counts(before, state)})
        is_last = progress_of(state, run) >= 1.0
        if is_logged or is_last:
            if log:
                log.write(event("train", state, run, values=summarise(state, peak=run.peak)))
            state.window = []
        if state.step % config.evaluation.every_steps == 0 or is_last:
            latest, measured_step = measure(run, state, log), state.step
            loss = held_out_loss(latest, config.method)
            if loss < state.best_loss:
                state.best_loss, state.best_step = loss, state.step
                saved_step = save(run, state, log)
        is_due = state.step % config.checkpoint.every_steps == 0 or is_last
        if is_due and saved_step != state.step:
            saved_step = save(run, state, log)
    batches.close()
    if progress_of(state, run) < 1.0:
        if saved_step != state.step:
            save(run, state, log)
        return {}
    return latest if measured_step == state.step else measure(run, state, None)


def step_counts(before: TrainState, after: TrainState) -> Values:
    """Return what one step took."""
    return {
        "seconds": after.seconds - before.seconds,
        "tokens": after.tokens - before.tokens,
        "flops": after.flops - before.flops,
    }


def summarise(state: TrainState, *, peak: float) -> Values:
    """Average the losses over the steps since the last line; the rest is of the last step."""
    window = state.window
    last = dict(window[-1])
    seconds = sum(step["seconds"] for step in window)
    for name in ("masked_lm_loss", "disc_loss", "encoder_lm_loss"):
        if name in last:
            values = [step[name] for step in window if name in step]  # a stage may begin within
            last[name] = sum(values) / len(values)
    last["tokens_per_second"] = sum(step["tokens"] for step in window) / seconds
    last["mfu"] = sum(step["flops"] for step in window) / seconds / peak
    return last | {
        "tokens": state.tokens,
        "flops": state.flops,
        "seconds": state.seconds,
        "padding_fraction": 1.0 - state.tokens / max(1, state.places),
    }


def measure(run: Run, state: TrainState, log: Log | None) -> dict[str, float]:
    """Evaluate on the held-out text and write it down."""
    config, process = run.config, run.process
    batches = held_out_batches(
        run.held_out,
        num_examples=config.evaluation.examples,
        batch_size=config.evaluation.batch_size,
        rank=process.rank,
        num_ranks=process.num_ranks,
    )
    metrics = evaluate(
        run.model,
        batches,
        mask_config=config.mask,
        vocabulary=run.vocabulary,
        process=process,
        temperature=config.noise.temperature_at(1.0),
        log_frequencies=known_frequencies(config.method, token_counts(config.data), process.device),
    )
    if log:
        values = metrics | {"tokens": state.tokens, "flops": state.flops, "seconds": state.seconds}
        log.write(event("held_out", state, run, values=values))
    return metrics


def save(run: Run, state: TrainState, log: Log | None) -> int:
    """Write a checkpoint; the first process does, the others wait; return its step."""
    if log:
        path = save_checkpoint(
            run.config.out / "checkpoints",
            run.model,
            run.optimizers,
            state,
            keep=run.config.checkpoint.keep,
        )
        log.write(event("checkpoint", state, run, text=str(path)))
    run.process.wait()
    return state.step
