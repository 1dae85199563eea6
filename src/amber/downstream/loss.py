"""The losses of fine-tuning as float32 sums in nats (squares for regression)."""

from typing import Final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from amber.downstream.forward import encode_batch, task_scores
from amber.downstream.sequences import TaskBatch
from amber.model.joint_answers import JointAnswerHead, joint_loss
from amber.model.task_heads import TaskModel
from amber.run.device import Process
from amber.tasks.example import Kind
from amber.tasks.questions import NO_ANSWER
from amber.tasks.windows import IGNORED

NEVER: Final = -1e9
"""Score of a token that cannot be a start or an end."""


def task_loss_sum(model: TaskModel, batch: TaskBatch, process: Process) -> Float[Tensor, ""]:
    """Run the network on labelled sequences and add up the loss.

    The sum divided by `batch.num_labels`, over all micro-batches of a step, is the mean that
    `transformers` takes: over examples, over the labels of all examples (multi-label), over the
    labelled words (tags), over starts and ends (questions). For questions padding is no possible
    answer; in `transformers` it is, so that the loss depends on the lengths of the other sequences.

    Args:
        model: in training or evaluation mode.
        batch: on the model's device.
        process: gives the precision of the encoder; the loss is float32.
    """
    if isinstance(model.head, JointAnswerHead):
        return joint_answer_loss_sum(model, model.head, batch, process)
    scores = task_scores(model, batch, process)
    if model.shape.kind == "qa" and batch.attention_mask is not None:
        scores = scores.masked_fill(~batch.attention_mask.unsqueeze(-1), NEVER)
    return loss_sum(model.shape.kind, scores, batch.labels)


def loss_sum(
    kind: Kind,
    logits: Float[Tensor, "B ..."],
    labels: Int[Tensor, "B ..."] | Float[Tensor, "B ..."],
) -> Float[Tensor, ""]:
    """Add up the loss of scores.

    Args:
        kind: of the task.
        logits: (B, C) for texts, (B, T, C) for tags, (B, T, 2) for questions.
        labels: as in a `TaskBatch`.
    """
    if kind == "regression":
        return F.mse_loss(logits.squeeze(-1), labels, reduction="sum")
    if kind == "multilabel":
        return F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
    if kind == "classification":
        return F.cross_entropy(logits, labels, reduction="sum")
    if kind == "tagging":
        flat = logits.flatten(0, 1)
        return F.cross_entropy(flat, labels.flatten(), ignore_index=IGNORED, reduction="sum")
    places = logits.transpose(1, 2).flatten(0, 1)  # (2B, T)
    return F.cross_entropy(places, labels.flatten(), ignore_index=IGNORED, reduction="sum")


def joint_answer_loss_sum(
    model: TaskModel, head: JointAnswerHead, batch: TaskBatch, process: Process
) -> Float[Tensor, ""]:
    """Add up the loss of the official code's head for questions.

    Twice the loss of each window, because `num_labels` counts a start and an end: the mean is the
    official loss.
    """
    assert batch.is_context is not None
    is_labelled = batch.labels[:, 0] != IGNORED
    places = batch.labels.clamp(min=NO_ANSWER)
    hidden = encode_batch(model, batch, process)
    scores = head.given_start(hidden, batch.is_context, places[:, 0])
    losses = joint_loss(
        scores, places[:, 0], places[:, 1], is_unanswerable=places[:, 0] == NO_ANSWER
    )
    return 2 * torch.where(is_labelled, losses, 0.0).sum()
