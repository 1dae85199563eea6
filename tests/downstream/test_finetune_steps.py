"""A step of fine-tuning equals the same step with the classes of `transformers`."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from toy_tasks import SHAPE, write_model

from amber.downstream.config import RecipeConfig
from amber.downstream.recipe import Recipe, fill_recipe
from amber.downstream.sequences import Sequences, collate, join_sequences
from amber.downstream.training import forward_backward, train_task
from amber.downstream.used_rows import UsedRows, renumber
from amber.model.task_folder import open_for_task, save_task_model
from amber.model.task_heads import TaskModel
from amber.run.device import Process
from amber.tasks.windows import IGNORED

transformers.logging.disable_progress_bar()
CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)
LABELS = {
    "classification": ("no", "perhaps", "yes"),
    "multilabel": ("red", "round"),
    "regression": (),
    "tagging": ("O", "B-A", "I-A"),
    "qa": (),
}
AUTO = {
    "tagging": transformers.AutoModelForTokenClassification,
    "qa": transformers.AutoModelForQuestionAnswering,
}
LENGTHS = [7, 12, 5, 9, 12, 4]
CLOSE = {"atol": 1e-5, "rtol": 0.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


def network(folder: Path, kind: str, **settings) -> TaskModel:
    dropouts = dict.fromkeys(("hidden_dropout", "attention_dropout", "head_dropout"), 0.0)
    opened = open_for_task(folder, kind=kind, labels=LABELS[kind], seed=3, **dropouts | settings)
    return opened.model


def made_up(kind: str, lengths: list[int] = LENGTHS) -> Sequences:
    """Six sequences with labels of this kind."""
    rng = np.random.default_rng(5)
    ids = [np.array([2, *rng.integers(5, SHAPE.vocab_size, n - 2), 3]) for n in lengths]
    types = [np.array([0] * 2 + [1] * (n - 2)) for n in lengths]
    labels = {
        "classification": np.array([0, 2, 1, 1, 0, 2]),
        "multilabel": rng.integers(0, 2, (6, 2)).astype(np.float32),
        "regression": rng.normal(size=6).astype(np.float32),
        "tagging": np.concatenate(
            [[IGNORED, *rng.integers(0, 3, n - 3), IGNORED, IGNORED] for n in lengths]
        ),
        "qa": np.array([[2, 3], [3, 9], [0, 0], [4, 4], [2, 11], [0, 0]]),
    }
    context = [kind_types == 1 for kind_types in types] if kind == "qa" else None
    return join_sequences(ids, types, labels[kind], is_context=context)


def whole_recipe(kind: str, **changes) -> Recipe:
    given = replace(RecipeConfig(), layer_decay=0.5, learning_rate=0.01, batch_size=6, epochs=3)
    dropouts = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
    dropouts |= {} if kind == "qa" else {"head_dropout": 0.0}
    given = replace(given, **dropouts | changes)
    return fill_recipe(given, kind=kind, epochs=3, shape=SHAPE, head="hf")


def train_theirs(folder: Path, kind: str, sequences: Sequences) -> dict[str, torch.Tensor]:
    """Three steps with their class and a plain AdamW, rates worked out by hand."""
    auto = AUTO.get(kind, transformers.AutoModelForSequenceClassification)
    model = auto.from_pretrained(folder).train()
    batch = collate(sequences, np.arange(len(sequences)), pad_id=0)
    labels = {"labels": batch.labels}
    if kind == "qa":
        labels = {"start_positions": batch.labels[:, 0], "end_positions": batch.labels[:, 1]}
    shares = {"electra.embeddings": 0.125, "layer.0.": 0.25, "layer.1.": 0.5}
    groups = [
        {"params": [weight], "share": next((s for n, s in shares.items() if n in name), 1.0)}
        for name, weight in model.named_parameters()
    ]
    optimizer = torch.optim.AdamW(groups, eps=1e-6, weight_decay=0.0)
    for rate in (0.0, 0.01 * 2 / 3, 0.01 / 3):  # (1 - progress) * min(1, progress / 0.1)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["share"]
        mask = batch.attention_mask
        output = model(
            input_ids=batch.input_ids,
            attention_mask=None if mask is None else mask.long(),
            token_type_ids=batch.token_type_ids,
            **labels,
        )
        optimizer.zero_grad()
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return {name: weight.detach() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("kind", list(LABELS))
def test_three_steps_equal_those_of_transformers(kind: str, folder: Path, tmp_path: Path):
    lengths = [12] * 6 if kind == "qa" else LENGTHS  # there padding is a possible answer to them
    ours, sequences = network(folder, kind), made_up(kind, lengths)

    def saved(name: str) -> Path:
        save_task_model(tmp_path / name, ours, tokenizer_dir=folder, card="# a\n")
        return tmp_path / name

    theirs = train_theirs(saved("before"), kind, sequences)
    train_task(ours, sequences, whole_recipe(kind), CPU, seed=0, pad_id=0)
    auto = AUTO.get(kind, transformers.AutoModelForSequenceClassification)
    trained = dict(auto.from_pretrained(saved("after")).named_parameters())
    assert trained.keys() == theirs.keys()
    theirs.pop("qa_outputs.bias", None)  # moves all scores alike: its gradient is rounding alone
    for name, weight in theirs.items():
        torch.testing.assert_close(trained[name].detach(), weight, **CLOSE, msg=name)


@pytest.mark.parametrize("kind", list(LABELS))
@pytest.mark.parametrize("head", ["hugging_face", "official"])
def test_micro_batches_give_the_gradient_of_the_batch(kind: str, head: str, folder: Path):
    whole = network(folder, kind, head=head)
    parts, sequences = copy.deepcopy(whole), made_up(kind)
    one = [collate(sequences, np.arange(6), pad_id=0)]
    three = [collate(sequences, np.array(rows), pad_id=0) for rows in ([0, 3, 4], [1], [2, 5])]
    loss = forward_backward(whole, one, CPU)
    torch.testing.assert_close(forward_backward(parts, three, CPU), loss)
    for name, weight in whole.named_parameters():
        other = parts.get_parameter(name).grad
        if weight.grad is None:
            assert other is None
            continue
        assert other is not None
        torch.testing.assert_close(other, weight.grad, atol=1e-6, rtol=1e-5, msg=name)


def test_a_training_in_micro_batches_ends_at_the_same_weights(folder: Path):
    sequences = made_up("classification")
    ends = []
    for micro_size in (0, 2):
        model = network(folder, "classification")
        recipe = whole_recipe("classification", batch_size=5, micro_size=micro_size)
        train_task(model, sequences, recipe, CPU, seed=0, pad_id=0)
        ends.append(dict(model.named_parameters()))
    for name, weight in ends[0].items():
        torch.testing.assert_close(ends[1][name], weight, atol=2e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("width", [16, 48])
def test_leaving_out_unused_rows_changes_no_bit(width: int, tmp_path: Path):
    folder = write_model(tmp_path, replace(SHAPE, hidden_size=width, embedding_size=width))
    sequences = made_up("classification")
    recipe = whole_recipe("classification")  # which clips
    plain, lean = network(folder, "classification"), network(folder, "classification")
    before = plain.encoder.embeddings.token.weight.detach().clone()
    train_task(plain, sequences, recipe, CPU, seed=0, pad_id=0)
    numbered, ids, pad_id = renumber(sequences, pad_id=0)
    assert 0 in ids
    assert len(ids) < SHAPE.vocab_size
    rows = UsedRows(lean.encoder, ids)
    train_task(lean, numbered, recipe, CPU, seed=0, pad_id=pad_id)
    rows.restore()
    for name, weight in plain.named_parameters():
        assert lean.get_parameter(name).equal(weight), name
    unused = np.setdiff1d(np.arange(SHAPE.vocab_size), ids)
    assert plain.encoder.embeddings.token.weight[unused].equal(before[unused])


def test_the_whole_table_reads_tokens_that_training_did_not_see(folder: Path):
    model = network(folder, "classification")
    expected = model(torch.tensor([[2, 5, 6, 3]]))
    rows = UsedRows(model.encoder, np.array([0, 2, 3, 5]))
    with rows.whole_table():
        assert model(torch.tensor([[2, 5, 6, 3]])).equal(expected)
    with torch.no_grad():
        rows.small.weight[3] += 1.0
    with rows.whole_table():
        assert not model(torch.tensor([[2, 5, 6, 3]])).equal(expected)


def test_a_step_without_labels_changes_nothing_but_is_no_error(folder: Path):
    model = network(folder, "tagging")
    sequences = made_up("tagging")
    nothing = replace(sequences, labels=np.full_like(sequences.labels, IGNORED))
    loss = forward_backward(model, [collate(nothing, np.arange(6), pad_id=0)], CPU)
    assert loss == 0.0
