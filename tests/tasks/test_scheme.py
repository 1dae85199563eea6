import pytest

from amber.tasks.scheme import detect_scheme, split_tag, to_bio

BIO = ["O", "B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-LOC", "B-PER"]
WRITTEN = {
    "BIO": BIO,
    "IOB1": ["O", "I-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-LOC", "I-PER"],
    "BIOES": ["O", "B-PER", "E-PER", "O", "S-LOC", "B-LOC", "E-LOC", "S-PER"],
    "BMES": ["O", "B-PER", "E-PER", "O", "S-LOC", "B-LOC", "E-LOC", "S-PER"],
    "BILOU": ["O", "B-PER", "L-PER", "O", "U-LOC", "B-LOC", "L-LOC", "U-PER"],
}


@pytest.mark.parametrize("scheme", list(WRITTEN))
def test_every_scheme_becomes_the_same_bio(scheme):
    assert to_bio(WRITTEN[scheme], scheme) == (tuple(BIO), ())


def test_long_entities_keep_their_middle():
    assert to_bio(["B-X", "M-X", "M-X", "E-X"], "BMES")[0] == ("B-X", "I-X", "I-X", "I-X")
    assert to_bio(["B-X", "I-X", "I-X", "E-X"], "BIOES")[0] == ("B-X", "I-X", "I-X", "I-X")


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O B-X I-X", "BIO"),
        ("O O", "BIO"),
        ("I-X I-X O", "IOB1"),
        ("I-X B-X O I-Y", "IOB1"),
        ("I-X I-Y", "IOB1"),
        ("I-X O B-X", "BIO"),  # B- after O is never IOB1: the lone I- is a fault
        ("B-X E-X", "BIOES"),
        ("S-X", "BIOES"),
        ("B-X M-X E-X", "BMES"),
        ("B-X I-X L-X U-X", "BILOU"),
        ("B-X M-X I-X", None),
        ("M-X L-X", None),
    ],
)
def test_the_scheme_is_told_from_the_tags(tags, scheme):
    assert detect_scheme([tags.split()]) == scheme


def test_the_scheme_is_told_from_the_whole_file_and_sentences_end_entities():
    assert detect_scheme([["B-X", "I-X"], ["S-X"]]) == "BIOES"
    assert detect_scheme([["I-X"], ["B-X"]]) == "BIO"


@pytest.mark.parametrize(
    ("tags", "scheme", "bio", "broken"),
    [
        ("O I-X I-X", "BIO", "O B-X I-X", (1,)),
        ("B-X I-Y", "BIO", "B-X B-Y", (1,)),
        ("B-X O", "BIOES", "B-X O", (1,)),
        ("B-X I-X", "BIOES", "B-X I-X", (1,)),
        ("M-X E-X O", "BMES", "B-X I-X O", (0,)),
        ("S-X E-X", "BMES", "B-X B-X", (1,)),
        ("B-X B-X E-X", "BMES", "B-X B-X I-X", (1,)),
    ],
)
def test_what_breaks_a_scheme_is_read_as_conlleval_does_and_reported(tags, scheme, bio, broken):
    assert to_bio(tags.split(), scheme) == (tuple(bio.split()), broken)


def test_a_tag_is_a_letter_a_dash_and_a_type():
    assert split_tag("B-creative-work") == ("B", "creative-work")
    assert split_tag("O") == ("O", "")
    for text in ("", "B", "B-", "X-PER", "o", "NOUN", "B_PER", "O-"):
        assert split_tag(text) is None
