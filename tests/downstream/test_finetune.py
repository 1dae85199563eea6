"""Fine-tuning as a whole: it learns, it can be stopped and gone on with, it says what it did."""

import errno
import json
import math
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from toy_tasks import LEARNING, RECIPE, SHAPE, toy_config, write_model, write_texts

import amber.downstream.seed as seed_module
from amber.downstream import parallel
from amber.downstream.encoded import encode_examples, fingerprint_of
from amber.downstream.finetune import finetune
from amber.downstream.plan import make_plan
from amber.downstream.prediction import with_threshold
from amber.downstream.results import find_model, read_run
from amber.downstream.scoring import choose_threshold
from amber.downstream.training import train_task
from amber.errors import RunError, UserError
from amber.model.task_folder import load_task_model, task_details
from amber.run.device import Process
from amber.tasks.decoding import AnswerSpan
from amber.tasks.example import Answer, QAExample
from amber.tasks.named import find_task
from amber.tasks.own import OwnData
from amber.tokens.tokenizer import load_tokenizer

CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_texts(tmp_path / "train.tsv", seed=0)
    write_texts(tmp_path / "dev.tsv", count=20, seed=1)
    return tmp_path


def test_a_separable_task_is_learned_by_every_seed(folder: Path, model: Path):
    result = finetune(toy_config(folder, model, seeds=3, recipe=LEARNING))
    assert result.is_done
    assert [run.seed for run in result.runs] == [0, 1, 2]
    assert [run.scores["dev"]["accuracy"] for run in result.runs] == [1.0, 1.0, 1.0]
    assert result.spreads["dev"]["accuracy"].median == 1.0
    assert result.baselines["dev"]["accuracy"].value == 0.5
    assert not any(run.collapsed for run in result.runs)


def test_the_folder_holds_models_with_names_and_a_record_of_everything(folder: Path, model: Path):
    result = finetune(toy_config(folder, model, seeds=2))
    out = folder / "out"
    written = json.loads((out / "results.json").read_text())
    assert written["median_model"] == result.median_model == f"seed-{result.median_seed}"
    assert written["runs"][1]["scores"] == result.runs[1].scores
    worse = min(result.runs, key=lambda run: run.scores["dev"]["accuracy"])
    assert result.median_seed == worse.seed
    assert find_model(out) == out / worse.model
    assert find_model(model) == model
    loaded = load_task_model(out / "seed-1")
    assert loaded.shape.labels == ("negative", "positive")
    details = task_details(out / "seed-1")
    assert details["task"] == "own"
    assert details["length"] == 64  # as far as the model goes
    assert details["own"]["text"] == "text"
    assert "train" not in details["own"]
    assert result.loaded_share == 29 / 33
    assert set(result.new_weights) == {
        "head.dense.weight",
        "head.dense.bias",
        "head.output.weight",
        "head.output.bias",
    }


def test_a_seed_decides_all_of_a_run(folder: Path, model: Path):
    recipe = replace(RECIPE, hidden_dropout=0.2, epochs=1)
    first = finetune(toy_config(folder, model, seeds=2, recipe=recipe))
    second = finetune(toy_config(folder, model, seed=1, recipe=recipe, out=folder / "other"))
    assert first.runs[1].epochs == second.runs[0].epochs
    assert first.runs[0].epochs != first.runs[1].epochs


def test_the_same_command_goes_on_after_the_finished_seeds(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    begun: list[int] = []
    train = seed_module.train_task

    def counting(*args, **settings):
        begun.append(settings["seed"])
        if len(begun) == 2:
            settings["is_stopped"] = lambda: True
        return train(*args, **settings)

    monkeypatch.setattr(seed_module, "train_task", counting)
    config = toy_config(folder, model, seeds=3)
    stopped = finetune(config)
    assert not stopped.is_done
    assert [run.seed for run in stopped.runs] == [0, 2]
    assert stopped.median_model is None
    with pytest.raises(UserError, match="came to no end"):
        find_model(folder / "out")
    (folder / "out" / "results.json").unlink()  # as when the process was killed
    with pytest.raises(UserError, match="came to no end"):
        find_model(folder / "out")
    (folder / "sweep").mkdir()
    (folder / "out").rename(folder / "sweep" / "epochs=1")
    with pytest.raises(UserError, match="came to no end"):
        find_model(folder / "sweep")
    (folder / "sweep" / "epochs=1").rename(folder / "out")
    result = finetune(config)
    assert result.is_done
    assert result.num_reused == 2
    assert begun == [0, 1, 2, 1]
    whole = finetune(toy_config(folder, model, seeds=3, out=folder / "whole"))
    assert [run.epochs for run in result.runs] == [run.epochs for run in whole.runs]


def test_a_run_without_its_weights_is_run_again(folder: Path, model: Path):
    config = toy_config(folder, model)
    finetune(config)
    (folder / "out" / "seed-0" / "model.safetensors").unlink()
    assert finetune(config).num_reused == 0
    assert (folder / "out" / "seed-0" / "model.safetensors").is_file()
    assert finetune(config).num_reused == 1


def test_runs_with_other_settings_are_not_used_again(folder: Path, model: Path):
    finetune(toy_config(folder, model))
    changed = toy_config(folder, model, recipe=replace(RECIPE, epochs=2))
    with pytest.raises(UserError, match=r"had other settings \(recipe.epochs: 3 -> 2\)"):
        finetune(changed)
    write_texts(folder / "train.tsv", seed=5)
    with pytest.raises(UserError, match=r"had other settings \(data_fingerprint"):
        finetune(toy_config(folder, model))


@pytest.mark.slow
def test_two_processes_give_the_bits_of_one(folder: Path, model: Path):
    recipe = replace(RECIPE, hidden_dropout=0.1, epochs=1)
    one = finetune(toy_config(folder, model, seeds=3, recipe=recipe))
    two = finetune(toy_config(folder, model, seeds=3, jobs=2, recipe=recipe, out=folder / "two"))
    assert [run.epochs for run in one.runs] == [run.epochs for run in two.runs]
    for run in one.runs:
        left = load_task_model(folder / "out" / run.model).state_dict()
        right = load_task_model(folder / "two" / run.model).state_dict()
        assert all(weight.equal(right[name]) for name, weight in left.items())


@pytest.mark.slow
def test_no_process_goes_on_when_the_first_is_killed(folder: Path, model: Path):
    settings = "--seeds 2 --jobs 2 --threads 1 --device cpu --recipe.epochs 100000"
    words = ["finetune", str(model), "--task", "own", "--data", str(folder), "--out", "out"]
    command = [sys.executable, "-m", "amber", *words, *settings.split()]
    with (folder / "log").open("w") as log:
        first = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    wait_until(lambda: "epoch 1 " in (folder / "log").read_text())
    others = psutil.Process(first.pid).children(recursive=True)
    assert len(others) >= 2
    first.kill()
    first.wait()
    wait_until(lambda: not any(other.is_running() for other in others))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Look again and again, for a minute at most."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_best_epoch_is_kept_when_that_is_asked_for(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    scores = iter([0.25, 0.75, 0.5])
    real, weights = seed_module.score_predictions, []

    def scored(*args, **settings):
        found = real(*args, **settings)
        value = next(scores, 0.75)
        return replace(found, values=dict.fromkeys(found.values, value))

    def seen(watch, done):
        going_on = note(watch, done)
        weights.append(watch.model.head.output.weight.detach().clone())
        return going_on

    note = seed_module.Watch.note
    monkeypatch.setattr(seed_module, "score_predictions", scored)
    monkeypatch.setattr(seed_module.Watch, "note", seen)
    result = finetune(toy_config(folder, model, keep="best"))
    assert [epoch.score for epoch in result.runs[0].epochs] == [0.25, 0.75, 0.5]
    assert result.runs[0].epoch == 2
    kept = load_task_model(folder / "out" / "seed-0").head.output.weight
    assert kept.equal(weights[1])
    assert not kept.equal(weights[2])


def test_patience_ends_a_run_that_gets_no_better(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    real = seed_module.score_predictions

    def same(*args, **settings):
        found = real(*args, **settings)
        return replace(found, values=dict.fromkeys(found.values, 0.5))

    monkeypatch.setattr(seed_module, "score_predictions", same)
    recipe = replace(RECIPE, epochs=9)
    run = finetune(toy_config(folder, model, patience=2, recipe=recipe)).runs[0]
    assert len(run.epochs) == 3
    assert run.epoch == 3
    assert run.num_steps == 3 * 6


def test_weight_decay_reaches_the_rows_that_train_never_uses(folder: Path, model: Path):
    recipe = replace(RECIPE, weight_decay=0.5, warmup_fraction=0.0, epochs=1)
    config = toy_config(folder, model, recipe=recipe)
    finetune(config)
    trained = load_task_model(folder / "out" / "seed-0")
    plan = make_plan(config, CPU)
    (assignment,) = plan.assignments
    whole, train = seed_module.open_network(plan.work, assignment), plan.work.encodings[0].train
    unused = np.setdiff1d(np.arange(SHAPE.vocab_size), train.input_ids)
    before = whole.encoder.embeddings.token.weight[unused].detach().clone()
    train_task(whole, train, assignment.recipe, CPU, seed=0, pad_id=plan.work.pad_id)
    for name, weight in whole.named_parameters():
        assert trained.get_parameter(name).equal(weight), name
    shares = [1 - 0.01 * (1 - step / 6) * 0.5 for step in range(6)]  # rate * decay of six steps
    expected = before * math.prod(shares)
    torch.testing.assert_close(trained.encoder.embeddings.token.weight[unused], expected)
    assert len(unused) > 5


def test_a_run_that_predicts_one_class_is_flagged(folder: Path, model: Path):
    recipe = replace(RECIPE, learning_rate=1e-9, epochs=1)
    run = finetune(toy_config(folder, model, recipe=recipe)).runs[0]
    assert run.collapsed in ("negative", "positive")
    assert run.scores["dev"]["accuracy"] == 0.5
    saved = read_run(folder / "out" / "seed-0" / "run.json")
    assert saved == run
    assert "Every prediction on dev is" in (folder / "out/seed-0/README.md").read_text()


def test_the_card_says_what_the_model_is_and_how_it_is_opened(folder: Path, model: Path):
    recipe = replace(RECIPE, epochs=1)
    run = finetune(toy_config(folder, model, recipe=recipe)).runs[0]
    path = folder / "out" / "seed-0"
    card = (path / "README.md").read_text()
    assert "# classification on own data\n" in card
    assert "gives a text one of its labels: negative, positive.\n" in card
    assert f"on 48 examples of own data, starting from {model.name}" in card
    score = f"{run.scores['dev']['accuracy']:.4f}"
    assert f"| dev accuracy | {score} | 0.5000 (always 'negative') |" in card
    code = card.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(path))
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["model"].config.id2label == {0: "negative", 1: "positive"}
    config = toy_config(
        folder, model, recipe=recipe, head="official", from_scratch=True, out=folder / "official"
    )
    finetune(config)
    card = (folder / "official" / "seed-0" / "README.md").read_text()
    assert "starting from random weights" in card
    assert "library_name" not in card
    assert "`transformers` has no class for its head" in card


def test_a_loss_that_is_no_number_stops_with_the_seed_and_the_steps(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "amber.downstream.training.task_loss_sum",
        lambda model, batch, process: model.head.output.weight.sum() * torch.nan,
    )
    with pytest.raises(RunError, match="seed 0: steps 1 to [56]: the loss is not finite"):
        finetune(toy_config(folder, model))


def test_a_limited_training_takes_the_same_examples_for_all_seeds(folder: Path, model: Path):
    result = finetune(toy_config(folder, model, seeds=2, limit_train=16))
    assert result.num_examples == {"train": 16, "dev": 20}
    assert "trained on 16 of 48 examples, by chance" in result.notes
    assert {run.num_steps for run in result.runs} == {6}
    assert len({run.settings["data_fingerprint"] for run in result.runs}) == 1

    def fingerprint(**changes) -> str:
        plan = make_plan(toy_config(folder, model, out=folder / "c", **changes), CPU)
        return plan.assignments[0].settings["data_fingerprint"]

    expected = result.runs[0].settings["data_fingerprint"]
    assert fingerprint(seed=7, limit_train=16) == expected
    assert fingerprint(seed=7, limit_train=17) != expected
    with pytest.raises(UserError, match="limit_train is 49, and there are 48 examples"):
        finetune(toy_config(folder, model, limit_train=49, out=folder / "b"))


def test_bad_data_stops_before_anything_is_written(folder: Path, model: Path):
    (folder / "dev.tsv").write_text("text\tlabel\ngood one\tpositive\ntwo\tneutral\n")
    with pytest.raises(UserError, match=r"dev\.tsv, line 3, column 'label': label 'neutral'"):
        finetune(toy_config(folder, model))
    (folder / "dev.tsv").unlink()
    with pytest.raises(UserError, match=r"no dev file .* with --own.dev-fraction 0.1"):
        finetune(toy_config(folder, model))
    assert not (folder / "out").exists()


def test_results_are_not_written_among_the_files_of_a_model(folder: Path, model: Path):
    with pytest.raises(UserError, match=r"holds a model or a pre-training \(config\.json\)"):
        finetune(toy_config(folder, model, out=model))
    (folder / "run" / "discriminator").mkdir(parents=True)
    with pytest.raises(UserError, match=r"\(discriminator\): give another --out"):
        finetune(toy_config(folder, model, out=folder / "run"))
    assert [path.name for path in (folder / "run").iterdir()] == ["discriminator"]


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "m: no space is left"), (errno.EFBIG, "m: a file gets larg")]
)
def test_a_disk_that_fills_is_told_by_every_process_in_one_line(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
):
    def fail(*_args: object) -> None:
        raise OSError(code, "x", "m")

    monkeypatch.setattr(parallel, "do_one", fail)
    monkeypatch.setattr(parallel.multiprocessing, "parent_process", threading.current_thread)
    plan = make_plan(toy_config(folder, model), CPU)
    todo, told = queue.Queue[Any](), queue.Queue[parallel.Message]()
    todo.put((0, plan.assignments[0]))
    todo.put(None)
    parallel.work_through(plan.work, CPU, todo, told, threading.Event())
    message = told.get_nowait()
    assert (message.kind, message.text[: len(words)]) == ("run_error", words)


def test_unlabelled_examples_cannot_be_scored(folder: Path, model: Path):
    (folder / "test.tsv").write_text("text\ngood one\n")
    with pytest.raises(UserError, match=r"test.tsv: 1 of 1 examples have no label"):
        finetune(toy_config(folder, model, score_on="test"))


def test_the_test_file_is_scored_only_when_that_is_asked_for(folder: Path, model: Path):
    write_texts(folder / "test.tsv", count=10, seed=2)
    assert set(finetune(toy_config(folder, model)).spreads) == {"dev"}
    result = finetune(toy_config(folder, model, score_on="test", out=folder / "b"))
    assert set(result.spreads) == {"test"}
    assert result.num_examples["test"] == 10


def test_a_part_of_train_becomes_dev(folder: Path, model: Path):
    (folder / "dev.tsv").unlink()
    own = OwnData(dev_fraction=0.3)
    result = finetune(toy_config(folder, model, own=own))
    assert result.num_examples["train"] + result.num_examples["dev"] == 48


def test_files_may_be_named_one_by_one(folder: Path, model: Path):
    files = (folder / "train.tsv", folder / "dev.tsv")
    assert finetune(toy_config(folder, model, data=files)).is_done
    with pytest.raises(UserError, match="data has 2 paths: give one folder"):
        finetune(toy_config(folder, model, data=(folder, files[1])))


def test_a_fine_tuned_run_can_be_the_start_of_another(folder: Path, model: Path):
    first = finetune(toy_config(folder, model))
    again = finetune(toy_config(folder, folder / "out", out=folder / "second"))
    assert again.model == str(folder / "out" / str(first.median_model))
    assert set(again.new_weights) == {"head.output.weight", "head.output.bias"}


def test_too_long_texts_are_cut_and_counted(folder: Path, model: Path):
    result = finetune(toy_config(folder, model, recipe=replace(RECIPE, length=6)))
    lengths = [
        len(line.split("\t")[0].split())
        for line in (folder / "dev.tsv").read_text().splitlines()[1:]
    ]
    assert result.truncated_share["dev"] == sum(n > 4 for n in lengths) / 20
    with pytest.raises(UserError, match="recipe.length is 65, and the model reads 64 tokens"):
        finetune(toy_config(folder, model, recipe=replace(RECIPE, length=65), out=folder / "b"))


def test_a_training_whose_only_step_has_the_rate_zero_is_refused(folder: Path, model: Path):
    recipe = replace(RECIPE, epochs=1, batch_size=48)
    with pytest.raises(UserError, match="has one step, 48 sequences once"):
        finetune(toy_config(folder, model, recipe=recipe))
    recipe = replace(recipe, warmup_fraction=0.0)
    assert finetune(toy_config(folder, model, recipe=recipe)).is_done


def test_drawn_numbers_that_are_all_the_same_are_refused(folder: Path, model: Path):
    rows = ["text\tlabel", *["good\t2"] * 40, "bad\t3"]
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("\n".join([*rows, ""]))
    config = toy_config(folder, model, own=OwnData(kind="regression"), limit_train=3)
    with pytest.raises(UserError, match="every example to train on has the number 2.0"):
        finetune(config)


def test_another_place_of_the_same_answer_is_other_data(tmp_path: Path):
    from_folder = write_model(tmp_path / "tiny")
    tokenizer = load_tokenizer(from_folder)
    digests = [
        fingerprint_of(
            encode_examples(
                "qa",
                [
                    QAExample(
                        id="0",
                        question="who",
                        context="anna one anna",
                        answers=(Answer(text="anna", start=start),),
                    )
                ],
                tokenizer,
                labels=(),
                length=32,
                stride=8,
                max_question=8,
            )
        )
        for start in (0, 9)
    ]
    assert digests[0] != digests[1]


@pytest.mark.parametrize(("is_test", "threshold"), [(False, None), (True, 0.0)])
def test_no_threshold_is_chosen_by_test_examples(is_test: bool, threshold: float | None):
    spans = tuple(
        AnswerSpan(text="anna", start=0, score=1.0, no_answer_score=1.0 + ahead)
        for ahead in (0.5, 1.5)
    )
    found, chosen = choose_threshold(
        find_task("squad2"), [("anna",), ()], with_threshold(spans, None), is_test=is_test
    )
    if threshold is None:
        assert chosen is not None
        assert 0.5 <= chosen < 1.5
        assert found.values == ("anna", "")
    else:
        assert chosen == threshold
        assert found.values == ("", "")
