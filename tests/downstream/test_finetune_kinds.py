"""Every kind of task with every head: tiny data are learned, and predictions have their form."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_tasks import (
    LEARNING,
    questions,
    sentence,
    tagged,
    toy_config,
    write_lines,
    write_model,
    write_texts,
)

from amber.downstream.encoded import encode_examples, gold_of, with_both_orders
from amber.downstream.finetune import finetune
from amber.downstream.prediction import predict_examples
from amber.downstream.scoring import same_everywhere
from amber.downstream.target_scale import TargetScale
from amber.errors import UserError
from amber.model.task_folder import load_task_model, open_for_task
from amber.model.task_shape import TaskShape
from amber.run.device import Process
from amber.tasks.example import Answer, QAExample, TextExample
from amber.tasks.own import OwnData
from amber.tokens.tokenizer import load_tokenizer

CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)
HEADS = pytest.mark.parametrize("head", ["hf", "official"])
PLAIN = replace(LEARNING, head_dropout=0.1)  # for heads without dropout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


def again(folder: Path, run: str, kind: str, examples, labels=()):
    """Predict with a saved model."""
    network = load_task_model(folder / "out" / run)
    encoded = encode_examples(
        kind,
        examples,
        load_tokenizer(folder / "out" / run),
        labels=labels,
        length=64,
        stride=32,
        max_question=8,
    )
    return predict_examples(network, encoded, CPU, pad_id=0)


@HEADS
def test_tags_are_learned(head: str, tmp_path: Path, model: Path):
    write_lines(tmp_path / "train.jsonl", tagged())
    write_lines(tmp_path / "dev.jsonl", tagged(count=12, seed=1))
    recipe = LEARNING if head == "hf" else PLAIN
    config = toy_config(tmp_path, model, own=OwnData(kind="tagging"), head=head, recipe=recipe)
    result = finetune(config)
    assert result.runs[0].scores["dev"]["entity_f1"] > 0.9
    assert result.baselines["dev"]["entity_f1"].value == 0.0
    assert result.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@HEADS
@pytest.mark.slow
def test_answers_are_learned(head: str, tmp_path: Path, model: Path):
    write_lines(tmp_path / "train.jsonl", questions())
    write_lines(tmp_path / "dev.jsonl", questions(count=12, seed=1))
    recipe = replace(PLAIN, max_question=8, epochs=20)
    config = toy_config(tmp_path, model, own=OwnData(kind="qa"), head=head, recipe=recipe)
    run = finetune(config).runs[0]
    assert run.scores["dev"]["exact_match"] > 0.9
    assert run.threshold is None


@HEADS
def test_a_question_without_answer_takes_a_threshold(head: str, tmp_path: Path, model: Path):
    write_lines(tmp_path / "train.jsonl", questions(count=8, unanswerable=True))
    write_lines(tmp_path / "dev.jsonl", questions(count=8, seed=1, unanswerable=True))
    recipe = replace(PLAIN, max_question=8, epochs=2)
    config = toy_config(tmp_path, model, own=OwnData(kind="qa"), head=head, recipe=recipe)
    result = finetune(config)
    assert isinstance(result.runs[0].threshold, float)
    assert result.runs[0].scores["dev"]["exact_match"] >= 0.5  # silence is always possible
    assert result.baselines["dev"]["exact_match"].value == 0.5


@pytest.mark.parametrize("head", ["hugging_face", "official"])
def test_an_answer_is_a_part_of_its_context(head: str, model: Path, tmp_path: Path):
    network = open_for_task(model, kind="qa", head=head, seed=0).model
    examples = [
        QAExample(
            id=str(n),
            question="who",
            context=f"  One two\u2003ANNA three {'four ' * n}paris",
            answers=(Answer(text="ANNA", start=10),),
        )
        for n in (0, 3, 40)
    ]
    encoded = encode_examples(
        "qa", examples, load_tokenizer(model), labels=(), length=24, stride=8, max_question=8
    )
    assert len(encoded.sequences) > len(examples)
    found = predict_examples(network, encoded, CPU, pad_id=0, max_answer=3)
    for example, span, value in zip(examples, found.spans, found.values, strict=True):
        assert value == span.text == example.context[span.start : span.start + len(span.text)]
        assert 1 <= len(value.split()) <= 3


@HEADS
def test_numbers_are_learned_at_their_own_scale(head: str, tmp_path: Path, model: Path):
    rng = np.random.default_rng(0)
    words = random.Random(0)
    for name, count in (("train", 48), ("dev", 16)):
        rows = ["text\tlabel"]
        for number in range(count):
            word, value = (("good", 3000.0), ("bad", 1000.0))[number % 2]
            rows.append(f"{' '.join(sentence(words, word))}\t{value + rng.normal()}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows) + "\n")
    own = OwnData(kind="regression", metrics=("pearson", "mse"))
    result = finetune(toy_config(tmp_path, model, own=own, head=head, recipe=LEARNING))
    assert result.runs[0].scores["dev"]["pearson"] > 0.97
    assert result.runs[0].scores["dev"]["mse"] < 300.0**2
    assert result.baselines["dev"]["mse"].value > 900.0**2
    example = TextExample(id="0", text="one two good three")
    (value,) = again(tmp_path, "seed-0", "regression", [example]).values
    assert 2500 < value < 3500


def test_several_labels_are_learned(tmp_path: Path, model: Path):
    rng = random.Random(0)
    for name, count in (("train", 48), ("dev", 16)):
        records = []
        for _ in range(count):
            labels = [word for word in ("red", "round") if rng.random() < 0.5]
            records.append({"text": " ".join(sentence(rng, *labels)), "label": labels})
        write_lines(tmp_path / f"{name}.jsonl", records)
    recipe = replace(LEARNING, learning_rate=6e-3, epochs=20)
    config = toy_config(tmp_path, model, own=OwnData(kind="multilabel"), recipe=recipe)
    assert finetune(config).runs[0].scores["dev"]["micro_f1"] > 0.9
    examples = [TextExample(id="0", text="one red"), TextExample(id="1", text="red round two")]
    found = again(tmp_path, "seed-0", "multilabel", examples, labels=("red", "round"))
    assert found.values == (("red",), ("red", "round"))
    assert [len(each) for each in found.probabilities] == [1, 2]


def test_labels_come_with_their_probability(tmp_path: Path, model: Path):
    write_texts(tmp_path / "train.tsv")
    write_texts(tmp_path / "dev.tsv", count=8, seed=1)
    finetune(toy_config(tmp_path, model, recipe=LEARNING))
    examples = [
        TextExample(id=str(n), text=f"{'one ' * n}{word} two")
        for n, word in enumerate(["good", "bad", "bad", "good"])
    ]
    names = ("negative", "positive")
    found = again(tmp_path, "seed-0", "classification", examples, labels=names)
    assert found.values == ("positive", "negative", "negative", "positive")
    assert all(0.5 < p <= 1.0 for p in found.probabilities)
    alone = again(tmp_path, "seed-0", "classification", examples[2:3], labels=names)
    assert alone.probabilities[0] == pytest.approx(found.probabilities[2], abs=1e-5)


def test_the_scale_of_numbers_is_folded_into_the_last_layer(model: Path):
    network = open_for_task(model, kind="regression", seed=0).model.eval()
    ids = torch.tensor([[2, 6, 7, 3]])
    before = network(ids)
    TargetScale(mean=10.0, deviation=4.0).fold_into(network)
    torch.testing.assert_close(network(ids), before * 4.0 + 10.0)
    assert network.shape == TaskShape(model_type="electra", kind="regression")


def test_pairs_in_both_orders_follow_the_others():
    pair = TextExample(id="0", text="a", pair="b", label="1")
    single = TextExample(id="1", text="c", label="0")
    assert with_both_orders([pair, single]) == (
        pair,
        single,
        TextExample(id="0", text="b", pair="a", label="1"),
    )


def test_the_truth_of_questions_is_what_the_file_has():
    question = QAExample(id="0", question="q", context="a b", answers=(Answer(text="a", start=0),))
    assert gold_of(question) == ("a",)
    assert gold_of(replace(question, gold_texts=("a", "z"))) == ("a", "z")
    assert gold_of(replace(question, answers=())) == ()
    assert gold_of(replace(question, is_labelled=False)) is None


def test_one_prediction_for_all_is_noticed_where_the_truth_varies():
    assert same_everywhere("classification", ["a", "b"], ["a", "a"]) == "a"
    assert same_everywhere("classification", ["a", "b"], ["a", "b"]) == ""
    assert same_everywhere("classification", ["a", "a"], ["a", "a"]) == ""
    assert same_everywhere("regression", [1.0, 2.0], [0.5, 0.5]) == "0.5"
    assert same_everywhere("multilabel", [("a",), ("b",)], [("a", "b"), ("b", "a")]) == "a, b"
    assert same_everywhere("multilabel", [("a",), ()], [(), ()]) == "no label"
    assert same_everywhere("tagging", [("B-X",), ("O",)], [("O",), ("O",)]) == "no entity"
    assert same_everywhere("qa", [("x",), ("y",)], ["", ""]) == "no answer"
    assert same_everywhere("qa", [("x",), ("y",)], ["x", "x"]) == ""


def test_a_metric_that_does_not_fit_stops_before_training(tmp_path: Path, model: Path):
    write_texts(tmp_path / "train.tsv")
    write_texts(tmp_path / "dev.tsv")
    own = OwnData(metrics=("entity_f1",))
    with pytest.raises(UserError, match="metric 'entity_f1' does not fit classification"):
        finetune(toy_config(tmp_path, model, own=own))
