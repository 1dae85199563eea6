"""Scores of a fine-tuned model: those of its own run on the same files, and others refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import RECIPE, questions, tagged, toy_config, write_lines, write_model, write_texts
from tuned_models import tune

from amber.downstream.evaluation import evaluate_task, refuse_idle_settings
from amber.downstream.finetune import finetune
from amber.downstream.inputs import layout_for
from amber.downstream.tuned_model import find_tuned, open_tuned
from amber.errors import UserError
from amber.run.commands import EvaluateConfig
from amber.tasks.config import DataColumns, OwnData

SHORT = replace(RECIPE, epochs=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


def numbers(path: Path, source: Path) -> Path:
    lines = source.read_text().splitlines()[1:]
    rows = [f"{line.split(chr(9))[0]}\t{len(line) * 0.37}" for line in lines]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return path


def write_data(folder: Path, kind: str) -> Path:
    folder.mkdir()
    for seed, split in enumerate(("train", "dev")):
        if kind == "tagging":
            write_lines(folder / f"{split}.jsonl", tagged(count=16, seed=seed))
        elif kind == "qa":
            records = questions(count=16, seed=seed, unanswerable=True)
            write_lines(folder / f"{split}.jsonl", records)
        else:
            path = write_texts(folder / f"{split}.tsv", count=16, seed=seed)
            if kind == "regression":
                numbers(path, path)
    return folder


def test_a_run_keeps_how_its_words_were_joined(model: Path, tmp_path: Path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split, words in (("train", "ab"), ("dev", ("anna", "b"))):
        record = {"words": list(words), "tags": ["B-PER", "O"]}
        write_lines(folder / f"{split}.jsonl", [record])
    config = toy_config(folder, model, recipe=SHORT, own=OwnData(kind="tagging"))
    result = finetune(replace(config, out=tmp_path / "out"))
    tuned = open_tuned(tmp_path / "out")
    assert tuned.details["joiner"] == ""
    assert layout_for(tuned, task=None, columns=DataColumns()).task.joiner == ""
    alone = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=folder / "dev.jsonl"))
    assert alone.scores == {"file": result.runs[0].scores["dev"]}


@pytest.mark.parametrize("kind", ["classification", "regression", "tagging", "qa"])
def test_the_scores_are_those_of_the_run_to_the_last_bit(kind, model: Path, tmp_path: Path):
    folder = write_data(tmp_path / "data", kind)
    recipe = replace(SHORT, **({} if kind == "regression" else {"learning_rate": 3e-3}))
    if kind == "qa":
        recipe = replace(recipe, head_dropout=0.1, max_question=8)
    own = OwnData(kind=kind)
    result = finetune(toy_config(folder, model, recipe=recipe, own=own, out=tmp_path / "out"))
    found = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=folder))
    assert found.scores == result.runs[0].scores
    assert found.baselines == result.baselines
    assert found.metrics == result.metrics
    assert found.num_examples == {"dev": 16}
    assert found.baseline_from == "train"
    [dev] = folder.glob("dev.*")
    alone = evaluate_task(EvaluateConfig(model=tmp_path / "out" / "seed-0", data=dev))
    assert alone.scores == {"file": result.runs[0].scores["dev"]}
    assert alone.baseline_from == "these examples"


def test_the_part_of_train_that_was_dev_is_dev_again(model: Path, tmp_path: Path):
    folder = write_data(tmp_path / "data", "classification")
    (folder / "dev.tsv").unlink()
    config = toy_config(folder, model, recipe=SHORT, own=OwnData(dev_fraction=0.4))
    result = finetune(replace(config, out=tmp_path / "out"))
    found = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=folder))
    assert found.num_examples["dev"] == result.num_examples["dev"]
    assert found.scores == result.runs[0].scores
    for data in (folder, folder / "train.tsv"):
        dev = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=data, split="dev"))
        assert dev.scores == result.runs[0].scores
        train = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=data, split="train"))
        assert train.num_examples == {"train": result.num_examples["train"]}
    whole = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=folder / "train.tsv"))
    assert whole.num_examples == {"file": 16}
    assert [note for note in whole.notes if "--split dev scores the part" in note]


def test_the_part_of_a_named_task_that_was_dev_is_dev_again(model: Path, tmp_path: Path):
    folder = tmp_path / "RTE"
    folder.mkdir()
    rows = [f"{n}\tgood {n % 5}\tone {n}\t{'not_' * (n % 2)}entailment" for n in range(20)]
    lines = ["index\tsentence1\tsentence2\tlabel", *rows]
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    config = toy_config(folder, model, recipe=SHORT, own=OwnData())
    config = replace(config, task="rte", data=(folder,), dev_fraction=0.3, out=tmp_path / "out")
    result = finetune(config)
    found = evaluate_task(EvaluateConfig(model=tmp_path / "out", data=folder))
    assert found.num_examples == {"dev": result.num_examples["dev"]}
    assert found.scores == result.runs[0].scores


def test_a_named_task_is_scored_in_its_own_layout(model: Path, tmp_path: Path):
    folder = tmp_path / "glue" / "CoLA"
    folder.mkdir(parents=True)
    lines = ["x\t1\t\tgood one", "x\t0\t*\tbad two", "x\t1\t\tred is round", "x\t0\t\tbad"]
    (folder / "dev.tsv").write_text("\n".join(lines) + "\n")
    tuned = tune(tmp_path / "m", model, "classification", labels=("0", "1"), task="cola", own={})
    whole = evaluate_task(EvaluateConfig(model=tuned, data=tmp_path / "glue"))
    alone = evaluate_task(EvaluateConfig(model=tuned, data=folder / "dev.tsv"))
    assert whole.metrics == ("mcc", "accuracy")
    assert whole.scores["dev"] == alone.scores["file"]
    with pytest.raises(UserError, match=r"no test file \(there is dev\)"):
        evaluate_task(EvaluateConfig(model=tuned, data=tmp_path / "glue", split="test"))
    (folder / "dev.tsv").write_text("\n".join([*lines, "x\t2\t\tgood"]) + "\n")
    with pytest.raises(UserError, match=r"dev\.tsv, line 5, .* '2' is not among .* of the model"):
        evaluate_task(EvaluateConfig(model=tuned, data=tmp_path / "glue"))


def test_both_dev_files_of_mnli_are_scored(model: Path, tmp_path: Path):
    folder = tmp_path / "MNLI"
    folder.mkdir()
    names = ("entailment", "neutral", "contradiction")
    for half, count in (("matched", 3), ("mismatched", 2)):
        rows = ["sentence1\tsentence2\tgold_label"]
        rows += [f"good one\tbad {label}\t{label}" for label in names[:count]]
        (folder / f"dev_{half}.tsv").write_text("\n".join(rows) + "\n")
    tuned = tune(tmp_path / "m", model, "classification", labels=names, task="mnli", own={})
    found = evaluate_task(EvaluateConfig(model=tuned, data=folder))
    assert found.num_examples == {"dev": 3, "dev_mismatched": 2}
    one = evaluate_task(EvaluateConfig(model=tuned, data=folder, split="dev_mismatched"))
    assert one.scores == {"dev_mismatched": found.scores["dev_mismatched"]}


def test_tables_of_words_or_questions_are_read_for_named_tasks(model: Path, tmp_path: Path):
    tuned = tune(tmp_path / "m", model, "tagging", task="conll2003", own={})
    records = [{"words": ["bad", "one"], "tags": ["O", "B-PER"]}]
    found = evaluate_task(
        EvaluateConfig(model=tuned, data=write_lines(tmp_path / "a.jsonl", records))
    )
    assert found.num_examples == {"file": 1}
    tuned = tune(tmp_path / "q", model, "qa", task="squad1", own={})
    path = write_lines(tmp_path / "q.jsonl", questions(count=3))
    found = evaluate_task(EvaluateConfig(model=tuned, data=path))
    assert found.num_examples == {"file": 3}
    assert set(found.metrics) == {"answer_f1", "exact_match"}


def test_files_that_cannot_be_scored_are_named(model: Path, tmp_path: Path):
    tuned = tune(tmp_path / "m", model, "classification")
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\ngood\tpositive\nbad\tpositiv\n")
    with pytest.raises(UserError, match=r"a\.tsv, line 3.*label 'positiv'.*did you mean"):
        evaluate_task(EvaluateConfig(model=tuned, data=path))
    path.write_text("text\tgold\ngood\tpositive\nbad\tnegative\n")
    with pytest.raises(
        UserError, match=r"2 of 2 examples have no label .* 'label': .* --own.label"
    ):
        evaluate_task(EvaluateConfig(model=tuned, data=path))
    found = evaluate_task(EvaluateConfig(model=tuned, data=path, own=DataColumns(label="gold")))
    assert found.num_examples == {"file": 2}
    with pytest.raises(UserError, match=r"none: no such file or folder"):
        evaluate_task(EvaluateConfig(model=tuned, data=tmp_path / "none"))
    with pytest.raises(UserError, match="split has no effect on .*a.tsv, which is one file"):
        evaluate_task(EvaluateConfig(model=tuned, data=path, split="dev"))


@pytest.mark.parametrize("kind", ["classification", "regression", "tagging", "qa"])
def test_each_example_is_given_with_its_truth_and_its_prediction(kind, model: Path, tmp_path: Path):
    folder = write_data(tmp_path / "data", kind)
    [path] = folder.glob("dev.*")
    labels = {
        "classification": ("negative", "positive"),
        "tagging": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"),
    }
    tuned = tune(tmp_path / "m", model, kind, labels=labels.get(kind))
    told: list[dict[str, Any]] = []
    found = evaluate_task(EvaluateConfig(model=tuned, data=path), on_verdict=told.append)
    assert [one["id"] for one in told] == [str(number) for number in range(16)]
    assert {one["split"] for one in told} == {"file"}
    scores = found.scores["file"]
    if kind == "classification":
        lines = [line.split("\t") for line in path.read_text().splitlines()[1:]]
        assert [[one["text"], one["gold"]] for one in told] == lines
        assert all(one["is_right"] == (one["label"] == one["gold"]) for one in told)
        assert sum(one["is_right"] for one in told) / 16 == scores["accuracy"]
    elif kind == "regression":
        assert all(one["error"] == one["value"] - one["gold"] for one in told)
    elif kind == "tagging":
        right = sum(each in one["gold"] for one in told for each in one["entities"])
        predicted = sum(len(one["entities"]) for one in told)
        assert right / max(1, predicted) == scores["entity_precision"]
        assert all(one["is_right"] == (one["gold"] == one["entities"]) for one in told)
    else:
        assert {"question", "context", "gold", "answer"} <= told[0].keys()
        assert sum(one["is_right"] for one in told) / 16 == scores["exact_match"]


def test_settings_for_the_other_kind_of_model_are_refused(model: Path, tmp_path: Path):
    data = tmp_path / "a"
    for settings in ({"length": 5}, {"fraction": 0.1}, {"pairs": data}):
        config = EvaluateConfig(model=model, data=data, **settings)
        refuse_idle_settings(config, is_tuned=False)
        with pytest.raises(UserError, match="has no effect on .* was fine-tuned for a task"):
            refuse_idle_settings(config, is_tuned=True)
    for settings in ({"task": "cola"}, {"split": "dev"}, {"own": DataColumns(text="a")}):
        config = EvaluateConfig(model=model, data=data, **settings)
        refuse_idle_settings(config, is_tuned=True)
        with pytest.raises(UserError, match="has no effect on .* was not fine-tuned"):
            refuse_idle_settings(config, is_tuned=False)


def test_a_fine_tuned_folder_is_told_from_a_pre_trained_one(model: Path, tmp_path: Path):
    assert find_tuned(model) is None
    assert find_tuned(tmp_path) is None
    for kind in ("classification", "qa"):
        for head in ("hugging_face", "official"):
            folder = tune(tmp_path / f"{kind}-{head}", model, kind, head=head)
            assert find_tuned(folder) == folder
            tuned = open_tuned(folder)
            assert (tuned.length, tuned.task) == (24 if kind == "qa" else 16, "own")


def test_that_all_predictions_are_alike_is_said_once(model: Path, tmp_path: Path):
    write_lines(tmp_path / "a.jsonl", questions(count=4, unanswerable=True))
    folder = tune(tmp_path / "m", model, "qa", threshold=-1e9)
    found = evaluate_task(EvaluateConfig(model=folder, data=tmp_path / "a.jsonl"))
    assert found.collapsed == {"file": "no answer"}
    assert not [note for note in found.notes if "every prediction" in note]
