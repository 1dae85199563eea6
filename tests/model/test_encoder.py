"""Both bodies against `transformers`: outputs and gradients; padding; sharing; sizes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from networks import BERT, MODERN, batch, random_encoder, randomize, write_tokenizer

from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.folder import save_discriminator, save_generator
from amber.model.heads import MLMHead, RTDHead
from amber.model.hugging_face import ENCODER_NAMES, MLM_NAMES, RTD_NAMES, weight_names

transformers.logging.disable_progress_bar()
CLASSES = {
    kind.__name__: kind
    for kind in (
        transformers.ElectraForPreTraining,
        transformers.ElectraForMaskedLM,
        transformers.ModernBertForTokenClassification,
        transformers.ModernBertForMaskedLM,
    )
}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}  # float32, three layers


def reference(folder: Path, name: str) -> torch.nn.Module:
    model = CLASSES[name].from_pretrained(folder)
    return model.train()  # dropout is 0 in these shapes


def assert_equal_gradients(module: torch.nn.Module, model_type: str, table: dict, other) -> None:
    theirs = {name: weight.grad for name, weight in other.named_parameters()}
    for name, weight in module.named_parameters():
        assert weight.grad is not None, name
        names = weight_names(model_type, name, table)
        for part_name, ours in zip(names, weight.grad.chunk(len(names)), strict=True):
            value = theirs[part_name]
            if value.shape != ours.shape:  # the two rows of the modern classifier
                value = value[1:]
            torch.testing.assert_close(ours, value, **CLOSE, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("config", [BERT, replace(BERT, embedding_size=16), MODERN])
def test_the_discriminator_equals_transformers(config: EncoderConfig, tmp_path: Path):
    encoder, head = random_encoder(config), RTDHead(config)
    randomize(head)
    folder, tokenizer_dir = tmp_path / "model", write_tokenizer(tmp_path / "tokenizer")
    save_discriminator(folder, encoder, head, tokenizer_dir=tokenizer_dir, card="")
    is_bert = config.body == "bert"
    other = reference(
        folder, "ElectraForPreTraining" if is_bert else "ModernBertForTokenClassification"
    )
    ids, mask, types = batch(config)
    segments = {"token_type_ids": types} if is_bert else {}

    hidden = encoder(ids, mask, types)
    logits = head(hidden)
    theirs = other(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True, **segments)
    their_logits = theirs.logits if is_bert else theirs.logits[..., 1]
    base = other.electra if is_bert else other.model
    last = base(input_ids=ids, attention_mask=mask.long(), **segments).last_hidden_state
    torch.testing.assert_close(hidden[mask], last[mask], **CLOSE)
    torch.testing.assert_close(logits[mask], their_logits[mask], **CLOSE)

    (logits[mask].sin()).sum().backward()
    (their_logits[mask].sin()).sum().backward()
    model_type = "electra" if is_bert else "modernbert"
    assert_equal_gradients(encoder, model_type, ENCODER_NAMES[model_type], other)
    assert_equal_gradients(head, model_type, RTD_NAMES[model_type], other)


@pytest.mark.parametrize("config", [BERT, MODERN])
def test_the_generator_equals_transformers(config: EncoderConfig, tmp_path: Path):
    encoder, head = random_encoder(config), MLMHead(config)
    randomize(head)
    folder, tokenizer_dir = tmp_path / "model", write_tokenizer(tmp_path / "tokenizer")
    save_generator(folder, encoder, head, tokenizer_dir=tokenizer_dir, card="")
    is_bert = config.body == "bert"
    other = reference(folder, "ElectraForMaskedLM" if is_bert else "ModernBertForMaskedLM")
    ids, mask, types = batch(config)
    segments = {"token_type_ids": types} if is_bert else {}

    logits = head(encoder(ids, mask, types)[mask], encoder.embeddings.table)
    their_logits = other(input_ids=ids, attention_mask=mask.long(), **segments).logits[mask]
    torch.testing.assert_close(logits, their_logits, **CLOSE)

    logits.sin().sum().backward()
    their_logits.sin().sum().backward()
    model_type = "electra" if is_bert else "modernbert"
    names = {key: path for key, path in MLM_NAMES[model_type].items() if key}
    theirs = dict(other.named_parameters())
    bias = theirs["generator_lm_head.bias" if is_bert else "decoder.bias"].grad
    torch.testing.assert_close(head.bias.grad, bias, **CLOSE)
    assert_equal_gradients(head.dense, model_type, {"": names["dense"]}, other)
    assert_equal_gradients(head.norm, model_type, {"": names["norm"]}, other)
    encoder.embeddings.token.weight.grad[0] = 0  # [PAD]: transformers drops its gradient
    theirs[weight_names(model_type, "embeddings.token.weight", ENCODER_NAMES[model_type])[0]].grad[
        0
    ] = 0
    assert_equal_gradients(encoder, model_type, ENCODER_NAMES[model_type], other)


@pytest.mark.parametrize("config", [BERT, MODERN])
def test_more_padding_changes_neither_outputs_nor_gradients(config: EncoderConfig):
    encoder = random_encoder(config)
    ids, mask, types = batch(config, length=64)
    results = []
    for width in (0, 64):
        padded = [torch.nn.functional.pad(x, (0, width)) for x in (ids, mask, types)]
        encoder.zero_grad()
        hidden = encoder(*padded)[:, :64][mask]
        hidden.sin().sum().backward()
        grads = [w.grad for w in encoder.parameters() if w.grad is not None]
        results.append([hidden.detach(), *grads])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, **CLOSE)


@pytest.mark.parametrize("config", [BERT, MODERN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fully_padded_row_gives_finite_outputs_and_gradients(
    config: EncoderConfig, dtype: torch.dtype
):
    encoder = random_encoder(config)
    ids, mask, types = batch(config)
    mask[1] = False
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        hidden = encoder(ids, mask, types)
    hidden.float().sum().backward()
    assert hidden.isfinite().all()
    assert all(w.grad.isfinite().all() for w in encoder.parameters())


@pytest.mark.parametrize("config", [BERT, MODERN])
def test_reading_the_first_tokens_only_changes_neither_them_nor_the_gradients(
    config: EncoderConfig,
):
    encoder, inputs = random_encoder(config).double(), batch(config, length=16)
    gradients = []
    for num_read in (None, 2):
        encoder.zero_grad()
        hidden = encoder(*inputs, num_read=num_read)
        assert hidden.shape[1] == (num_read or inputs[0].shape[1])
        hidden[:, :2].sin().sum().backward()
        gradients.append([p.grad.clone() for p in encoder.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_no_segments_means_segment_zero():
    encoder = random_encoder(BERT)
    ids, mask, types = batch(BERT)
    explicit = encoder(ids, mask, torch.zeros_like(types))
    torch.testing.assert_close(encoder(ids, mask), explicit, **CLOSE)


@pytest.mark.parametrize("config", [BERT, MODERN])
def test_shared_embeddings_receive_the_sum_of_both_gradients(config: EncoderConfig):
    embeddings = Embeddings(config)
    both = [Encoder(config, embeddings), Encoder(replace(config, num_hidden_layers=1), embeddings)]
    randomize(*both)
    assert both[0].embeddings is both[1].embeddings
    ids, mask, types = batch(config)
    single = []
    for encoder in both:
        embeddings.zero_grad()
        encoder(ids, mask, types).sin().sum().backward()
        single.append(embeddings.table.grad.clone())
    embeddings.zero_grad()
    sum(encoder(ids, mask, types).sin().sum() for encoder in both).backward()
    torch.testing.assert_close(embeddings.table.grad, single[0] + single[1])


def test_dropout_acts_in_training_only():
    encoder = random_encoder(replace(MODERN, hidden_dropout=0.5, attention_dropout=0.5))
    ids, mask, _ = batch(MODERN)
    assert not encoder(ids, mask).equal(encoder(ids, mask))
    encoder.eval()
    assert encoder(ids, mask).equal(encoder(ids, mask))


def test_a_sequence_longer_than_the_position_table_is_refused():
    with pytest.raises(ValueError, match="161 tokens, the model has 160"):
        random_encoder(BERT)(torch.zeros(1, 161, dtype=torch.long))


def test_a_bert_body_without_segments_is_refused():
    with pytest.raises(UserError, match="type_vocab_size"):
        Embeddings(replace(BERT, type_vocab_size=0))


# hidden size, layers, heads and embedding size of the encoder; width of the generator; then the
# parameters of encoder, RTD head, generator without tables, MLM head without table: the figures
# of the official code's published models (their weights, 30522 entries).
PUBLISHED = {
    "small": (256, 12, 4, 128, 64, 13_483_008, 66_049, 608_064, 39_098),
    "base": (768, 12, 12, 768, 256, 108_891_648, 591_361, 9_673_984, 229_434),
    "large": (1024, 24, 16, 1024, 256, 334_092_288, 1_050_625, 19_216_640, 295_738),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_those_of_the_published_models(name: str):
    size, num_layers, num_heads, table_size, width, *expected = PUBLISHED[name]
    config = replace(
        BERT,
        vocab_size=30_522,
        hidden_size=size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        intermediate_size=4 * size,
        embedding_size=table_size,
        max_position_embeddings=512,
    )
    narrow = replace(
        config, hidden_size=width, num_attention_heads=width // 64, intermediate_size=4 * width
    )
    with torch.device("meta"):
        embeddings = Embeddings(config)
        modules = [Encoder(config, embeddings), RTDHead(config), Encoder(narrow, embeddings)]
        modules.append(MLMHead(narrow))
    counts = [sum(w.numel() for w in module.parameters()) for module in modules]
    counts[2] -= sum(w.numel() for w in embeddings.parameters())
    assert counts == expected
