import json

import pytest

from amber.errors import UserError
from amber.tasks.named import GROUPS, TASKS, find_task
from amber.tasks.submission import write_submission


def test_glue_takes_a_table_of_index_and_prediction(tmp_path):
    predictions: dict[str, str | float] = {"0": "entailment", "1": "neutral"}
    path = write_submission(find_task("mnli"), predictions, tmp_path / "new", split="test")
    assert path == tmp_path / "new" / "MNLI-m.tsv"
    assert path.read_bytes() == b"index\tprediction\n0\tentailment\n1\tneutral\n"
    path = write_submission(find_task("mnli"), predictions, tmp_path, split="test_mismatched")
    assert path.name == "MNLI-mm.tsv"


def test_scores_of_pairs_stay_in_the_range_of_the_task(tmp_path):
    predictions: dict[str, str | float] = {"0": 5.2, "1": -0.1, "2": 2.34567}
    path = write_submission(find_task("stsb"), predictions, tmp_path)
    assert path.read_text() == "index\tprediction\n0\t5.000\n1\t0.000\n2\t2.346\n"


def test_clue_takes_one_record_on_each_line(tmp_path):
    path = write_submission(find_task("afqmc"), {"0": "1", "1": "0"}, tmp_path)
    assert path.name == "afqmc_predict.json"
    assert path.read_text() == '{"id": 0, "label": "1"}\n{"id": 1, "label": "0"}\n'
    path = write_submission(find_task("tnews"), {"3": "news_game"}, tmp_path)
    assert json.loads(path.read_text()) == {"id": 3, "label": "116", "label_desc": "news_game"}


def test_entities_are_written_with_their_places(tmp_path):
    found = {"name": {"\u53f6\u8001": [[0, 1]]}}
    path = write_submission(find_task("cluener"), {"0": found, "1": {}}, tmp_path)
    assert path.name == "cluener_predict.json"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines == [{"id": 0, "label": found}, {"id": 1, "label": {}}]


def test_answers_are_one_object(tmp_path):
    answers: dict[str, str | float] = {"q1": "1919\u5e74", "q2": ""}
    path = write_submission(find_task("squad2"), answers, tmp_path, split="dev")
    assert json.loads(path.read_text(encoding="utf-8")) == answers


def test_every_glue_and_clue_task_has_its_file():
    names = [TASKS[name].submission_files["test"] for name in GROUPS["glue"]]
    assert names == [
        *("CoLA.tsv", "SST-2.tsv", "MRPC.tsv", "STS-B.tsv", "QQP.tsv", "MNLI-m.tsv"),
        *("QNLI.tsv", "RTE.tsv", "WNLI.tsv", "AX.tsv"),
    ]
    assert all(TASKS[name].submission_files["test"] for name in GROUPS["clue"])


def test_what_no_leaderboard_takes_is_refused(tmp_path):
    with pytest.raises(UserError, match="task trec: no leaderboard's layout for 'test'"):
        write_submission(find_task("trec"), {"0": "NUM"}, tmp_path)
    with pytest.raises(UserError, match="task rte, example 4: 'yes' is not one of the labels"):
        write_submission(find_task("rte"), {"4": "yes"}, tmp_path)
