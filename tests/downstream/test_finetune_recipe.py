"""The recipe by size and task, and the settings that have no effect."""

from dataclasses import replace
from pathlib import Path

import pytest

from amber.downstream.config import FinetuneConfig, RecipeConfig
from amber.downstream.material import read_material
from amber.downstream.recipe import fill_recipe, nearest_size
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.tasks.own import OwnData


def shape(layers: int, width: int, **changes) -> EncoderConfig:
    return EncoderConfig(
        num_hidden_layers=layers, hidden_size=width, num_attention_heads=width // 64, **changes
    )


SMALL = shape(12, 256)


def fill(given: RecipeConfig | None = None, **changes):
    settings = {"kind": "classification", "epochs": 3, "shape": SMALL, "head": "hf"}
    return fill_recipe(given or RecipeConfig(), **settings | changes)


def config(**changes) -> FinetuneConfig:
    settings = {"model": Path("m"), "task": "sst2", "data": (Path("d"),), "out": Path("o")}
    return FinetuneConfig(**settings | changes)


@pytest.mark.parametrize(
    ("layers", "width", "size"),
    [
        (12, 256, "Small"),
        (2, 128, "Tiny"),
        (6, 192, "Tiny"),
        (6, 384, "Small"),
        (12, 384, "Small"),
        (6, 768, "Base"),
        (12, 768, "Base"),
        (24, 1024, "Large"),
        (48, 1600, "Large"),
    ],
)
def test_a_model_is_trained_like_the_nearest_in_size(layers: int, width: int, size: str):
    assert nearest_size(shape(layers, width)) == size


def test_the_papers_recipe_is_the_default():
    small, base, large = (fill(shape=shape(*s)) for s in ((12, 256), (12, 768), (24, 1024)))
    assert [each.learning_rate for each in (small, base, large)] == [3e-4, 1e-4, 5e-5]
    assert [each.layer_decay for each in (small, base, large)] == [0.8, 0.8, 0.9]
    tiny = fill(shape=shape(6, 192))
    assert (tiny.learning_rate, tiny.layer_decay) == (1e-3, 1.0)  # ours: the paper has none
    assert small.weight_decay == 0.0
    assert small.warmup_fraction == 0.1
    assert small.batch_size == 32
    assert (small.length, small.stride, small.max_question) == (128, None, None)
    assert small.optim.eps == 1e-6
    assert fill(epochs=10).epochs == 10
    assert fill(RecipeConfig(epochs=4), epochs=10).epochs == 4


def test_the_pooling_is_the_models_where_the_head_has_one_and_none_is_given():
    modern = replace(SMALL, body="modern")
    assert fill(shape=modern, pooling="mean").pooling == "mean"
    assert fill(RecipeConfig(pooling="cls"), shape=modern, pooling="mean").pooling == "cls"
    assert fill(shape=replace(SMALL, body="bert"), pooling="mean").pooling is None
    assert fill(shape=modern, kind="tagging", pooling="mean").pooling is None
    assert fill(shape=modern, head="official", pooling="mean").pooling is None


def test_lengths_and_strides_follow_the_kind_and_the_model():
    tags, questions = fill(kind="tagging"), fill(kind="qa")
    assert (tags.length, tags.stride) == (256, 128)
    assert (questions.length, questions.stride, questions.max_question) == (512, 128, 64)
    short = replace(SMALL, max_position_embeddings=128)
    assert (fill(kind="qa", shape=short).length, fill(kind="qa", shape=short).stride) == (128, 61)


@pytest.mark.parametrize(
    ("given", "settings", "message"),
    [
        ({"stride": 9}, {}, "recipe.stride has no effect for classification"),
        ({"max_answer": 9}, {"kind": "tagging"}, "recipe.max_answer has no effect for tagging"),
        ({"both_orders": False}, {}, "recipe.both_orders has no effect on a task without"),
        ({"head_dropout": 0.0}, {"kind": "qa", "shape": replace(SMALL, body="bert")}, "head_drop"),
        ({"head_dropout": 0.2}, {"kind": "tagging", "head": "official"}, "no effect on this head"),
        (
            {"layer_decay": 1.0, "layer_decay_rule": "official"},
            {},
            "layer_decay_rule has no effect",
        ),
        ({"layer_decay_rule": "official"}, {"shape": shape(6, 192)}, "layer_decay_rule has no"),
        ({"pooling": "mean"}, {"shape": replace(SMALL, body="bert")}, "recipe.pooling has no"),
        ({"pooling": "cls"}, {"kind": "qa", "shape": replace(SMALL, body="modern")}, "pooling has"),
    ],
)
def test_a_setting_without_effect_on_the_task_is_refused(given, settings, message):
    with pytest.raises(UserError, match=message):
        fill(RecipeConfig(**given), **settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": None}, "--task must be given"),
        ({"out": None}, "--out must be given"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"data": ()}, "--data must be one folder"),
        ({"own": OwnData(text="t")}, "own.text has no effect with task sst2"),
        ({"task": "hub:a", "data": ()} | {"own": OwnData(train=Path("t"))}, "own.train has no eff"),
        ({"task": "hub:a"}, "data has no effect with task hub:a"),
        ({"task": "own", "own": OwnData(train=Path("t"))}, "data and own.train"),
        ({"task": "own", "own": OwnData(pair="text")}, "text, text, label: name different columns"),
        ({"task": "own", "dev_fraction": 0.1}, "own.dev_fraction does this"),
        ({"score_on": "test", "keep": "best"}, "keep best would choose by the test examples"),
        ({"score_on": "test", "patience": 1}, "patience would choose by the test examples"),
        ({"score_on": "test", "sweep": Path("s")}, "sweep would choose by the test examples"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        config(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "recipe.learning_rate must be above 0"),
        ({"layer_decay": 1.5}, "recipe.layer_decay must be at most 1"),
        ({"hidden_dropout": 1.0}, r"recipe.hidden_dropout must be in \[0, 1\)"),
        ({"batch_size": 0}, "recipe.batch_size must be above 0"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        RecipeConfig(**changes)


def test_what_is_scored_and_trained_on_is_counted(tmp_path: Path):
    for split, words in (("train", "abc"), ("dev", "bcdx")):
        rows = [f"{word}\t{number % 2}" for number, word in enumerate(words)]
        (tmp_path / f"{split}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    own = config(task="own", data=(tmp_path,))
    assert read_material(own).notes == ("dev: 2 of 4 examples have the text of a train example",)
    limited = read_material(replace(own, limit_train=1))  # a is drawn, which dev does not have
    assert [example.text for example in limited.train] == ["a"]
    assert limited.notes == ("trained on 1 of 3 examples, by chance",)
