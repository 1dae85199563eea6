import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from amber.config import to_dict, to_toml
from amber.data.config import BatchConfig
from amber.errors import RunError, UserError
from amber.run import step as step_module
from amber.run.checkpoint import list_checkpoints
from amber.run.config import BudgetConfig, CheckpointConfig, LogConfig, PretrainConfig
from amber.run.log import Event
from amber.run.pretrain import pretrain
from amber.tokens.config import PrepareConfig
from amber.tokens.prepare import prepare


def ignore(event: Event) -> None:
    del event


def losses(out: Path) -> dict[int, tuple[float, float]]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return {
        line["step"]: (line["masked_lm_loss"], line.get("disc_loss", 0.0))
        for line in lines
        if line["kind"] == "train"
    }


def final_weights(out: Path, step: int = 20) -> dict[str, torch.Tensor]:
    return load_file(out / "checkpoints" / f"step-{step}" / "model.safetensors")


def assert_same_run(one: Path, other: Path) -> None:
    assert losses(one) == losses(other)
    left, right = final_weights(one), final_weights(other)
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)


def start(config: PretrainConfig, *, resume: bool = False, ranks: int = 1) -> subprocess.Popen:
    """Start a run in a process of its own, as a user does."""
    settings = to_dict(replace(config, resume=resume)) | {"versions": {}}  # as a run writes them
    path = config.out.parent / "settings.toml"
    path.write_text(to_toml(settings))
    launcher = [sys.executable]
    if ranks > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.Popen(
        [*launcher, "-m", "amber", "pretrain", "--config", str(path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen) -> tuple[int, str]:
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def test_a_run_killed_and_resumed_is_the_same_to_the_last_bit(tiny_run: PretrainConfig):
    straight = replace(tiny_run, out=tiny_run.out.with_name("straight"))
    pretrain(straight, show=ignore)
    process = start(tiny_run)
    checkpoint = tiny_run.out / "checkpoints" / "step-10"
    for _ in range(60_000):
        if checkpoint.exists() or process.poll() is not None:
            break
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    _, output = finish(process)
    assert checkpoint.exists(), output
    assert not (tiny_run.out / "summary.json").exists()
    pretrain(replace(tiny_run, resume=True), show=ignore)
    assert sum(1 for _ in losses(straight.out)) == 20
    assert_same_run(straight.out, tiny_run.out)


def test_threads_change_nothing(tiny_run: PretrainConfig):
    other = replace(
        tiny_run, out=tiny_run.out.with_name("other"), batch=replace(tiny_run.batch, num_workers=3)
    )
    pretrain(tiny_run, show=ignore)
    pretrain(other, show=ignore)
    assert_same_run(tiny_run.out, other.out)


def without_dropout(config: PretrainConfig) -> PretrainConfig:
    return replace(config, model=replace(config.model, hidden_dropout=0.0, attention_dropout=0.0))


def assert_close_losses(one: Path, other: Path) -> None:
    left, right = losses(one), losses(other)
    assert left.keys() == right.keys()
    for step, pair in left.items():
        assert pair == pytest.approx(right[step], abs=1e-5), f"step {step}"


def test_micro_batches_change_no_loss(tiny_run: PretrainConfig):
    whole = replace(without_dropout(tiny_run), batch=BatchConfig(size=8, length=32))
    pretrain(whole, show=ignore)
    for micro_size in (1, 3):
        parts = replace(
            whole,
            out=whole.out.with_name(f"micro-{micro_size}"),
            batch=replace(whole.batch, micro_size=micro_size),
        )
        pretrain(parts, show=ignore)
        assert_close_losses(whole.out, parts.out)


def test_two_ranks_train_what_one_rank_trains_and_resume_as_one(tiny_run: PretrainConfig):
    one = replace(without_dropout(tiny_run), batch=BatchConfig(size=7, micro_size=2, length=32))
    pretrain(one, show=ignore)
    two = replace(one, out=one.out.with_name("two"))
    code, output = finish(start(two, ranks=2))
    assert code == 0, output
    assert "unused" not in output
    assert_close_losses(one.out, two.out)
    assert (two.out / "discriminator" / "model.safetensors").exists()
    # Fewer ranks go on from the checkpoint of more.
    for name in ("step-20", "step-16"):
        path = two.out / "checkpoints" / name
        if path.exists():
            path.rename(two.out / f"away-{name}")
    assert list_checkpoints(two.out / "checkpoints")[0] == 10
    pretrain(replace(two, resume=True), show=ignore)
    assert_close_losses(one.out, two.out)


def test_sigterm_saves_and_the_run_goes_on(tiny_run: PretrainConfig):
    config = replace(tiny_run, budget=BudgetConfig(steps=100_000))
    process = start(config)
    for _ in range(60_000):
        if (config.out / "metrics.jsonl").exists() and len(losses(config.out)) > 2:
            break
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    code, output = finish(process)
    assert code == 143, output
    step = list_checkpoints(config.out / "checkpoints")[0]
    assert max(losses(config.out)) == step
    assert "--resume" in output
    summary = json.loads((config.out / "summary.json").read_text())
    assert not summary["is_done"]


def test_a_resumed_run_gets_no_second_budget(tiny_run: PretrainConfig):
    first = pretrain(tiny_run, show=ignore)
    again = pretrain(replace(tiny_run, resume=True), show=ignore)
    assert (first.steps, again.steps) == (20, 20)
    assert again.after == first.after
    with pytest.raises(UserError, match="budget.steps: 20 -> 30"):
        pretrain(replace(tiny_run, resume=True, budget=BudgetConfig(steps=30)), show=ignore)


def test_other_settings_or_data_are_refused_by_name(tiny_run: PretrainConfig):
    pretrain(tiny_run, show=ignore)
    other = replace(tiny_run, resume=True, optim=replace(tiny_run.optim, learning_rate=2e-3))
    with pytest.raises(UserError, match="optim.learning_rate: 0.001 -> 0.002"):
        pretrain(other, show=ignore)
    path = tiny_run.out / "config.toml"
    text = path.read_text()
    line = next(line for line in text.splitlines() if line.startswith("data_fingerprint"))
    path.write_text(text.replace(line, 'data_fingerprint = "another"'))
    with pytest.raises(UserError, match="data_fingerprint: another -> "):
        pretrain(replace(tiny_run, resume=True), show=ignore)


def test_a_run_does_not_overwrite_another(tiny_run: PretrainConfig):
    pretrain(tiny_run, show=ignore)
    with pytest.raises(UserError, match="holds a run already"):
        pretrain(tiny_run, show=ignore)


def test_a_loss_that_is_not_finite_stops_before_the_update(
    tiny_run: PretrainConfig, monkeypatch: pytest.MonkeyPatch
):
    config = replace(tiny_run, checkpoint=CheckpointConfig(every_steps=3))
    original = step_module.get_total_norm

    def norm(gradients, **settings):
        norm.calls += 1
        if norm.calls == 8:
            gradients[0].fill_(float("nan"))
        return original(gradients, **settings)

    norm.calls = 0
    monkeypatch.setattr(step_module, "get_total_norm", norm)
    with pytest.raises(RunError, match="step 7: .* not all finite"):
        pretrain(config, show=ignore)
    assert list_checkpoints(config.out / "checkpoints")[0] == 6
    assert all(weight.isfinite().all() for weight in final_weights(config.out, 6).values())


@pytest.mark.parametrize(
    "budget",
    [BudgetConfig(steps=5), BudgetConfig(tokens=1000.0), BudgetConfig(flops=3e8)],
    ids=["steps", "tokens", "flops"],
)
def test_a_run_ends_with_the_step_that_uses_up_its_budget(
    tiny_run: PretrainConfig, budget: BudgetConfig
):
    events: list[Event] = []
    summary = pretrain(replace(tiny_run, budget=budget), show=events.append)
    progress = [event.progress for event in events if event.kind == "train"]
    assert progress[-1] == 1.0
    assert all(share < 1.0 for share in progress[:-1])
    assert summary.is_done


def test_the_mlm_objective_trains_one_network(tiny_run: PretrainConfig):
    config = replace(tiny_run, objective="mlm", generator=type(tiny_run.generator)())
    summary = pretrain(config, show=ignore)
    assert summary.after["masked_lm_loss"] < summary.before["masked_lm_loss"]
    assert "disc_loss" not in summary.after
    with pytest.raises(
        UserError, match="generator.depth_fraction has no effect while objective is mlm"
    ):
        pretrain(replace(tiny_run, objective="mlm", out=tiny_run.out / "b"), show=ignore)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (BudgetConfig(), "exactly one budget is needed, got none"),
        (BudgetConfig(steps=1, tokens=1.0), "exactly one budget is needed, got steps, tokens"),
    ],
)
def test_a_run_needs_one_budget(tiny_run: PretrainConfig, budget: BudgetConfig, message: str):
    with pytest.raises(UserError, match=message):
        pretrain(replace(tiny_run, budget=budget), show=ignore)


def second(config: PretrainConfig, **changes) -> PretrainConfig:
    """A new run that starts from the weights of a finished one."""
    return replace(config, init=config.out, out=config.out.with_name("second"), **changes)


def test_training_starts_from_a_checkpoint(tiny_run: PretrainConfig):
    first = pretrain(tiny_run, show=ignore)
    checkpoint = tiny_run.out / "checkpoints" / "step-20"
    again = replace(second(tiny_run), init=checkpoint)
    assert pretrain(again, show=ignore).before == first.after
    other = replace(again, out=again.out / "b", model=replace(again.model, rope_theta=50.0))
    with pytest.raises(UserError, match="step-20: its rope_theta is 10000.0"):
        pretrain(other, show=ignore)


def test_weights_of_another_tokenizer_or_with_other_settings_are_refused(
    tiny_run: PretrainConfig, tmp_path: Path
):
    pretrain(tiny_run, show=ignore)
    model = replace(tiny_run.model, rope_theta=50.0)
    with pytest.raises(UserError, match=r"its rope_theta is 10000.0, model.rope_theta is 50.0"):
        pretrain(second(tiny_run, model=model), show=ignore)
    model = replace(tiny_run.model, num_attention_heads=4)
    with pytest.raises(UserError, match="its num_attention_heads is 2"):
        pretrain(second(tiny_run, model=model), show=ignore)
    text = (tiny_run.data.parent / "text.txt").read_text().replace("a", "o")
    (tmp_path / "other.txt").write_text(text)
    other = tmp_path / "other"
    prepare(
        PrepareConfig(
            text=(str(tmp_path / "other.txt"),),
            out=other,
            vocab_size=300,
            held_out_fraction=0.1,
            num_workers=1,
        )
    )
    with pytest.raises(UserError, match="was trained with another tokenizer"):
        pretrain(second(tiny_run, data=other), show=ignore)


def test_a_changed_byte_of_the_data_is_found_before_the_first_step(
    tiny_run: PretrainConfig, tmp_path: Path
):
    data = tmp_path / "data"
    shutil.copytree(tiny_run.data, data)
    path = data / "train-00000.bin"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(UserError, match="train-00000.bin"):
        pretrain(replace(tiny_run, data=data), show=ignore)
    assert not tiny_run.out.exists()


def test_a_run_stopped_before_its_first_step_can_be_resumed(tiny_run: PretrainConfig):
    def stop(event: Event) -> None:
        if event.kind == "held_out" and event.step == 0:
            os.kill(os.getpid(), signal.SIGTERM)

    summary = pretrain(tiny_run, show=stop)
    assert (summary.steps, summary.is_done) == (0, False)
    assert pretrain(replace(tiny_run, resume=True), show=ignore).is_done


def test_the_lines_of_the_log_do_not_depend_on_where_a_run_was_resumed(tiny_run: PretrainConfig):
    config = replace(tiny_run, log=LogConfig(every_steps=6))
    pretrain(config, show=ignore)
    straight = losses(config.out)
    assert list(straight) == [6, 12, 18, 20]  # the last step has a line, too
    for step in (16, 20):
        shutil.rmtree(config.out / "checkpoints" / f"step-{step}", ignore_errors=True)
    assert list_checkpoints(config.out / "checkpoints")[0] == 10
    pretrain(replace(config, resume=True), show=ignore)
    assert losses(config.out) == straight


@pytest.mark.parametrize(
    "budget",
    [BudgetConfig(hours=1.0), BudgetConfig(flops=1e9), BudgetConfig(tokens=1000.0)],
    ids=["hours", "flops", "tokens"],
)
def test_warm_up_in_steps_must_fit_the_budget(tiny_run: PretrainConfig, budget: BudgetConfig):
    optim = replace(tiny_run.optim, warmup_fraction=0.0, warmup_steps=100)
    with pytest.raises(UserError, match="give optim.warmup_fraction"):
        pretrain(replace(tiny_run, optim=optim, budget=budget), show=ignore)


def test_training_starts_from_a_finished_run(tiny_run: PretrainConfig):
    first = pretrain(tiny_run, show=ignore)
    again = pretrain(second(tiny_run, seed=1), show=ignore)
    for name, value in first.after.items():
        assert again.before[name] == pytest.approx(value, abs=1e-5), name
