"""One optimiser step: mask, generate, corrupt, discriminate, loss, update.

The middle three are `PretrainingModel.forward`; everything else is here.
"""

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from amber.data.batch import Batch
from amber.data.noise import dropout_seed
from amber.electra.mask import Masked
from amber.electra.metrics import Tally
from amber.electra.pretraining import Outcome
from amber.errors import RunError
from amber.optim.optimizer import set_rates
from amber.run.checkpoint import TrainState
from amber.run.evaluation import mask_batch, merged
from amber.run.setup import Run


def train_step(
    run: Run, micro_batches: list[Batch], state: TrainState, *, is_logged: bool
) -> dict[str, float]:
    """Take one optimiser step; return its metrics, losses in nats per prediction.

    Both losses are means over the whole global batch, of masked positions and of real tokens,
    whatever the micro-batches and processes are: sums, divided by counts known beforehand.

    Raises:
        RunError: the loss or the gradient is not finite; nothing was updated.
    """
    config, process = run.config, run.process
    rate = set_rates(run.optimizers, state.step, progress_of(state, run), config.optim)
    temperature = config.noise.temperature_at(progress_of(state, run))
    torch.manual_seed(dropout_seed(config.seed, state.step, process.rank))

    batches = [batch.to(process.device) for batch in micro_batches]
    masked = [mask_batch(batch, config.mask, run.vocabulary) for batch in batches]
    counts = process.sum(count(batches, masked))
    num_masked, num_tokens = counts[0].clamp(min=1), counts[1].clamp(min=1)

    losses, tally = torch.zeros(2, device=process.device), Tally()
    for i, (batch, hidden) in enumerate(zip(batches, masked, strict=True)):
        set_gradient_sync(run, is_on=i == len(batches) - 1)
        with process.autocast():
            # generate, corrupt, discriminate
            outcome: Outcome = run.parallel(batch, hidden, temperature=temperature)
        mlm, rtd = outcome.mlm_loss / num_masked, torch.zeros_like(outcome.mlm_loss)
        loss = mlm
        if outcome.rtd is not None:
            rtd = outcome.rtd.loss / num_tokens
            loss = config.loss.generator_weight * mlm + config.loss.discriminator_weight * rtd
        (loss * process.num_ranks).backward()  # DDP averages the gradients over the processes
        losses += torch.stack([mlm.detach(), rtd.detach()])
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

    advance(state, counts, run)
    metrics = {"masked_lm_loss": float(losses[0]), "learning_rate": rate}
    metrics["grad_norm"] = float(grad_norm)
    if config.objective == "rtd":
        metrics["disc_loss"] = float(losses[1])
    if is_logged:
        metrics = merged(process.gather(tally)).metrics() | metrics
    return metrics


def count(batches: list[Batch], masked: list[Masked]) -> Tensor:
    """Return masked positions, real tokens, sum of squared lengths, and places, as float64."""
    lengths = torch.cat([batch.attention_mask.sum(dim=1) for batch in batches]).double()
    num_masked = sum(hidden.is_used.sum() for hidden in masked)
    places = sum(batch.attention_mask.numel() for batch in batches)
    return torch.stack(
        [
            torch.as_tensor(num_masked, device=lengths.device).double(),
            lengths.sum(),
            (lengths**2).sum(),
            torch.tensor(float(places), dtype=torch.float64, device=lengths.device),
        ]
    )


def set_gradient_sync(run: Run, *, is_on: bool) -> None:
    """Let the processes exchange gradients after the last micro-batch of a step only."""
    if isinstance(run.parallel, DistributedDataParallel):
        run.parallel.require_backward_grad_sync = is_on


def advance(state: TrainState, counts: Tensor, run: Run) -> None:
    """Count a step that was taken."""
    num_masked, num_tokens, squares, places = (int(value) for value in counts.tolist())
    state.step += 1
    state.tokens += num_tokens
    state.places += places
    state.flops += run.cost.total(num_tokens=num_tokens, squares=squares, num_masked=num_masked)


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
        f"step {step}: masked_lm_loss {float(losses[0]):.4g}, disc_loss {float(losses[1]):.4g}, "
        f"gradient norm {float(grad_norm):.4g} are not all finite (examples {examples} and "
        "others); the weights were not updated: start a new run with --init and the last "
        "checkpoint's folder, at lower rates under optim, or look at these examples"
    )
