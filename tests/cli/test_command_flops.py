import json

import pytest

from amber.cli.flops import FlopsConfig, count
from amber.cli.main import main
from amber.cli.settings import resolve


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
