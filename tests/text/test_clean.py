import unicodedata

import pytest

from amber.text.clean import document_key, is_held_out, normalize_document


@pytest.mark.parametrize(
    ("raw", "clean", "num_controls"),
    [
        ("plain text", "plain text", 0),
        ("a\x00b", "a b", 1),
        ("a\ufffdb\x07\x85c", "a b c", 3),
        ("\ufeffa\ufeffb", "ab", 0),
        ("  a \t b  \r\n\r\n\n  c\u3000d\rE ", "a b\nc d\nE", 0),
        ("a\ud800b", "a b", 1),
        ("e\u0301", "\u00e9", 0),
        (" \n\x01 ", "", 1),
    ],
)
def test_the_rule_on_small_inputs(raw, clean, num_controls):
    assert normalize_document(raw) == (clean, num_controls)


def test_nfkc_folds_full_width_forms_and_nfc_does_not():
    wide = "\uff21\uff22\uff23\uff0c\uff11\uff12\uff13"
    assert normalize_document(wide, form="NFKC") == ("ABC,123", 0)
    assert normalize_document(wide) == (wide, 0)
    assert normalize_document("e\u0301", form="none") == ("e\u0301", 0)


@pytest.mark.parametrize("form", ["NFC", "NFKC", "none"])
def test_every_character_comes_out_clean_and_stays_as_it_is(form):
    for start in range(0, 0x30000, 0x1000):
        raw = "".join(f"x{chr(code)} {chr(code)}\n" for code in range(start, start + 0x1000))
        text, _ = normalize_document(raw, form=form)
        assert normalize_document(text, form=form) == (text, 0)
        assert not any(unicodedata.category(c) in ("Cc", "Cs") and c != "\n" for c in text)
        assert not any(c.isspace() and c not in " \n" for c in text)


def test_blanks_marks_and_line_ends_do_not_change_the_key():
    keys = {
        document_key(normalize_document(raw)[0])
        for raw in ("a b\nc", "\ufeffa b\r\nc", "a  b \nc  ", " a\tb\rc\n\n")
    }
    assert len(keys) == 1


def test_the_held_out_share_is_the_asked_one():
    share = sum(is_held_out(document_key(str(n)), 0.1) for n in range(20_000)) / 20_000
    assert abs(share - 0.1) < 0.008  # four standard deviations
