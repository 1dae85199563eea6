"""One optimiser step: mask, generate, corrupt, discriminate, loss, update.

The middle three are `PretrainingModel.forward`; everything else is here.
"""

from typing import Final

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from amber.data.batch import Batch
from amber.data.noise import dropout_seed
from amber.electra.mask import Masked
from amber.electra.metrics import Tally, main_loss_name
from amber.electra.outcome import Outcome
from amber.errors import RunError
from amber.optim.optimizer import set_rates
from amber.run.checkpoint import TrainState
from amber.run.evaluation import mask_batch, merged
from amber.run.setup import Run

COUNTED: Final = ("masked", "ordinary", "real", "squares", "places")
"""What a step counts: chosen tokens, tokens without [CLS] and [SEP], all real tokens, the squares
of the sequences' lengths, and places with padding."""


def train_step(
    run: Run, micro_batches: list[Batch], state: TrainState, *, is_logged: bool
) -> dict[str, float]:
    """Take one optimiser step; return its metrics, losses in nats per prediction.

    Both losses are means over the whole global batch, of masked positions and of real tokens (or
    what else the objective predicts), whatever the micro-batches and processes are: sums, divided
    by counts known beforehand.

    Raises:
        RunError: the loss or the gradient is not finite; nothing was updated.
    """
    config, process, progress = run.config, run.process, progress_of(state, run)
    change_stage(run, state, progress)
    rate = set_rates(run.optimizers, state.step, progress, config.optim)
    temperature = config.noise.temperature_at(progress)
    weights = config.method.weights_at(progress)
    torch.manual_seed(dropout_seed(config.seed, state.step, process.rank))

    batches = [batch.to(process.device) for batch in micro_batches]
    masked = [mask_batch(batch, config.mask, run.vocabulary) for batch in batches]
    counts = dict(zip(COUNTED, process.sum(count(batches, masked)), strict=True))
    proposed, judged = (counts[name].clamp(min=1) for name in run.model.predictions)

    losses, tally = torch.zeros(3, device=process.device), Tally()
    for i, (batch, hidden) in enumerate(zip(batches, masked, strict=True)):
        set_gradient_sync(run, is_on=i == len(batches) - 1)
        with process.autocast():
            # generate, corrupt, discriminate
            outcome: Outcome = run.parallel(batch, hidden, temperature=temperature)
        parts = loss_parts(outcome, proposed, judged)
        loss = weights[0] * parts[0] + weights[1] * parts[1]
        (loss * process.num_ranks).backward()  # DDP averages the gradients over the processes
        losses += torch.stack(parts).detach()
        if is_logged:
            tally.add(outcome, batch, hidden)

    losses = process.sum(losses)
    gradients = [p.grad for p in run.model.parameters() if p.grad is not None]
    grad_norm = get_total_norm(gradients, error_if_nonfinite=False)
    if not bool(grad_norm.isfinite() & losses.isfinite().all()):
        raise RunError(describe_failure(state.step, losses, grad_norm, micro_batches))
    if config.optim.max_grad_norm > 0:
        clip_grads_with_norm_(run.model.parameters(), config.optim.max_grad_norm, grad_norm)
    for optimizer in run.optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    advance(state, {name: int(value) for name, value in counts.items()}, run)
    metrics = {"learning_rate": rate, "grad_norm": float(grad_norm)}
    if run.model.generator is not None:
        metrics["masked_lm_loss"] = float(losses[2])
    if config.objective != "mlm" and run.model.stage != "generator":
        metrics[main_loss_name(config.objective)] = float(losses[1])
    if is_logged:
        metrics = merged(process.gather(tally)).metrics(run.model.predictions) | metrics
    return metrics


def change_stage(run: Run, state: TrainState, progress: float) -> None:
    """Go over to the second stage of two_stage when its share of the budget has come."""
    config = run.config
    if config.algorithm != "two_stage" or run.model.stage != "generator":
        return
    if not state.is_second_stage and progress >= config.switch_fraction:
        run.model.start_discriminator()
        state.is_second_stage, state.best_loss = True, float("inf")  # another loss from now on


def loss_parts(outcome: Outcome, proposed: Tensor, judged: Tensor) -> list[Tensor]:
    """Divide the sums: what the generator learns, what the main encoder does, and the MLM loss.

    Args:
        outcome: of a micro-batch.
        proposed: predictions of the generator in the whole step.
        judged: predictions of the main encoder in the whole step.
    """
    zero = torch.zeros((), device=proposed.device)
    proposal, answer = outcome.proposal, outcome.answer
    return [
        zero if proposal is None else proposal.loss / proposed,
        zero if answer is None else answer.loss / judged,
        zero if proposal is None else proposal.nats / proposed,
    ]


def count(batches: list[Batch], masked: list[Masked]) -> Tensor:
    """Return what `COUNTED` names, as float64."""
    lengths = torch.cat([batch.attention_mask.sum(dim=1) for batch in batches]).double()
    sums = [
        torch.stack([hidden.is_used.sum() for hidden in masked]).sum().double(),
        torch.stack([hidden.is_maskable.sum() for hidden in masked]).sum().double(),
        lengths.sum(),
        (lengths**2).sum(),
        lengths.new_tensor(sum(batch.attention_mask.numel() for batch in batches)),
    ]
    return torch.stack(sums)


def set_gradient_sync(run: Run, *, is_on: bool) -> None:
    """Let the processes exchange gradients after the last micro-batch of a step only."""
    if isinstance(run.parallel, DistributedDataParallel):
        run.parallel.require_backward_grad_sync = is_on


def advance(state: TrainState, counts: dict[str, int], run: Run) -> None:
    """Count a step that was taken."""
    state.step += 1
    state.tokens += counts["real"]
    state.places += counts["places"]
    state.flops += run.cost[run.model.stage].total(
        num_tokens=counts["real"],
        squares=counts["squares"],
        num_masked=counts["masked"],
        num_ordinary=counts["ordinary"],
    )


def progress_of(state: TrainState, run: Run) -> float:
    """Return the share of the budget that is used up, in [0, 1]."""
    budget = run.config.budget
    if budget.steps:
        share = state.step / budget.steps
    elif budget.tokens:
        share = state.tokens / budget.tokens
    elif budget.flops:
        share = state.flops / budget.flops
    else:
        share = state.seconds / (3600.0 * budget.hours)
    return min(1.0, share)


def describe_failure(step: int, losses: Tensor, grad_norm: Tensor, batches: list[Batch]) -> str:
    """Say which step failed, how, and on which examples."""
    examples = torch.cat([batch.examples for batch in batches])
    examples = examples[examples >= 0][:8].tolist()
    return (
        f"step {step}: the generator's loss {float(losses[0]):.4g}, the main encoder's "
        f"{float(losses[1]):.4g}, "
        f"gradient norm {float(grad_norm):.4g} are not all finite (examples {examples} and "
        "others); the weights were not updated: start a new run with --init and the last "
        "checkpoint's folder, at lower rates under optim, or look at these examples"
    )
