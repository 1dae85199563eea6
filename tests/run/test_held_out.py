"""`amber evaluate`: a run's own numbers, baselines, and what is refused."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from padded_tables import pad_tables
from small_runs import SmallRun, train_small, write_data

from amber.cli import evaluate as command
from amber.errors import UserError
from amber.run.commands import EvaluateConfig
from amber.run.held_out import baselines, binary_entropy, evaluate_folder


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("held_out") / "pair")


@pytest.fixture(scope="module")
def mlm(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("held_out") / "mlm", objective="mlm")


def test_a_finished_run_gives_the_numbers_of_its_last_evaluation(pair):
    held_out = evaluate_folder(EvaluateConfig(model=pair.out, data=pair.data))
    assert held_out.metrics == pair.summary.after
    assert held_out.num_examples == 11 < held_out.num_held_out_examples
    assert held_out.settings_from == str(pair.out / "config.toml")


def test_a_masked_language_model_gives_the_numbers_of_its_last_evaluation(mlm):
    held_out = evaluate_folder(EvaluateConfig(model=mlm.out, data=mlm.data))
    assert held_out.metrics == mlm.summary.after
    assert held_out.kind == "mlm"
    assert set(held_out.baselines) == {"masked_lm_loss", "masked_lm_accuracy"}


def test_a_discriminator_is_measured_with_the_generator_beside_it(pair):
    held_out = evaluate_folder(EvaluateConfig(model=pair.out / "discriminator", data=pair.data))
    assert held_out.metrics == pair.summary.after


def test_a_generator_alone_is_a_masked_language_model_with_the_same_loss(pair):
    held_out = evaluate_folder(EvaluateConfig(model=pair.out / "generator", data=pair.data))
    assert held_out.kind == "mlm"
    assert held_out.metrics["masked_lm_loss"] == pair.summary.after["masked_lm_loss"]


def test_given_settings_replace_those_of_the_run(pair):
    config = EvaluateConfig(model=pair.out, data=pair.data, examples=0, length=12, fraction=0.5)
    held_out = evaluate_folder(config)
    assert held_out.num_examples == held_out.num_held_out_examples
    assert held_out.length == 12
    assert held_out.fraction == 0.5
    assert held_out.metrics["replaced_fraction"] > pair.summary.after["replaced_fraction"]


def test_rows_of_the_table_without_a_token_are_never_drawn(pair, tmp_path):
    pad_tables(pair.out, tmp_path, num_more=8)
    metrics = evaluate_folder(EvaluateConfig(model=tmp_path, data=pair.data)).metrics
    for name in ("replaced_fraction", "sampled_masked_lm_accuracy", "disc_loss"):
        assert metrics[name] == pytest.approx(pair.summary.after[name], rel=1e-5), name


def test_a_discriminator_without_generator_is_refused(pair, tmp_path):
    shutil.copytree(pair.out / "discriminator", tmp_path / "alone")
    with pytest.raises(UserError, match="generator"):
        evaluate_folder(EvaluateConfig(model=tmp_path / "alone", data=pair.data))


def test_data_with_another_tokenizer_is_refused(pair, tmp_path):
    data = write_data(tmp_path, seed=1)
    tokenizer = data / "tokenizer" / "tokenizer.json"
    assert tokenizer.read_bytes() != (pair.data / "tokenizer" / "tokenizer.json").read_bytes()
    with pytest.raises(UserError, match="prepared with another tokenizer"):
        evaluate_folder(EvaluateConfig(model=pair.out, data=data))


def test_a_run_that_was_cut_off_says_how_to_go_on(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(UserError, match="--resume"):
        evaluate_folder(EvaluateConfig(model=tmp_path, data=tmp_path))


def test_a_name_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no folder"):
        evaluate_folder(EvaluateConfig(model=tmp_path / "google" / "electra", data=tmp_path))


def test_longer_sequences_than_the_model_takes_are_refused(pair):
    with pytest.raises(UserError, match="takes 130 tokens"):
        evaluate_folder(EvaluateConfig(model=pair.out, data=pair.data, length=131))


def test_baselines_by_hand():
    metrics = {"disc_loss": 1.0, "replaced_fraction": 0.25, "majority_accuracy": 0.75}
    metrics |= {"masked_lm_loss": 1.0, "sampled_masked_lm_accuracy": 0.5}
    found = baselines(metrics, np.array([0, 2, 2, 4]), 1.04)
    assert found["masked_lm_loss"] == 1.04
    assert found["masked_lm_accuracy"] == 0.5
    assert found["sampled_masked_lm_accuracy"] == 0.25**2 + 0.25**2 + 0.5**2
    assert found["disc_loss"] == pytest.approx(2 * math.log(2) - 0.75 * math.log(3), rel=1e-12)
    assert found["disc_accuracy"] == 0.75
    assert (found["disc_auc"], found["disc_precision"], found["disc_recall"]) == (0.5, 0.25, 0.0)


def test_where_most_are_replaced_always_saying_so_is_the_baseline():
    metrics = {"disc_loss": 1.0, "replaced_fraction": 0.1, "majority_accuracy": 0.2}
    found = baselines(metrics, np.array([1, 1]), math.log(2))
    assert found["disc_accuracy"] == found["disc_precision"] == pytest.approx(0.8)
    assert found["disc_recall"] == 1.0
    assert "masked_lm_loss" not in found


def test_copying_with_the_share_of_originals_is_the_baseline_of_naming_all():
    metrics = {
        "encoder_lm_loss": 1.0,
        "majority_accuracy": 0.75,
        "replaced_fraction": 0.25,
        "sampled_masked_lm_accuracy": 0.3,
    }
    found = baselines(metrics, np.array([1, 1]), 2.0)
    assert found["encoder_lm_loss"] == pytest.approx(binary_entropy(0.25) + 0.25 * 2.0)
    assert found["encoder_lm_accuracy"] == 0.3
    assert "disc_loss" not in found


def test_the_entropy_of_a_certain_answer_is_zero():
    assert binary_entropy(0.0) == binary_entropy(1.0) == 0.0
    assert binary_entropy(0.5) == pytest.approx(math.log(2), rel=1e-12)


def test_the_command_prints_a_table_or_one_object(pair, capsys):
    config = EvaluateConfig(model=pair.out, data=pair.data)
    assert command.run(config, is_json=False) == 0
    table = capsys.readouterr().out
    assert f"{pair.summary.after['disc_auc']:.3f}" in table
    assert "always saying" in table
    assert command.run(config, is_json=True) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == pair.summary.after


def test_sharper_samples_replace_fewer_tokens(pair):
    config = EvaluateConfig(model=pair.out, data=pair.data, examples=0)
    plain = evaluate_folder(config).metrics["replaced_fraction"]
    sharp = replace(config, temperature=0.05, top_k=2)
    assert evaluate_folder(sharp).metrics["replaced_fraction"] < plain
    alone = evaluate_folder(replace(config, top_p=1e-6)).metrics  # the most probable token only
    assert alone["sampled_masked_lm_accuracy"] == alone["masked_lm_accuracy"]


@pytest.mark.parametrize("name", ["temperature", "top_k", "top_p"])
def test_a_sampler_setting_is_refused_where_nothing_is_drawn(mlm, name):
    config = EvaluateConfig(model=mlm.out, data=mlm.data, **{name: 1 if name == "top_k" else 0.5})
    with pytest.raises(UserError, match=f"^{name} has no effect: .* is a masked language model"):
        evaluate_folder(config)
