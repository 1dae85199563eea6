import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from amber.errors import UserError
from amber.tasks.decoding import decode_tags
from amber.tasks.example import TaggedExample
from amber.tasks.tagging import NO_WORD, encode_tagged
from amber.tasks.windows import IGNORED
from amber.tokens.tokenizer import add_template, wordpiece
from amber.tokens.train import train_tokenizer
from amber.tokens.vocabulary import SPECIAL_TOKENS

LABELS = ("B-x", "I-x", "O")


def tiny(*words):
    tokenizer = wordpiece([*SPECIAL_TOKENS, *words], lowercase=True, strip_accents=True)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    return tokenizer


def sentence(words, tags=None, *, joiner=" "):
    spans, place = [], 0
    for word in words:
        spans.append((place, place + len(word)))
        place += len(word) + len(joiner)
    return TaggedExample(id="0", text=joiner.join(words), spans=tuple(spans), tags=tags)


def certain(encoding, num_labels):
    """Scores under which every word gets its label."""
    rows = np.eye(num_labels, dtype=np.float32)
    return [rows[np.where(w.labels == IGNORED, 0, w.labels)] for w in encoding.windows]


def test_a_word_is_labelled_at_its_first_piece_only():
    example = sentence(["play", "playing"], ("O", "B-x"))
    tokenizer = tiny("play", "##ing")
    window = encode_tagged([example], tokenizer, labels=LABELS, max_length=8, stride=4).windows[0]
    assert window.input_ids.tolist() == [2, 5, 5, 6, 3]
    assert window.labels.tolist() == [IGNORED, 2, 0, IGNORED, IGNORED]
    assert window.words.tolist() == [NO_WORD, 0, 1, NO_WORD, NO_WORD]
    assert window.token_type_ids.tolist() == [0] * 5


def test_forty_words_within_the_limit_are_one_window():
    example = sentence(["a"] * 40, ("O",) * 40)
    found = encode_tagged([example], tiny("a"), labels=LABELS, max_length=64, stride=32)
    assert len(found.windows) == 1
    assert found.num_split == 0
    assert (found.windows[0].labels != IGNORED).sum() == 40


@pytest.mark.parametrize("stride", [1, 3, 6])
def test_every_word_of_a_long_sentence_is_labelled_exactly_once(stride):
    rng = np.random.default_rng(0)
    tags = tuple(LABELS[i] for i in rng.integers(3, size=50))
    words = ["a" * (1 + int(n)) for n in rng.integers(4, size=50)]
    example = sentence(words, tags)
    found = encode_tagged([example], tiny("a", "##a"), labels=LABELS, max_length=8, stride=stride)
    labelled = np.concatenate([w.words[w.words != NO_WORD] for w in found.windows])
    assert sorted(labelled.tolist()) == list(range(50))
    assert all(len(w.input_ids) <= 8 for w in found.windows)
    assert found.num_split == 1
    assert decode_tags([example], found.windows, certain(found, 3), LABELS) == [tags]


def test_a_word_in_two_windows_is_read_where_it_has_more_context():
    example = sentence(list("abcdefgh"), ("O",) * 8)
    tokenizer = tiny(*"abcdefgh")
    found = encode_tagged([example], tokenizer, labels=LABELS, max_length=8, stride=2)
    # windows: words 0 to 5 and 2 to 7; word 3 is 2 from the near end of the first, 1 of the second
    read = [w.words[w.words != NO_WORD].tolist() for w in found.windows]
    assert read == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_word_without_a_piece_is_counted_and_predicted_as_outside():
    example = sentence(["a", "\u200b", "a"], ("B-x", "I-x", "I-x"))
    found = encode_tagged([example], tiny("a"), labels=LABELS, max_length=8, stride=4)
    assert found.num_without_piece == 1
    assert found.windows[0].input_ids.tolist() == [2, 5, 5, 3]
    tags = decode_tags([example], found.windows, certain(found, 3), LABELS)
    assert tags == [("B-x", "O", "I-x")]


def test_sentences_without_words_or_pieces_are_no_crash():
    examples = [sentence([], ()), sentence(["\u200b"], ("O",))]
    found = encode_tagged(examples, tiny("a"), labels=LABELS, max_length=8, stride=4)
    assert [w.input_ids.tolist() for w in found.windows] == [[2, 3], [2, 3]]
    tags = decode_tags(examples, found.windows, certain(found, 3), LABELS)
    assert tags == [(), ("O",)]


def test_sentences_without_tags_have_words_but_no_labels():
    found = encode_tagged([sentence(["a"])], tiny("a"), labels=LABELS, max_length=8, stride=4)
    assert found.windows[0].words.tolist() == [NO_WORD, 0, NO_WORD]
    assert (found.windows[0].labels == IGNORED).all()


def test_characters_are_words_also_of_digits_and_latin():
    text = "\u53f6\u8001\u6842 2012\u5e74 iPhone"
    characters = [c for c in text if c != " "]
    spans = tuple((i, i + 1) for i, c in enumerate(text) if c != " ")
    tags = ("B-x", "I-x", "I-x", *["O"] * 5, "B-x", *["I-x"] * 5)
    example = TaggedExample(id="0", text=text, spans=spans, tags=tags)
    tokenizer = tiny(*dict.fromkeys(text.replace(" ", "").lower()), "iphone", "2012")
    found = encode_tagged([example], tokenizer, labels=LABELS, max_length=32, stride=16)
    ids = found.windows[0].input_ids[1:-1].tolist()
    assert [tokenizer.id_to_token(i) for i in ids] == [c.lower() for c in characters]
    assert decode_tags([example], found.windows, certain(found, 3), LABELS) == [tags]


def test_words_give_the_ids_of_transformers():
    words = ["Playing", "play", "caf\u00e9", "\U0001f600", "\u5e74\u5e74"]
    tokenizer = tiny("play", "##ing", "cafe", "\u5e74")
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]"
    )
    found = encode_tagged([sentence(words)], tokenizer, labels=LABELS, max_length=32, stride=8)
    expected = theirs(words, is_split_into_words=True)
    assert found.windows[0].input_ids.tolist() == expected["input_ids"]
    firsts = [expected.word_ids().index(word) for word in range(len(words))]
    assert np.flatnonzero(found.windows[0].words != NO_WORD).tolist() == firsts


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_words_are_encoded_as_in_running_text(kind):
    words = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "sat", "too"]
    tokenizer = train_tokenizer([" ".join(words)] * 9, kind=kind, vocab_size=300)
    found = encode_tagged([sentence(words)], tokenizer, labels=LABELS, max_length=64, stride=32)
    assert found.windows[0].input_ids.tolist() == tokenizer.encode(" ".join(words)).ids


def test_no_blank_piece_is_put_between_characters():
    text = "\u53f6\u8001\u6842"
    tokenizer = train_tokenizer([text, *text] * 9, kind="unigram", vocab_size=12)
    example = sentence(list(text), joiner="")
    found = encode_tagged([example], tokenizer, labels=LABELS, max_length=16, stride=8)
    tokens = [tokenizer.id_to_token(i) for i in found.windows[0].input_ids[1:-1]]
    assert "\u2581" not in tokens[1:]
    assert (found.windows[0].words != NO_WORD).sum() == 3


def test_wrong_settings_and_tags_are_refused():
    example = sentence(["a"], ("B-y",))
    with pytest.raises(ValueError, match="tag B-y is not in labels"):
        encode_tagged([example], tiny("a"), labels=LABELS, max_length=8, stride=4)
    with pytest.raises(UserError, match="stride is 7"):
        encode_tagged([example], tiny("a"), labels=LABELS, max_length=8, stride=7)
