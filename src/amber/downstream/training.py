"""The loop of fine-tuning: epochs of steps on one network, and what is noted of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.optim import AdamW

from amber.data.noise import dropout_seed
from amber.downstream.forward import to_device
from amber.downstream.loss import task_loss_sum
from amber.downstream.recipe import Recipe
from amber.downstream.sequences import Sequences, collate, epoch_batches, micro_parts
from amber.errors import RunError
from amber.model.task_heads import TaskModel
from amber.optim.layer_rates import build_layered_adamw
from amber.optim.optimizer import set_rates
from amber.run.device import Process

NOTE_EVERY: Final = {"cpu": 5, "cuda": 20}
"""Steps between looks at the loss: on a GPU each look waits for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep:
    """How far a training is."""

    step: int
    """Steps done."""

    num_steps: int
    num_examples: int
    """Sequences since the last note."""

    loss: float
    """Mean over the steps since the last note."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingEpoch:
    """What an epoch of training was like."""

    epoch: int
    """From 1."""

    loss: float
    """Mean over its steps."""

    seconds: float
    """Of its steps."""


OnStep = Callable[[TrainingStep], None]
OnEpoch = Callable[[TrainingEpoch], bool]
"""Told after each epoch, with the network as it is then; returns whether to go on."""
IsStopped = Callable[[], bool]


def num_steps(num_sequences: int, recipe: Recipe) -> int:
    """Count the steps of a training: each epoch's last batch may be smaller."""
    return recipe.epochs * -(-num_sequences // recipe.batch_size)


def train_task(
    model: TaskModel,
    sequences: Sequences,
    recipe: Recipe,
    process: Process,
    *,
    seed: int,
    pad_id: int,
    on_step: OnStep = lambda step: None,
    on_epoch: OnEpoch = lambda epoch: True,
    is_stopped: IsStopped = lambda: False,
) -> bool:
    """Train a network on labelled sequences, in place.

    Args:
        model: on the process's device.
        sequences: to train on; each is used once per epoch.
        recipe: rates, batches, epochs.
        process: gives device and precision.
        seed: of the order and the dropout.
        pad_id: of the padding token.
        on_step: told every few steps.
        on_epoch: told after each epoch; says whether there shall be another.
        is_stopped: asked before each step.

    Returns:
        Whether it came to its end; False when it was stopped.

    Raises:
        RunError: the loss is no finite number.
    """
    num_layers = model.encoder.config.num_hidden_layers
    optimizer = build_layered_adamw(
        model,
        recipe.optim,
        num_layers=num_layers,
        decay=recipe.layer_decay,
        rule=recipe.layer_decay_rule,
    )
    total, step = num_steps(len(sequences), recipe), 0
    model.train()
    for epoch in range(recipe.epochs):
        start, epoch_loss = time.perf_counter(), 0.0
        batches = epoch_batches(
            sequences.lengths, batch_size=recipe.batch_size, seed=seed, epoch=epoch
        )
        window: list[Tensor] = []
        num_examples = 0
        for number, rows in enumerate(batches, 1):
            if is_stopped():
                return False
            set_rates([optimizer], step, step / total, recipe.optim)
            torch.manual_seed(dropout_seed(seed, step, 0))
            parts = [
                to_device(collate(sequences, part, pad_id=pad_id), process.device)
                for part in micro_parts(rows, micro_size=recipe.micro_size)
            ]
            loss = forward_backward(model, parts, process)
            update(model, optimizer, max_grad_norm=recipe.max_grad_norm)
            window.append(loss)
            step, num_examples = step + 1, num_examples + len(rows)
            if number % NOTE_EVERY[process.device.type] == 0 or number == len(batches):
                epoch_loss += note_losses(
                    window, on_step, step=step, total=total, num_examples=num_examples
                )
                window, num_examples = [], 0
        seconds = time.perf_counter() - start
        done = TrainingEpoch(epoch=epoch + 1, loss=epoch_loss / len(batches), seconds=seconds)
        if not on_epoch(done):
            break
        model.train()
    return True


def forward_backward(model: TaskModel, parts: list, process: Process) -> Tensor:
    """Add up the gradients of a batch; return its mean loss.

    Each micro-batch is divided by the count of the whole batch: mean losses of parts, averaged,
    would weight a label by the size of its part.
    """
    count = max(1, sum(part.num_labels for part in parts))
    total = torch.zeros((), device=process.device)
    for part in parts:
        loss = task_loss_sum(model, part, process) / count
        loss.backward()
        total += loss.detach()
    return total


def update(model: TaskModel, optimizer: AdamW, *, max_grad_norm: float) -> None:
    """Clip the gradients, take the step, forget the gradients."""
    if max_grad_norm > 0:
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        norm = get_total_norm(gradients, error_if_nonfinite=False)
        clip_grads_with_norm_(model.parameters(), max_grad_norm, norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def note_losses(
    window: list[Tensor], on_step: OnStep, *, step: int, total: int, num_examples: int
) -> float:
    """Look at the losses since the last note, and tell them; return their sum.

    Raises:
        RunError: one of them is no finite number.
    """
    losses = torch.stack(window)
    check_finite(losses, step)
    loss = float(losses.mean())
    on_step(TrainingStep(step=step, num_steps=total, num_examples=num_examples, loss=loss))
    return float(losses.sum())


def check_finite(losses: Tensor, step: int) -> None:
    """Stop when a loss is no number.

    Raises:
        RunError: with the steps that it may have happened in.
    """
    if not bool(losses.isfinite().all()):
        raise RunError(
            f"steps {step - len(losses) + 1} to {step}: the loss is not finite: lower "
            "recipe.learning_rate, or use precision float32"
        )
