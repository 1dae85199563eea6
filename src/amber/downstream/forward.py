"""A task network over a batch: the encoder in the chosen precision, the head in float32.

A head is a small part of the work, and scores rounded to bfloat16 would tie: a similarity near 4
has steps of 0.03 there.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from amber.downstream.sequences import TaskBatch
from amber.model.task_heads import TaskModel
from amber.run.device import Process


def to_device(batch: TaskBatch, device: torch.device) -> TaskBatch:
    """Copy a batch to a device; nothing is copied on a CPU."""
    if device.type == "cpu":
        return batch

    def moved(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.to(device, non_blocking=True)

    return TaskBatch(
        input_ids=batch.input_ids.to(device, non_blocking=True),
        attention_mask=moved(batch.attention_mask),
        token_type_ids=moved(batch.token_type_ids),
        labels=batch.labels.to(device, non_blocking=True),
        is_context=moved(batch.is_context),
    )


def encode_batch(model: TaskModel, batch: TaskBatch, process: Process) -> Float[Tensor, "B N D"]:
    """Run the encoder for what the head reads; the result is float32."""
    with process.autocast():
        hidden = model.encode(batch.input_ids, batch.attention_mask, batch.token_type_ids)
    return hidden.float()


def task_scores(model: TaskModel, batch: TaskBatch, process: Process) -> Float[Tensor, "B *T C"]:
    """Run encoder and head: the scores that `TaskModel` gives."""
    return model.head(encode_batch(model, batch, process), batch.attention_mask)
