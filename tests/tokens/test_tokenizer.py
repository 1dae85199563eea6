import json

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models
from transformers import AutoTokenizer, BertTokenizer

from amber.errors import UserError
from amber.tokens.tokenizer import (
    SpecialIds,
    fingerprint,
    is_ordinary,
    load_tokenizer,
    save_tokenizer,
    special_ids,
    vocab_size,
)
from amber.tokens.train import train_tokenizer
from amber.tokens.vocabulary import read_vocabulary

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["hello", "##s", "world", ",", "caf", "##e", "##\u4e2d", "\u4e2d", "[unused1]", "a", "##a"]
PROBE = [
    "Hello, WORLD! caf\u00e9 \u00fcber na\u00efve",
    "\u4f7f\u7528\u8bed\u8a00\u6a21\u578b, \u4e2d\u6587abc",
    "\U0001f600hello \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0130stanbul \u0131\u015f\u0131k \u00c7a\u011fr\u0131",
    "stra\u00dfe \u03bb\u03cc\u03b3\u03bf\u03c2",
    "\uff21\uff22\uff23\uff0c\uff11\uff12\uff13",
    "e\u0301 [MASK] and [SEP]",
]


def write_vocabulary(path, tokens, *, mark=b"", tail=b""):
    path.write_bytes(mark + "".join(f"{t}\n" for t in tokens).encode() + tail)
    return path


def test_a_plain_vocabulary_gives_the_ids_of_transformers(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS)
    ours = load_tokenizer(path)
    theirs = BertTokenizer(vocab=str(path), do_lower_case=True)
    for text in PROBE:
        assert ours.encode(text).ids == theirs(text)["input_ids"]
    assert special_ids(ours) == SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\n  \n"])
def test_a_byte_order_mark_and_blank_lines_at_the_end_change_no_id(tmp_path, mark, tail):
    plain = write_vocabulary(tmp_path / "a.txt", SPECIALS + WORDS)
    path = write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS, mark=mark, tail=tail)
    tokenizer = load_tokenizer(path)
    assert vocab_size(tokenizer) == len(SPECIALS + WORDS)
    assert fingerprint(tokenizer) == fingerprint(load_tokenizer(plain))
    assert len(read_vocabulary(path)[1]) == bool(mark) + bool(tail)


@pytest.mark.parametrize("missing", SPECIALS)
def test_a_missing_special_token_is_named(tmp_path, missing):
    tokens = [t for t in SPECIALS if t != missing] + WORDS
    path = write_vocabulary(tmp_path / "vocab.txt", tokens)
    with pytest.raises(UserError, match=rf"has no \{missing[:-1]}\]"):
        load_tokenizer(path)


def test_repeated_and_blank_lines_are_named(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", [*SPECIALS, "x", "y", "x"])
    with pytest.raises(UserError, match="line 8: token 'x' is already on line 6"):
        load_tokenizer(path)
    path = write_vocabulary(tmp_path / "vocab.txt", [*SPECIALS, "", "y"])
    with pytest.raises(UserError, match="line 6: blank line"):
        load_tokenizer(path)


def test_case_is_folded_unless_the_vocabulary_holds_capitals(tmp_path):
    lower = write_vocabulary(tmp_path / "a.txt", SPECIALS + WORDS + ["<S>"])
    cased = write_vocabulary(tmp_path / "b.txt", SPECIALS + WORDS + ["Hello"])
    assert load_tokenizer(lower).encode("Hello", add_special_tokens=False).tokens == ["hello"]
    assert load_tokenizer(cased).encode("Hello", add_special_tokens=False).tokens == ["Hello"]
    forced = load_tokenizer(cased, lowercase=True)
    assert forced.encode("Hello", add_special_tokens=False).tokens == ["hello"]
    kept = load_tokenizer(lower, strip_accents=False)
    assert kept.encode("caf\u00e9", add_special_tokens=False).tokens == ["[UNK]"]


def test_the_config_of_a_folder_is_respected(tmp_path):
    write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS)
    config = {"do_lower_case": False, "strip_accents": True, "mask_token": "[MASK]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = load_tokenizer(tmp_path)
    tokens = tokenizer.encode("Hello caf\u00e9", add_special_tokens=False).tokens
    assert tokens == ["[UNK]", "caf", "##e"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"mask_token": "<mask>"}))
    with pytest.raises(UserError, match="mask_token is '<mask>'"):
        load_tokenizer(tmp_path)


def test_long_words_are_unknown_above_the_set_limit(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS)
    for limit, setting in ((100, None), (200, 200)):
        tokenizer = load_tokenizer(path, max_word_length=setting)
        assert len(tokenizer.encode("a" * limit, add_special_tokens=False).ids) == limit
        assert tokenizer.encode("a" * (limit + 1), add_special_tokens=False).tokens == ["[UNK]"]


def test_added_tokens_count_in_the_size(tmp_path):
    tokenizer = load_tokenizer(write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS))
    tokenizer.add_tokens([AddedToken("<new>")])
    assert vocab_size(tokenizer) == len(SPECIALS + WORDS) + 1 == tokenizer.token_to_id("<new>") + 1
    holed = Tokenizer(models.WordPiece({"[UNK]": 0, "far": 9}, unk_token="[UNK]"))
    assert vocab_size(holed) == 10


def test_only_pieces_that_occur_in_text_are_ordinary(tmp_path):
    tokenizer = load_tokenizer(write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS))
    rows = is_ordinary(tokenizer)
    assert rows.dtype == np.bool_
    assert len(rows) == vocab_size(tokenizer)
    names = [tokenizer.id_to_token(row) for row in np.flatnonzero(rows)]
    assert names == ["hello", "##s", "world", ",", "caf", "##e", "\u4e2d", "a", "##a"]


def test_other_names_of_special_tokens_are_found(tmp_path):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "hello"]
    tokenizer = load_tokenizer(write_vocabulary(tmp_path / "vocab.txt", tokens))
    assert special_ids(tokenizer) == SpecialIds(pad=1, unk=3, cls=0, sep=2, mask=4)
    assert tokenizer.encode("hello you").tokens == ["<s>", "hello", "<unk>", "</s>"]


def test_padding_and_truncation_in_the_file_are_dropped(tmp_path):
    tokenizer = load_tokenizer(write_vocabulary(tmp_path / "vocab.txt", SPECIALS + WORDS))
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert len(loaded.encode("hello " * 20).ids) == 22
    with pytest.raises(UserError, match="lowercase is decided in this file"):
        load_tokenizer(tmp_path / "tokenizer.json", lowercase=True)


def test_what_is_not_a_tokenizer_is_named(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        load_tokenizer(tmp_path / "none")
    with pytest.raises(UserError, match="neither tokenizer.json nor vocab.txt"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="not a readable tokenizer.json"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_a_saved_folder_gives_transformers_the_same_ids(tmp_path, kind, form):
    tokenizer = train_tokenizer(PROBE[:-1] * 3, kind=kind, vocab_size=600, unicode_form=form)
    save_tokenizer(tokenizer, tmp_path, model_max_length=64)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in PROBE:
        assert theirs(text)["input_ids"] == tokenizer.encode(text).ids
        assert theirs(text, "Hello")["input_ids"] == tokenizer.encode(text, "Hello").ids
    assert theirs.model_max_length == 64
    assert len(theirs) == vocab_size(tokenizer)
    assert theirs.mask_token_id == special_ids(tokenizer).mask == 4
    assert theirs.pad_token_id == 0
    assert sorted(theirs("a")) == ["attention_mask", "input_ids", "token_type_ids"]
    assert fingerprint(load_tokenizer(tmp_path)) == fingerprint(tokenizer)
    assert (tmp_path / "vocab.txt").exists() == (kind == "wordpiece")
    if kind == "wordpiece" and form == "NFC":
        (tmp_path / "tokenizer.json").unlink()  # vocab.txt alone holds the same rows
        assert load_tokenizer(tmp_path / "vocab.txt").get_vocab() == tokenizer.get_vocab()
