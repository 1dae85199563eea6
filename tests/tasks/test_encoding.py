import pytest
from transformers import PreTrainedTokenizerFast

from amber.errors import UserError
from amber.tasks.encoding import encode_texts, pair_lengths
from amber.tasks.example import TextExample
from amber.tokens.tokenizer import add_template, wordpiece
from amber.tokens.vocabulary import SPECIAL_TOKENS

LETTERS = "abcdefghij"


def tiny():
    tokenizer = wordpiece([*SPECIAL_TOKENS, *LETTERS], lowercase=True, strip_accents=True)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    return tokenizer


def text(count, start=0):
    return " ".join(LETTERS[start : start + count])


def test_a_text_that_fits_is_whole():
    found = encode_texts([TextExample(id="0", text="a b")], tiny(), max_length=4)[0]
    assert found.input_ids.tolist() == [2, 5, 6, 3]
    assert found.token_type_ids.tolist() == [0, 0, 0, 0]
    assert not found.is_truncated


def test_a_long_text_loses_its_end():
    found = encode_texts([TextExample(id="0", text="a b c")], tiny(), max_length=4)[0]
    assert found.input_ids.tolist() == [2, 5, 6, 3]
    assert found.is_truncated


def test_texts_and_pairs_keep_their_order():
    examples = [
        TextExample(id="0", text="a", pair="b c"),
        TextExample(id="1", text="d"),
        TextExample(id="2", text="e", pair=""),
    ]
    found = encode_texts(examples, tiny(), max_length=16)
    assert [e.input_ids.tolist() for e in found] == [
        [2, 5, 3, 6, 7, 3],
        [2, 8, 3],
        [2, 9, 3, 3],
    ]
    assert found[0].token_type_ids.tolist() == [0, 0, 0, 1, 1, 1]


def piece_by_piece(first, second, budget):
    """BERT's rule, as it is told: take one piece from the longer, of equals from the second."""
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pairs_are_cut_piece_by_piece_from_the_longer():
    for first in range(9):
        for second in range(9):
            for budget in range(1, 18):
                expected = piece_by_piece(first, second, budget)
                assert pair_lengths(first, second, budget=budget) == expected


@pytest.mark.parametrize(("first", "second"), [(6, 2), (2, 6), (6, 4), (5, 1), (3, 2)])
def test_pairs_equal_those_of_transformers_where_the_rules_agree(first, second):
    tokenizer = tiny()
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tiny(), cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]"
    )
    for max_length in (7, 8, 9, 10):
        if (max_length - 3) % 2 and second > (max_length - 3) // 2 and second > first:
            continue  # an odd number is left and the second was longer: the rules differ
        expected = theirs(
            text(first),
            text(second),
            truncation="longest_first",
            max_length=max_length,
            return_token_type_ids=True,
        )
        example = TextExample(id="0", text=text(first), pair=text(second))
        found = encode_texts([example], tokenizer, max_length=max_length)[0]
        assert found.input_ids.tolist() == expected["input_ids"]
        assert found.token_type_ids.tolist() == expected["token_type_ids"]


def test_an_empty_text_is_two_special_tokens():
    found = encode_texts([TextExample(id="0", text="")], tiny(), max_length=8)[0]
    assert found.input_ids.tolist() == [2, 3]


def test_a_length_without_room_for_text_is_refused():
    with pytest.raises(UserError, match="recipe.length is 2, and special tokens take 2"):
        encode_texts([TextExample(id="0", text="a")], tiny(), max_length=2)
    with pytest.raises(UserError, match="special tokens take 3"):
        encode_texts([TextExample(id="0", text="a", pair="b")], tiny(), max_length=3)
