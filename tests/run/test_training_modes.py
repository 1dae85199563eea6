"""Ways to train that share one loop: each keeps what the plain run promises."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from separate import run_apart, without_dropout
from transformers import ElectraForPreTraining

from amber.data.config import BatchConfig
from amber.data.loader import step_batches
from amber.electra import pretraining
from amber.electra.config import GeneratorConfig, NoiseConfig
from amber.errors import RunError
from amber.model.config import EncoderConfig
from amber.run import pretrain as pretrain_module
from amber.run.checkpoint import list_checkpoints
from amber.run.config import BudgetConfig, CheckpointConfig, EvaluationConfig, PretrainConfig
from amber.run.log import Event
from amber.run.pretrain import pretrain
from amber.run.setup import Run


def ignore(event: Event) -> None:
    del event


def train_lines(out: Path) -> list[dict]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "train"]


def weights_at(out: Path, step: int) -> dict[str, torch.Tensor]:
    return load_file(out / "checkpoints" / f"step-{step}" / "model.safetensors")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Collect the runs that `pretrain` builds."""
    runs: list[Run] = []
    build = pretrain_module.build_run

    def keep(*arguments) -> Run:
        runs.append(build(*arguments))
        return runs[-1]

    monkeypatch.setattr(pretrain_module, "build_run", keep)
    return runs


def test_a_run_resumed_before_the_end_of_an_epoch_is_the_same_to_the_last_bit(
    tiny_run: PretrainConfig, built: list[Run]
):
    straight = replace(
        tiny_run,
        batch=BatchConfig(size=40, micro_size=16, length=32),
        optim=replace(tiny_run.optim, matrices="muon"),
        noise=NoiseConfig(temperature=2.0, final_temperature=1.0),
        budget=BudgetConfig(steps=12),
        checkpoint=CheckpointConfig(every_steps=5, keep=9),
    )
    pretrain(straight, show=ignore)
    assert 5 * 40 < built[0].train.layout.count < 12 * 40
    resumed = replace(straight, out=straight.out.with_name("resumed"), resume=True)
    shutil.copytree(straight.out, resumed.out)
    for step in list_checkpoints(resumed.out / "checkpoints"):
        if step > 5:
            shutil.rmtree(resumed.out / "checkpoints" / f"step-{step}")
    assert list_checkpoints(resumed.out / "checkpoints") == [5]
    pretrain(resumed, show=ignore)
    names = ("step", "masked_lm_loss", "disc_loss", "grad_norm", "learning_rate")
    one, other = (
        [[line[name] for name in names] for line in train_lines(config.out)]
        for config in (straight, resumed)
    )
    assert len(one) == 12
    assert one == other
    left, right = weights_at(straight.out, 12), weights_at(resumed.out, 12)
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)


def test_bfloat16_learns_what_float32_learns(tiny_run: PretrainConfig):
    exact = replace(without_dropout(tiny_run), budget=BudgetConfig(steps=3))
    short = replace(exact, precision="bf16", out=exact.out.with_name("short"))
    for config in (exact, short):
        pretrain(config, show=ignore)
    assert (len(train_lines(exact.out)), len(train_lines(short.out))) == (3, 3)
    for one, other in zip(train_lines(exact.out), train_lines(short.out), strict=True):
        for name in ("masked_lm_loss", "disc_loss"):
            assert other[name] == pytest.approx(one[name], rel=0.02)
            assert other[name] != one[name]  # it was bfloat16


def test_a_run_of_no_time_takes_one_step(tiny_run: PretrainConfig):
    events: list[Event] = []
    summary = pretrain(replace(tiny_run, budget=BudgetConfig(hours=1e-9)), show=events.append)
    assert [(e.step, e.progress) for e in events if e.kind == "train"] == [(1, 1.0)]
    assert (summary.steps, summary.is_done) == (1, True)


def test_an_infinite_loss_with_a_finite_gradient_stops_before_the_update(
    tiny_run: PretrainConfig, built: list[Run], monkeypatch: pytest.MonkeyPatch
):
    exact, losses = pretraining.mlm_loss_sum, []

    def poisoned(*arguments):
        loss = exact(*arguments)
        if loss.requires_grad:
            losses.append(loss)
        return loss + math.inf if len(losses) == 5 else loss  # the second of step 1's three parts

    monkeypatch.setattr(pretraining, "mlm_loss_sum", poisoned)
    config = replace(tiny_run, checkpoint=CheckpointConfig(every_steps=1))
    with pytest.raises(RunError, match="step 1: the generator's loss inf, .* not all finite"):
        pretrain(config, show=ignore)
    assert list_checkpoints(config.out / "checkpoints") == [1]
    saved, now = weights_at(config.out, 1), dict(built[0].model.named_parameters())
    assert saved.keys() == now.keys()
    assert all(saved[name].equal(now[name].detach()) for name in saved)


def test_pairs_train_and_transformers_reads_the_discriminator(
    tiny_run: PretrainConfig, built: list[Run]
):
    config = replace(
        tiny_run,
        model=replace(tiny_run.model, body="bert", type_vocab_size=2, embedding_size=8),
        generator=GeneratorConfig(width_fraction=0.5),
        batch=BatchConfig(size=8, length=32, pair_fraction=0.9),
        budget=BudgetConfig(steps=3),
        checkpoint=CheckpointConfig(every_steps=1, keep=9),
    )
    pretrain(config, show=ignore)
    run = built[0]
    batch = step_batches(run.train, 0, size=8, micro_size=0)[0]
    assert {0, 1} == set(batch.token_type_ids[batch.attention_mask].tolist())
    name = next(name for name in weights_at(config.out, 1) if "segment" in name or "type" in name)
    first, last = weights_at(config.out, 1)[name], weights_at(config.out, 3)[name]
    assert (first != last).any(dim=1).tolist() == [True, True]
    theirs = ElectraForPreTraining.from_pretrained(config.out / "discriminator").eval()
    model = run.model.eval()
    assert model.rtd_head is not None
    with torch.no_grad():
        hidden = model.encoder(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        ours = model.rtd_head(hidden)
        logits = theirs(
            batch.input_ids,
            attention_mask=batch.attention_mask.long(),
            token_type_ids=batch.token_type_ids,
        ).logits
    real = batch.attention_mask
    torch.testing.assert_close(logits[real], ours[real], rtol=0.0, atol=1e-5)


@pytest.mark.slow
def test_two_ranks_have_the_gradients_and_the_weights_of_one(tiny_run: PretrainConfig):
    one = replace(
        without_dropout(tiny_run),
        batch=BatchConfig(size=7, micro_size=2, length=32),
        budget=BudgetConfig(steps=6),
    )
    two = replace(one, out=one.out.with_name("two"))
    pretrain(one, show=ignore)
    run_apart(two, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    expected = [line["grad_norm"] for line in train_lines(one.out)]
    assert len(expected) == 6
    assert [line["grad_norm"] for line in train_lines(two.out)] == pytest.approx(expected, rel=1e-4)
    left, right = weights_at(one.out, 6), weights_at(two.out, 6)
    assert left.keys() == right.keys()
    for name, weight in left.items():
        torch.testing.assert_close(right[name], weight, rtol=0.0, atol=1e-5)


@pytest.mark.slow
def test_compiled_encoders_give_the_same_losses_with_few_compilations(tiny_run: PretrainConfig):
    plain = replace(
        without_dropout(tiny_run),
        model=EncoderConfig(
            body="bert",
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            embedding_size=8,
            max_position_embeddings=32,
            type_vocab_size=2,
        ),
        generator=GeneratorConfig(width_fraction=0.5),
        batch=BatchConfig(size=8, micro_size=3, length=32),
        budget=BudgetConfig(steps=3),
        evaluation=EvaluationConfig(every_steps=8, examples=0, batch_size=8),
    )
    compiled = replace(plain, compile=True, out=plain.out.with_name("compiled"))
    pretrain(plain, show=ignore)
    output = run_apart(compiled, JAXTYPING_DISABLE="1", TORCH_LOGS="recompiles")
    one, other = train_lines(plain.out), train_lines(compiled.out)
    assert len(one) == len(other) == 3
    for left, right in zip(one, other, strict=True):
        for name in ("masked_lm_loss", "disc_loss"):
            assert right[name] == pytest.approx(left[name], abs=1e-4)
    assert "train 2\n" in output
    # Two encoders, in training and in evaluation, with and without padding, for one number of
    # sequences and for any; torch gives up with a warning where there are more than it allows.
    assert 8 < output.count("Recompiling function") + 1 <= 16, output
    assert "Recompiling" not in output.partition("train 2\n")[2], output
    assert "recompile_limit" not in output, output
