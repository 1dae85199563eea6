from typing import get_args

import pytest

from amber.errors import UserError
from amber.tasks.glue import PAPER_AVERAGE
from amber.tasks.metrics import Metric
from amber.tasks.named import GROUPS, TASKS, find_task


def test_a_name_is_found_however_it_is_written():
    for name in ("SST-2", "sst2", "SST_2", "Sst 2"):
        assert find_task(name).name == "sst2"
    assert find_task("STS-B").name == "stsb"
    assert find_task("XQuAD.zh").name == "xquad-zh"


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"'colla': no task has this name; did you mean 'cola'\?"):
        find_task("colla")


def test_every_score_is_one_that_can_be_computed():
    known = {name for part in get_args(Metric) for name in get_args(part) or (part,)}
    assert {name for task in TASKS.values() for name in task.metrics} <= known


def test_groups_and_the_papers_average_name_tasks():
    assert {name for names in GROUPS.values() for name in names} <= set(TASKS)
    assert set(PAPER_AVERAGE) == set(GROUPS["glue"]) - {"wnli", "ax"}
    primary = {name: TASKS[name].metrics[0] for name in PAPER_AVERAGE}
    assert primary.pop("cola") == "mcc"
    assert primary.pop("stsb") == "spearman"
    assert set(primary.values()) == {"accuracy"}


def test_epochs_are_those_of_the_paper():
    epochs = {name: TASKS[name].epochs for name in TASKS}
    assert {name for name, number in epochs.items() if number == 10} == {"rte", "stsb"}
    assert all((number == 2) == (TASKS[name].kind == "qa") for name, number in epochs.items())
