"""How inspected sequences look, with and without colours."""

import io

import pytest
from rich.console import Console

from amber.report.sentence import background, compact, legend, title, token_table
from amber.run.inspected import Choice, Guess, InspectedSequence, InspectedToken, Inspection


def token(
    name: str,
    suspicion: float | None = 0.02,
    *,
    drawn: str | None = None,
    treatment: str = "mask",
    is_special: bool = False,
) -> InspectedToken:
    choice = None
    if drawn is not None:
        choice = Choice(
            treatment=treatment,
            shown="[MASK]" if treatment == "mask" else name,
            guesses=(Guess(token="ate", probability=0.6), Guess(token="saw", probability=0.3)),
            original_probability=0.125,
            sampled=None if suspicion is None else Guess(token=drawn, probability=0.6),
        )
    return InspectedToken(
        token=name,
        is_special=is_special,
        choice=choice,
        is_replaced=drawn is not None and drawn != name,
        replaced_probability=suspicion,
    )


def sequence(*tokens: InspectedToken, part: int = 1, num_parts: int = 1) -> InspectedSequence:
    ends = (token("[CLS]", is_special=True), token("[SEP]", is_special=True))
    return InspectedSequence(
        text=1, part=part, num_parts=num_parts, tokens=(ends[0], *tokens, ends[1])
    )


EXAMPLE = sequence(
    token("the"),
    token("chef", 0.62),
    token("cooked", 0.934, drawn="ate"),
    token("a", 0.07, drawn="a", treatment="kept"),
    token("##s"),
)


def printed(renderable: object, *, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_without_colours_every_fact_is_in_the_letters():
    line = compact(EXAMPLE, is_coloured=False).plain
    assert line == "the chef(62%) {cooked -> ate 93%} {a = a 7%} ##s"


def test_with_colours_the_original_is_struck_and_the_suspicion_is_the_background():
    line = compact(EXAMPLE, is_coloured=True)
    assert line.plain == "the chef cooked ate a ##s"
    styles = {line.plain[span.start : span.end]: str(span.style) for span in line.spans}
    assert styles["cooked"] == "dim strike"
    assert styles["ate"] == f"{background(0.934)} bold yellow"  # the last colour wins
    assert styles["chef"] == background(0.62)


def test_a_higher_suspicion_is_redder_and_a_low_one_has_no_background():
    reds = [int(background(p).partition("rgb(")[2].partition(",")[0]) for p in (0.1, 0.5, 1.0)]
    assert reds == sorted(set(reds))
    assert background(0.05) == background(None) == ""


def test_a_masked_language_model_shows_its_first_guess():
    row = sequence(token("the", None), token("cooked", None, drawn="x"))
    assert compact(row, is_coloured=False).plain == "the {cooked: ate 60%}"
    assert compact(row, is_coloured=True).plain == "the cooked ate"


def test_the_table_tells_what_happened_to_each_token():
    lines = printed(token_table(EXAMPLE, "pair", is_coloured=False)).splitlines()
    assert len(lines) == 8
    cooked = lines[4].split()
    assert cooked[:3] == ["3", "cooked", "[MASK]"]
    assert "ate 60.0%, saw 30.0%" in lines[4]
    assert cooked[-2:] == ["replaced", "93.4%"]
    assert "kept a" in lines[5]
    assert lines[5].split()[-2:] == ["original", "7.0%"]


@pytest.mark.parametrize("kind", ["mlm", "discriminator"])
def test_the_table_of_one_network_has_its_columns_only(kind):
    suspicion = None if kind == "mlm" else 0.5
    row = sequence(token("cooked", suspicion, drawn="x" if kind == "mlm" else None))
    table = printed(token_table(row, kind, is_coloured=False))
    assert ("guesses" in table) == (kind == "mlm")
    assert ("P(replaced)" in table) == (kind == "discriminator")


def test_wide_characters_keep_the_columns_aligned():
    row = sequence(token("\u732b\u732b"), token("\U0001f600"), token("ab"))
    lines = printed(token_table(row, "discriminator", is_coloured=False)).splitlines()
    wide = [line.replace("\u732b\u732b", "1234").replace("\U0001f600", "12") for line in lines]
    assert len({len(line) for line in wide[1:]}) == 1


@pytest.mark.parametrize("kind", ["pair", "mlm", "discriminator"])
def test_every_kind_has_a_legend(kind):
    for is_coloured in (True, False):
        assert legend(kind, is_coloured=is_coloured).plain


def test_titles_name_parts_and_texts_where_there_are_several():
    one, two = sequence(token("a"), part=1, num_parts=2), sequence(token("a"), part=2, num_parts=2)
    inspection = Inspection(
        model="m", kind="pair", fraction=0.15, length=8, seed=0, sequences=(one, two)
    )
    assert title(two, inspection) == "part 2 of 2"
