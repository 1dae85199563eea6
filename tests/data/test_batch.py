"""Rows look as the layout says; the width changes nothing."""

from collections.abc import Callable

import numpy as np
import torch

from amber.data import noise
from amber.data.batch import Batch, build_batch, empty_batch
from amber.data.loader import Source

PAD, CLS, SEP = 0, 2, 3


def read(source: Source, examples: list[int], *, multiple: int = 8, epoch: int = 0) -> Batch:
    """Build a batch of these examples."""
    numbers = np.array(examples, dtype=np.int64)
    return build_batch(
        source.shards,
        source.layout,
        source.special,
        examples=numbers,
        epochs=np.full_like(numbers, epoch),
        seed=source.seed,
        multiple=multiple,
        with_words=source.with_words,
    )


def test_a_single_row_is_cls_text_sep_padding(make_source: Callable[..., Source]):
    batch = read(make_source([3, 5]), [1, 0])
    assert batch.input_ids.tolist() == [
        [CLS, 13, 14, 15, 16, 17, SEP, PAD],
        [CLS, 10, 11, 12, SEP, PAD, PAD, PAD],
    ]
    assert batch.attention_mask.tolist() == [[True] * 7 + [False], [True] * 5 + [False] * 3]
    assert not batch.token_type_ids.any()
    assert batch.examples.tolist() == [1, 0]


def test_a_pair_row_has_two_segments_and_two_separators(make_source: Callable[..., Source]):
    source = make_source([2, 1], length=8, pair_fraction=1.0)
    batch = read(source, [0, 1])  # two tokens can be cut in one place only
    assert batch.input_ids.tolist() == [
        [CLS, 10, SEP, 11, SEP, PAD, PAD, PAD],
        [CLS, 12, SEP, PAD, PAD, PAD, PAD, PAD],
    ]
    assert batch.token_type_ids.tolist() == [[0, 0, 0, 1, 1, 0, 0, 0], [0] * 8]
    assert batch.attention_mask.sum(dim=1).tolist() == [5, 3]


def test_words_start_where_the_data_says_and_at_special_tokens(make_source: Callable[..., Source]):
    batch = read(make_source([3, 5], with_words=True), [1, 0])
    assert batch.is_word_start is not None
    yes, no = True, False
    assert batch.is_word_start.tolist() == [
        [yes, no, yes, no, yes, no, yes, yes],  # [CLS] 13 14 15 16 17 [SEP] [PAD]
        [yes, yes, no, yes, yes, yes, yes, yes],  # [CLS] 10 11 12 [SEP] [PAD] ...
    ]
    assert read(make_source([3, 5]), [1, 0]).is_word_start is None


def test_words_of_a_pair_stay_with_their_tokens(make_source: Callable[..., Source]):
    for length, lengths in ((8, [2, 1, 5]), (32, [29, 28, 13])):
        source = make_source(lengths, length=length, pair_fraction=1.0, with_words=True)
        batch = read(source, [0, 1, 2])
        is_text = batch.input_ids >= 10
        assert batch.is_word_start is not None
        assert torch.equal(batch.is_word_start[is_text], batch.input_ids[is_text] % 2 == 0)
        assert batch.is_word_start[~is_text].all()


def test_a_full_row_has_no_padding_in_either_layout(make_source: Callable[..., Source]):
    for pair_fraction, tokens, separators in ((0.0, 30, 1), (1.0, 29, 2)):
        batch = read(make_source([tokens], pair_fraction=pair_fraction), [0])
        assert batch.input_ids.shape == (1, 32)
        assert batch.attention_mask.all()
        assert not batch.is_padded
        assert batch.key_mask is None
        assert int((batch.input_ids == SEP).sum()) == separators
        assert batch.input_ids[0, -1] == SEP
        text = batch.input_ids[batch.input_ids >= 10]
        assert text.tolist() == list(range(10, 10 + tokens))


def test_a_padded_batch_says_so(make_source: Callable[..., Source]):
    batch = read(make_source([3, 6], multiple=1), [0, 1], multiple=1)
    assert batch.is_padded
    assert batch.key_mask is batch.attention_mask
    assert not read(make_source([6]), [0]).is_padded  # 8 tokens fill the width of 8


def test_the_width_is_rounded_up_but_never_above_the_length(make_source: Callable[..., Source]):
    source = make_source([3, 18, 27], length=30)
    assert read(source, [0]).input_ids.shape[1] == 8
    assert read(source, [0, 1]).input_ids.shape[1] == 24
    assert read(source, [2]).input_ids.shape[1] == 30
    assert read(source, [0], multiple=30).input_ids.shape[1] == 30


def test_the_width_changes_neither_text_nor_noise(make_source: Callable[..., Source]):
    source = make_source([3, 5], pair_fraction=1.0)
    narrow, wide = read(source, [0, 1], multiple=1), read(source, [0, 1], multiple=32)
    width = narrow.input_ids.shape[1]
    assert (width, wide.input_ids.shape[1]) == (8, 32)
    for name in ("input_ids", "attention_mask", "token_type_ids", "noise"):
        assert torch.equal(getattr(narrow, name), getattr(wide, name)[..., :width])
    assert not wide.attention_mask[:, width:].any()


def test_the_parts_of_the_noise_are_the_streams(make_source: Callable[..., Source]):
    source = make_source([3, 5], seed=9)
    batch = read(source, [1, 0], epoch=2)
    epochs, examples = np.array([2, 2]), np.array([1, 0])
    streams = (noise.CHOOSE, noise.TREAT, noise.RANDOM_TOKEN, noise.SAMPLE, noise.NGRAM)
    for part, stream in zip(batch.noise, streams, strict=True):
        assert np.array_equal(part.numpy(), noise.uniforms(9, stream, epochs, examples, 8))


def test_an_empty_batch_is_one_row_of_padding(make_source: Callable[..., Source]):
    batch = empty_batch(make_source([3]).special, width=8)
    assert batch.input_ids.tolist() == [[PAD] * 8]
    assert not batch.attention_mask.any()
    assert batch.examples.tolist() == [-1]
    assert batch.is_padded
    assert batch.is_word_start is None
    with_words = empty_batch(make_source([3]).special, width=8, with_words=True)
    assert with_words.is_word_start is not None
    assert with_words.is_word_start.tolist() == [[True] * 8]
    assert batch.noise.shape == read(make_source([3]), [0]).noise.shape


def test_a_copy_to_a_device_keeps_everything(make_source: Callable[..., Source]):
    batch = read(make_source([6], with_words=True), [0])
    copy = batch.to(torch.device("cpu"))
    names = ("input_ids", "attention_mask", "token_type_ids", "noise", "examples", "is_word_start")
    for name in names:
        assert torch.equal(getattr(copy, name), getattr(batch, name))
    assert copy.is_padded is batch.is_padded
