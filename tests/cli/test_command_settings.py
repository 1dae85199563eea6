from pathlib import Path
from typing import get_args

import pytest

from amber.cli.flops import FlopsConfig
from amber.cli.settings import resolve
from amber.config import to_dict, to_toml
from amber.errors import UserError
from amber.optim.config import OptimConfig
from amber.run.config import BudgetConfig, Preset, PretrainConfig
from amber.tokens.config import PrepareConfig

NEEDED = {"data": Path("d"), "out": Path("o")}


def settings(given, config_path=None):
    return resolve(PretrainConfig, NEEDED | given, config_path=config_path)


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "f.toml"
        path.write_text(text)
        return path

    return write


def test_the_command_line_wins_over_the_file_and_the_file_over_the_preset(toml):
    path = toml('preset = "electra-small"\n[batch]\nsize = 7\nlength = 64\n')
    config = settings({"batch": {"size": 9}}, path)
    assert config.batch.size == 9  # command line
    assert config.batch.length == 64  # file
    assert config.batch.pair_fraction == 0.9  # preset named by the file
    assert config.batch.num_workers == 1  # default


@pytest.mark.parametrize("preset", get_args(Preset))
def test_every_preset_is_accepted(preset):
    budget = {"steps": 20_000}
    assert settings({"preset": preset, "budget": budget}).preset == preset
    assert resolve(FlopsConfig, {"preset": preset}, config_path=None).preset == preset


def test_a_budget_on_the_command_line_replaces_the_one_of_the_preset():
    config = settings({"preset": "electra-small", "budget": {"hours": 0.5}})
    assert config.budget == BudgetConfig(hours=0.5)


def test_without_another_budget_the_one_of_the_preset_stays():
    assert settings({"preset": "electra-small"}).budget == BudgetConfig(steps=1_000_000)


def test_two_budgets_in_one_place_stay_two_for_the_run_to_refuse():
    assert settings({"budget": {"hours": 0.5, "steps": 5}}).budget.steps == 5


def test_an_mlm_run_can_start_from_a_preset_with_a_generator():
    config = settings({"preset": "electra-small", "objective": "mlm"})
    assert config.generator == PretrainConfig(model=config.model, **NEEDED).generator
    assert settings({"preset": "electra-small"}).generator.width_fraction == 0.5


def test_an_unknown_key_of_a_file_names_the_file_and_the_nearest_key(toml):
    path = toml("[mask]\nfractoin = 0.2\n")
    with pytest.raises(UserError, match=r"f.toml \[mask\]: no setting 'fractoin'.*'fraction'"):
        settings({}, path)


def test_an_unknown_preset_of_a_file_is_an_error(toml):
    with pytest.raises(UserError, match="f.toml: preset = 'smal' is not one of 'tiny', 'small'"):
        settings({}, toml('preset = "smal"\n'))


def test_all_missing_settings_are_named_at_once():
    with pytest.raises(UserError, match="^--data and --out must be given"):
        resolve(PretrainConfig, {}, config_path=None)


def test_a_missing_positional_setting_is_named_as_the_help_names_it():
    with pytest.raises(UserError, match="^DATA must be given"):
        resolve(PretrainConfig, {"out": Path("o")}, config_path=None, positional=("data",))


def write_run(tmp_path, config):
    extra = {"data_fingerprint": "x", "tokenizer_fingerprint": "y", "versions": {"amber": "0"}}
    (tmp_path / "config.toml").write_text(to_toml(to_dict(config) | extra))


def test_a_resumed_run_has_the_settings_that_it_had(tmp_path):
    before = settings({"out": tmp_path, "preset": "electra-small", "mask": {"fraction": 0.3}})
    write_run(tmp_path, before)
    after = resolve(PretrainConfig, {"out": tmp_path, "resume": True}, config_path=None)
    assert to_dict(after) == to_dict(before) | {"resume": True}


def test_a_setting_given_while_resuming_is_taken_for_the_run_to_refuse(tmp_path):
    write_run(tmp_path, settings({"out": tmp_path}))
    given = {"out": tmp_path, "resume": True, "mask": {"fraction": 0.3}}
    assert resolve(PretrainConfig, given, config_path=None).mask.fraction == 0.3


def test_resuming_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no run to resume"):
        settings({"out": tmp_path, "resume": True})


def test_a_new_run_can_start_from_the_settings_of_a_resumed_one(tmp_path):
    write_run(tmp_path, settings({"out": tmp_path, "resume": False, "batch": {"size": 3}}))
    path = tmp_path / "config.toml"
    path.write_text(path.read_text().replace("resume = false", "resume = true"))
    config = settings({}, path)
    assert config.batch.size == 3
    assert not config.resume


def test_flops_takes_the_file_of_a_run(tmp_path):
    write_run(tmp_path, settings({"batch": {"size": 3}, "optim": {"beta1": 0.8}}))
    config = resolve(FlopsConfig, {}, config_path=tmp_path / "config.toml")
    assert config.batch.size == 3


def test_layers_that_fit_together_only_are_accepted_together(toml):
    path = toml("[model]\nhidden_size = 256\n")  # no multiple of the preset's 3 heads
    config = settings({"model": {"num_attention_heads": 4}}, path)
    assert (config.model.hidden_size, config.model.num_attention_heads) == (256, 4)
    with pytest.raises(UserError, match=r"^.*f.toml: model.hidden_size \(256\) must be a multiple"):
        settings({}, path)


def test_a_refused_value_names_the_highest_layer_that_has_it(toml):
    path = toml("[mask]\nfraction = 3.0\n")
    with pytest.raises(UserError, match=r"^.*f.toml: mask.fraction must be in"):
        settings({"seed": 1}, path)
    with pytest.raises(UserError, match="^command line: mask.fraction must be in .* got 2"):
        settings({"mask": {"fraction": 2.0}}, path)


@pytest.mark.parametrize("line", ["data = 5", "out = 5", "resume = 3", "model = 5", "preset = 5"])
@pytest.mark.parametrize("given", [{}, {"resume": True}])
def test_a_value_of_the_wrong_type_names_file_and_key(toml, line, given):
    with pytest.raises(UserError, match=rf"f.toml: {line.split()[0]} "):
        resolve(PretrainConfig, given, config_path=toml(line))


def test_a_text_that_is_no_list_names_file_and_key(toml):
    with pytest.raises(UserError, match="f.toml: text = 5 is not a list"):
        resolve(PrepareConfig, {"out": Path("o")}, config_path=toml("text = 5"))


IDLE = [
    ("muon_learning_rate", 0.1, {"matrices": "adamw"}, {"matrices": "muon"}),
    ("decay_fraction", 0.1, {"schedule": "cosine"}, {"schedule": "trapezoid"}),
    ("floor_fraction", 0.1, {"schedule": "linear"}, {"schedule": "cosine"}),
    ("floor_fraction", 0.1, {"schedule": "constant"}, {"schedule": "trapezoid"}),
]


@pytest.mark.parametrize(("name", "value", "idle", "useful"), IDLE)
def test_a_setting_given_without_effect_is_refused(toml, name, value, idle, useful):
    with pytest.raises(UserError, match=f"^command line: optim.{name} has no effect while optim."):
        settings({"optim": {name: value} | idle})
    path = toml(f"[optim]\n{name} = {value}\n")
    with pytest.raises(UserError, match=f"f.toml: optim.{name} has no effect while optim."):
        settings({"optim": idle}, path)
    assert getattr(settings({"optim": useful}, path).optim, name) == value
    assert getattr(settings({"optim": idle}).optim, name) == getattr(OptimConfig(), name)


def test_the_longest_ngram_has_no_effect_on_single_words():
    with pytest.raises(UserError, match="mask.max_ngram has no effect while mask.unit is word"):
        settings({"mask": {"max_ngram": 4, "unit": "word"}})
    assert settings({"mask": {"max_ngram": 4, "unit": "ngram"}}).mask.max_ngram == 4


def test_the_file_of_a_run_may_hold_settings_without_effect(tmp_path):
    write_run(tmp_path, settings({"optim": {"matrices": "adamw", "schedule": "linear"}}))
    assert settings({}, tmp_path / "config.toml").optim.matrices == "adamw"


@pytest.mark.parametrize("given", [{"preset": "small"}, {"batch": {"size": 3}}])
def test_the_published_models_take_no_settings(toml, given):
    with pytest.raises(UserError, match="command line: .* has no effect with paper"):
        resolve(FlopsConfig, {"paper": True} | given, config_path=None)
    with pytest.raises(UserError, match="f.toml: vocab_size has no effect"):
        resolve(FlopsConfig, {"paper": True}, config_path=toml("vocab_size = 9"))
    assert resolve(FlopsConfig, {"paper": False} | given, config_path=None).paper is False
