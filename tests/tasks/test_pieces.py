import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from amber.tasks.pieces import PlainTokenizer
from amber.tokens.tokenizer import add_template, wordpiece
from amber.tokens.train import train_tokenizer
from amber.tokens.vocabulary import SPECIAL_TOKENS

TEXT = (
    "Le caf\u00e9 a\u0300 Paris, \uff12\uff10\uff11\uff12\u5e74 \U0001f600 \ufb01n\u202fok \u200b."
)


def tiny(*words, strip_accents=True):
    tokenizer = wordpiece([*SPECIAL_TOKENS, *words], lowercase=True, strip_accents=strip_accents)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    return tokenizer


def covered(tokenizer, text):
    """The part of the text under each piece."""
    pieces = PlainTokenizer(tokenizer).pieces([text])[0]
    return [text[start:stop] for start, stop in pieces.offsets]


def test_word_pieces_point_at_the_text_as_it_was_written():
    tokenizer = tiny("cafe", "\uff21", "paris", "##s", "x", "\u5e74", ",")
    assert covered(tokenizer, "CAF\u00c9,Paris") == ["CAF\u00c9", ",", "Paris"]
    assert covered(tokenizer, "\U0001f600 x\u5e74\u5e74") == (
        ["\U0001f600", "x", "\u5e74", "\u5e74"]
    )


def test_a_dropped_accent_belongs_to_its_letter():
    tokenizer = tiny("cafe", "x")
    assert covered(tokenizer, "cafe\u0301 x") == ["cafe\u0301", "x"]
    assert covered(tokenizer, "cafe\u0301") == ["cafe\u0301"]


def test_an_accent_that_has_its_own_piece_is_not_taken():
    tokenizer = tiny("e", "##\u0301", strip_accents=False)
    assert covered(tokenizer, "e\u0301") == ["e", "\u0301"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_pieces_of_every_kind_cover_the_text_but_for_blanks(kind):
    tokenizer = train_tokenizer([TEXT] * 3, kind=kind, vocab_size=300, unicode_form="NFKC")
    pieces = PlainTokenizer(tokenizer).pieces([TEXT])[0]
    seen = set()
    for start, stop in pieces.offsets:
        part = TEXT[start:stop]
        assert part == part.strip()
        seen.update(range(start, stop))
    lost = {TEXT[i] for i in range(len(TEXT)) if i not in seen}
    assert {c for c in lost if not c.isspace()} <= {"\u200b"}
    assert (np.diff(pieces.offsets[:, 0]) >= 0).all()


def test_byte_level_pieces_leave_out_the_blank_before_the_word():
    tokenizer = train_tokenizer(["hello world \U0001f600 "] * 9, kind="bpe", vocab_size=290)
    text = "hello world \U0001f600"
    parts = covered(tokenizer, text)
    assert "hello" in parts[0]
    assert {"world", "\U0001f600"} <= set(parts)
    assert not any(part.startswith(" ") for part in parts)


def test_names_of_special_tokens_are_plain_text():
    tokenizer = tiny("[", "]", "sep", "x")
    rows = [tokenizer.token_to_id(token) for token in ("x", "[", "sep", "]")]
    plain = PlainTokenizer(tokenizer)
    assert plain.ids(["x [SEP]"])[0].tolist() == rows
    assert plain.pieces(["x [SEP]"])[0].ids.tolist() == rows


def test_a_special_token_that_the_model_makes_of_text_is_unknown():
    tokenizer = Tokenizer(
        models.WordLevel({t: i for i, t in enumerate([*SPECIAL_TOKENS, "x"])}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    assert PlainTokenizer(tokenizer).ids(["x [SEP]"])[0].tolist() == [5, 1]


def test_the_frame_is_read_off_the_tokenizer():
    frame = PlainTokenizer(tiny("x")).frame
    assert frame.around(np.array([7, 8])).tolist() == [[2, 7, 8, 3], [0, 0, 0, 0]]
    assert frame.around_pair(np.array([7]), np.array([8, 9])).tolist() == (
        [[2, 7, 3, 8, 9, 3], [0, 0, 0, 1, 1, 1]]
    )
    assert (frame.num_special, frame.num_special_pair) == (2, 3)


def test_padding_and_truncation_of_the_tokenizer_are_not_used():
    tokenizer = tiny("x")
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(max_length=2)
    assert PlainTokenizer(tokenizer).ids(["x x x"])[0].tolist() == [5, 5, 5]
