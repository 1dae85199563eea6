import json

import pytest

from amber.cli.flops import FlopsConfig, count
from amber.cli.main import main
from amber.cli.settings import resolve
from amber.errors import UserError


def breakdown(given):
    return count(resolve(FlopsConfig, given, config_path=None))


def test_the_whole_run_of_electra_small_is_the_published_compute():
    rules = breakdown({"preset": "electra-small"})["rules"]
    assert rules["paper"]["train_per_budget"] == pytest.approx(1.424e18, rel=1e-3)


def test_the_parts_add_up():
    result = breakdown({"budget": {"steps": 10}, "batch": {"size": 4}})
    for rule in result["rules"].values():
        train = sum(part["train"] for part in rule["parts"].values())
        assert rule["total"]["train"] == train
        assert rule["train_per_step"] == 4 * train
        assert rule["train_per_budget"] == 40 * train


def test_a_budget_of_flops_is_spent_to_the_last_step():
    result = breakdown({"budget": {"flops": 4e14}})
    assert result["rules"]["standard"]["train_per_budget"] == pytest.approx(4e14, rel=1e-9)


def test_a_budget_of_tokens_is_that_many_full_sequences():
    assert breakdown({"budget": {"tokens": 32.0 * 128 * 50}})["steps"] == 50


def test_without_a_budget_there_is_no_total():
    result = breakdown({"budget": {"hours": 1.0}})
    assert result["steps"] is None
    assert result["rules"]["paper"]["train_per_budget"] is None


def test_the_vocabulary_may_be_given_in_either_place():
    one = breakdown({"vocab_size": 8000})
    assert one["parameters"]["embeddings"] == 8001 * 192
    assert breakdown({"model": {"vocab_size": 8000}})["parameters"] == one["parameters"]


def test_the_published_models_stand_beside_the_printed_figures(capsys):
    assert main(["flops", "--paper"]) == 0
    rows = {line[:13]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert rows["ELECTRA-Base "][1:4] == ["6.4245e+19", "6.4245e+19", "6.4e+19"]
    assert main(["flops", "--paper", "--json"]) == 0
    assert "1/4" in json.loads(capsys.readouterr().out)["remark"]


def test_the_table_fits_80_columns(capsys):
    main(["flops", "--preset", "electra-small"])
    lines = capsys.readouterr().out.splitlines()
    table = lines[lines.index("") + 1 : -4]
    assert max(map(len, table)) <= 80
    assert any(line.startswith("1,000,000 steps") for line in table)


OBJECTIVES = ("rtd", "rtd_masked", "replace_mlm", "all_tokens_mlm", "mlm", "electric")


def noise_of(objective):
    return {"noise": {"source": "two_tower"}} if objective == "electric" else {}


@pytest.mark.parametrize("preset", ["tiny", "electra-small"])
def test_every_objective_has_its_own_price(preset):
    results = {
        name: breakdown({"preset": preset, "objective": name} | noise_of(name))
        for name in OBJECTIVES
    }
    prices = {
        name: result["rules"]["standard"]["train_per_step"] for name, result in results.items()
    }
    assert prices["rtd_masked"] < prices["rtd"] < prices["electric"]
    assert prices["mlm"] < prices["replace_mlm"] < prices["all_tokens_mlm"]


def two_stage(budget, share=0.25):
    return breakdown({"algorithm": "two_stage", "switch_fraction": share, "budget": budget})


def test_two_stages_share_a_budget_of_steps():
    result = two_stage({"steps": 100}, 0.07)  # the product is a little more than 7
    first, second = result["stages"].values()
    assert (first["steps"], second["steps"], result["steps"]) == (7, 93, 100)
    for rule, totals in result["rules"].items():
        parts = [7 * first["rules"][rule]["train_per_step"]]
        parts.append(93 * second["rules"][rule]["train_per_step"])
        assert totals["train_per_budget"] == sum(parts)


def test_the_discriminator_is_in_the_second_stage_only():
    result = two_stage({"steps": 100})
    first, second = (stage["rules"]["standard"]["parts"] for stage in result["stages"].values())
    assert not any(name.startswith("discriminator") for name in first)
    for name, part in first.items():
        assert part["train"] == 3 * part["forward"]
        assert second[name] == {"forward": part["forward"], "train": part["forward"]}
    assert "discriminator: RTD head" in second


def test_two_stages_share_a_budget_of_flops():
    result = two_stage({"flops": 4e14})
    first, second = (stage["rules"]["standard"] for stage in result["stages"].values())
    assert first["train_per_budget"] == pytest.approx(1e14, rel=1e-9)
    assert second["train_per_budget"] == pytest.approx(3e14, rel=1e-9)


def test_two_stages_have_two_networks_of_one_size_whatever_the_preset_says():
    result = two_stage({"tokens": 32.0 * 128 * 40})
    assert [stage["steps"] for stage in result["stages"].values()] == [10, 30]
    parameters = result["parameters"]
    assert parameters["generator encoder"] == parameters["encoder"]


def test_two_stages_without_a_budget_have_no_total():
    result = two_stage({"hours": 1.0})
    assert result["steps"] is None
    assert result["rules"]["paper"]["train_per_budget"] is None


def test_two_stages_are_shown_one_below_the_other(capsys):
    assert main(["flops", "--algorithm", "two_stage", "--budget.steps", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = [line.partition("  ")[0].strip() for line in lines]
    order = [starts.index(name) for name in ("first stage", "second stage", "10 steps in all")]
    assert order == sorted(order)
    assert starts.count("5 steps") == 2
    assert max(map(len, lines[1 : order[-1] + 1])) <= 80


def test_a_frozen_generator_has_the_shape_of_its_folder(tmp_path, capsys):
    shape = {"model_type": "electra", "vocab_size": 50, "embedding_size": 8, "hidden_size": 16}
    shape |= {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    (tmp_path / "config.json").write_text(json.dumps(shape))
    words = ["flops", "--noise.source", "frozen", "--noise.checkpoint", str(tmp_path), "--json"]
    assert main([*words, "--vocab-size", "50"]) == 0
    result = json.loads(capsys.readouterr().out)
    head = result["rules"]["standard"]["parts"]["generator: MLM head"]
    assert head["train"] == head["forward"] == 19 * (2 * 16 * 8 + 2 * 8 * 50)
    assert result["parameters"]["frozen generator MLM head"] == 16 * 8 + 3 * 8 + 50
    assert main([*words, "--vocab-size", "51"]) == 2
    assert "the model has 50 tokens, not 51: give vocab_size 50" in capsys.readouterr().err
    assert main([*words[:4], str(tmp_path / "x")]) == 2
    assert "give a model folder" in capsys.readouterr().err


REFUSED = [
    ("--objective mlm --algorithm adversarial", "algorithm has no effect while objective is mlm"),
    ("--objective mlm --noise.source uniform", "noise.source has no effect while objective is mlm"),
    ("--objective mlm --sharing none", "sharing has no effect while objective is mlm"),
    ("--objective mlm --generator.depth-fraction 0.5", "generator.depth_fraction has no effect"),
    ("--noise.source unigram --sharing gdes", "sharing has no effect while noise.source is uni"),
    ("--noise.source uniform --generator.depth-fraction 0.5", "depth_fraction has no effect while"),
    ("--algorithm two_stage --sharing tokens", "sharing has no effect while algorithm is two_st"),
    ("--algorithm two_stage --generator.depth-fraction 0.5", "depth_fraction has no effect while"),
    ("--sharing all --generator.depth-fraction 0.5", "depth_fraction has no effect while sharing"),
    ("--switch-fraction 0.3", "switch_fraction has no effect while algorithm is joint"),
    ("--switch-fraction 1 --algorithm two_stage", "switch_fraction must be in (0, 1), got 1"),
    ("--algorithm two_stage --noise.source unigram", "algorithm is two_stage, but noise.source is"),
    ("--sharing all --noise.source two_tower", "sharing is all, but noise.source is two_tower"),
    ("--objective electric", "objective is electric, but noise.source is generator"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_settings_that_do_not_fit_are_refused_in_one_line(words, message, capsys):
    assert main(["flops", *words.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_sharing_changes_the_parameters_and_own_tables_the_work():
    def both(**given):
        result = breakdown({"preset": "electra-small"} | given)
        rules = result["rules"]["standard"]
        return rules["train_per_step"], sum(result["parameters"].values())

    flops, size = both()
    assert both(sharing="gdes") == (flops, size + 30_522 * 128 + (512 + 2 + 2) * 128)
    assert both(sharing="tokens") == (flops, size + (512 + 2 + 2) * 128)
    modern = {"preset": "tiny", "generator": {"width_fraction": 1 / 3}}
    own, shared = both(sharing="none", **modern), both(preset="tiny")
    assert own[0] < shared[0]  # the vocabulary is scored from 64 units, not from 192


def test_the_file_of_a_run_with_settings_that_another_objective_does_not_have_is_refused(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('algorithm = "two_stage"\nobjective = "rtd"\n[versions]\namber = "0"\n')
    config = resolve(FlopsConfig, {"objective": "mlm"}, config_path=path)
    with pytest.raises(UserError, match="algorithm has no effect while objective is mlm"):
        count(config)
    assert count(resolve(FlopsConfig, {}, config_path=path))["algorithm"] == "two_stage"
