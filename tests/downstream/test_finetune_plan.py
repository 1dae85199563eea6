"""What is known before the first step: the examples that are read, and the threads of each run."""

from pathlib import Path

import pytest
import torch
from toy_tasks import toy_config, write_model, write_texts

import amber.downstream.plan as plan_module
from amber.downstream.config import RecipeConfig
from amber.downstream.finetune import finetune
from amber.downstream.plan import Plan, make_plan
from amber.run.device import Process
from amber.tokens.tokenizer import load_tokenizer

CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)
PAIRS = [("one good", "two"), ("bad three", "four five"), ("six", "red")]
MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
MNLI = "index\tsentence1\tsentence2\tgold_label\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


def write_pairs(folder: Path, task: str) -> None:
    """Write three pairs to train on and two to score."""
    folder.mkdir()
    for split, count in (("train", 3), ("dev", 2)):
        rows = MRPC if task == "mrpc" else STSB
        for number, (text, pair) in enumerate(PAIRS[:count]):
            if task == "mrpc":
                rows += f"{number % 2}\t1\t2\t{text}\t{pair}\n"
            else:
                rows += f"{number}\tg\tf\ty\to\ts\ts\t{text}\t{pair}\t{number}.5\n"
        (folder / f"{split}.tsv").write_text(rows)


def trained_pairs(plan: Plan, model: Path) -> list[tuple[str, str]]:
    """Return the two texts of each sequence to train on."""
    train, tokenizer = plan.work.encodings[0].train, load_tokenizer(model)
    found = []
    for start, stop in zip(train.starts[:-1], train.starts[1:], strict=True):
        words = tokenizer.decode(train.input_ids[start:stop].tolist(), skip_special_tokens=False)
        text, pair, _ = words.removeprefix("[CLS]").split("[SEP]")
        found.append((text.strip(), pair.strip()))
    return found


@pytest.mark.parametrize("task", ["mrpc", "stsb"])
def test_pairs_without_order_are_trained_in_both_and_scored_in_one(
    task: str, model: Path, tmp_path: Path
):
    write_pairs(tmp_path / task, task)

    def planned(**given) -> Plan:
        recipe = RecipeConfig(learning_rate=1e-3, **given)
        config = toy_config(tmp_path / task, model, task=task, recipe=recipe)
        return make_plan(config, CPU)

    plan = planned()
    turned = [(pair, text) for text, pair in PAIRS]
    assert trained_pairs(plan, model) == [*PAIRS, *turned]
    labels = plan.work.encodings[0].train.labels.tolist()
    assert labels[:3] == labels[3:]
    assert len(plan.work.encodings[0].scored["dev"].sequences) == 2
    assert plan.outlines[0].num_examples == {"train": 3, "dev": 2}
    assert plan.outlines[0].num_sequences == 6
    plain = planned(both_orders=False)
    assert trained_pairs(plain, model) == PAIRS
    assert len(plain.work.encodings[0].scored["dev"].sequences) == 2


def test_threads_go_by_the_number_of_runs_and_not_of_processes(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_texts(tmp_path / "train.tsv", count=40)
    write_texts(tmp_path / "dev.tsv", count=2)
    (tmp_path / "sweep.toml").write_text("epochs = [2, 3]\n")
    monkeypatch.setattr(plan_module, "num_cores", lambda: 12)

    def threads(**changes) -> int:
        recipe = RecipeConfig(learning_rate=1e-3)
        settings = {"threads": 0, "recipe": recipe} | changes
        return make_plan(toy_config(tmp_path, model, **settings), CPU).work.num_threads

    assert [threads(seeds=2, jobs=jobs) for jobs in (1, 2)] == [6, 6]
    assert [threads(seeds=seeds) for seeds in (1, 3, 24)] == [12, 4, 1]
    assert threads(seeds=2, sweep=tmp_path / "sweep.toml") == 3
    assert threads(seeds=2, threads=5) == 5
    monkeypatch.setattr(plan_module, "num_cores", lambda: 99)
    assert threads() == 16


def test_mnlis_mismatched_examples_are_scored_beside_the_matched(model: Path, tmp_path: Path):
    row = "{}\tone good\tbad two\t{}\n"
    names = ("entailment", "neutral", "contradiction")
    rows = [row.format(number, name) for number, name in enumerate(names)]
    folder = tmp_path / "MNLI"
    folder.mkdir()
    (folder / "train.tsv").write_text(MNLI + "".join(rows))
    (folder / "dev_matched.tsv").write_text(MNLI + "".join(rows[:1]))
    (folder / "dev_mismatched.tsv").write_text(MNLI + "".join(rows[1:]))
    recipe = RecipeConfig(learning_rate=1e-3, epochs=2)
    result = finetune(toy_config(folder, model, task="mnli", recipe=recipe))
    assert result.num_examples == {"train": 3, "dev": 1, "dev_mismatched": 2}
    assert list(result.spreads) == ["dev", "dev_mismatched"]
    assert result.scored_split == "dev"
    scores = {split: values["accuracy"] for split, values in result.runs[0].scores.items()}
    # the pair is the same in all rows, so that one label is predicted for all of them
    assert scores in (
        {"dev": 1.0, "dev_mismatched": 0.0},
        {"dev": 0.0, "dev_mismatched": 0.5},
    )
