"""How inspected sequences look, with and without colours."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from amber.report.sentence import background, compact, legend, score_line, title
from amber.report.token_table import token_table
from amber.run.inspected import (
    Choice,
    Guess,
    InspectedSequence,
    InspectedToken,
    Inspection,
    Naming,
)


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
        seen=None if suspicion is None else drawn or name,
        is_replaced=drawn is not None and drawn != name,
        replaced_probability=suspicion,
    )


def inspection(
    *sequences: InspectedSequence,
    kind: str = "pair",
    objective: str = "rtd",
    noise: str | None = "generator",
    label_rule: str = "content",
) -> Inspection:
    return Inspection(
        model="m",
        kind=kind,
        objective=objective,
        noise=noise,
        label_rule=label_rule,
        fraction=0.15,
        length=8,
        seed=0,
        sequences=sequences,
    )


PAIR = inspection()
MLM = inspection(kind="mlm", objective="mlm", noise=None)
ALONE = inspection(kind="discriminator", noise=None)
NAMER = inspection(kind="namer", objective="all_tokens_mlm")
ELECTRIC = inspection(kind="electric", objective="electric", noise="two_tower", label_rule="source")
ENERGIES = inspection(kind="electric", objective="electric", noise=None)
EVERY = {
    "pair": PAIR,
    "mlm": MLM,
    "alone": ALONE,
    "namer": NAMER,
    "electric": ELECTRIC,
    "energies": ENERGIES,
    "masked": inspection(objective="rtd_masked"),
    "source": inspection(label_rule="source"),
    "unigram": inspection(noise="unigram"),
    "uniform": inspection(noise="uniform"),
    "replace": inspection(kind="namer", objective="replace_mlm"),
    "namer alone": inspection(kind="namer", objective="all_tokens_mlm", noise=None),
}


def named(name: str, seen: str, guess: str, *, drawn: str | None = None) -> InspectedToken:
    choice = None
    if drawn is not None:
        sampled = Guess(token=drawn, probability=0.1)
        choice = Choice(
            treatment="mask",
            shown="[MASK]",
            guesses=(sampled,),
            original_probability=0.1,
            sampled=sampled,
        )
    return InspectedToken(
        token=name,
        is_special=False,
        choice=choice,
        seen=seen,
        is_replaced=seen != name,
        naming=Naming(
            guesses=(Guess(token=guess, probability=0.62),),
            original_probability=0.62 if guess == name else 0.01,
            is_right=guess == name,
            copy_probability=0.55,
        ),
    )


def energetic(name: str, *, drawn: str | None = None) -> InspectedToken:
    token_there = token(name, 0.3, drawn=drawn)
    return replace(
        token_there,
        is_replaced=drawn is not None,
        is_conflict=drawn == name,
        energy=1.5,
        text_energy=-0.25,
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
    lines = printed(token_table(EXAMPLE, PAIR, is_coloured=False)).splitlines()
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
    table = printed(token_table(row, MLM if kind == "mlm" else ALONE, is_coloured=False))
    assert ("guesses" in table) == (kind == "mlm")
    assert ("P(replaced)" in table) == (kind == "discriminator")


def test_wide_characters_keep_the_columns_aligned():
    row = sequence(token("\u732b\u732b"), token("\U0001f600"), token("ab"))
    lines = printed(token_table(row, ALONE, is_coloured=False)).splitlines()
    wide = [line.replace("\u732b\u732b", "1234").replace("\U0001f600", "12") for line in lines]
    assert len({len(line) for line in wide[1:]}) == 1


@pytest.mark.parametrize("name", EVERY)
def test_every_kind_has_a_legend(name):
    for is_coloured in (True, False):
        assert legend(EVERY[name], is_coloured=is_coloured).plain


@pytest.mark.parametrize("name", EVERY)
def test_every_table_fits_100_columns_and_tells_apart_what_differs(name):
    texts = {
        other: printed(token_table(EXAMPLE, EVERY[other], is_coloured=False)) for other in EVERY
    }
    assert all(len(line) <= 100 for line in texts[name].splitlines())
    assert ("its guesses" in texts[name]) == (name in ("pair", "masked", "source"))
    assert ("drawn" in texts[name]) == (EVERY[name].noise is not None)


def test_legends_say_what_is_special():
    words = {name: legend(each, is_coloured=False).plain for name, each in EVERY.items()}
    assert [name for name in words if "both sides" in words[name]] == ["electric"]
    assert [name for name in words if "chosen tokens only" in words[name]] == ["masked"]
    assert [name for name in words if "every token alike" in words[name]] == ["uniform"]
    assert [name for name in words if "conflict" in words[name]] == ["source"]
    assert [name for name in words if "~>" in words[name]] == []


def test_titles_name_parts_and_texts_where_there_are_several():
    one, two = sequence(token("a"), part=1, num_parts=2), sequence(token("a"), part=2, num_parts=2)
    assert title(two, inspection(one, two)) == "part 2 of 2"


def test_what_is_named_is_written_where_a_token_was_chosen_or_named_wrong():
    row = sequence(
        named("the", "the", "the"),
        named("chef", "chef", "cook"),
        named("cooked", "ate", "cooked", drawn="ate"),
        named("a", "a", "the", drawn="a"),
    )
    line = "the chef(cook 62%) {cooked -> ate: cooked 62%} {a = a: the 62%}"
    assert compact(row, is_coloured=False).plain == line
    lines = printed(token_table(row, NAMER, is_coloured=False)).splitlines()
    assert lines[2].split() == ["1", "the", "55.0%", "the", "62.0%", "62.0%", "right"]
    assert lines[3].split() == ["2", "chef", "55.0%", "cook", "62.0%", "1.0%", "wrong"]
    assert lines[4].split()[1:5] == ["cooked", "ate", "10.0%", "replaced"]


def test_a_token_replaced_at_random_is_marked():
    loose = replace(token("cat", 0.9), seen="dog", is_replaced=True)
    assert compact(sequence(loose), is_coloured=False).plain == "{cat ~> dog 90%}"
    assert compact(sequence(loose), is_coloured=True).plain == "cat dog"
    assert "dog at random  replaced" in printed(
        token_table(sequence(loose), PAIR, is_coloured=False)
    )
    assert "at random" in legend(inspection(sequence(loose)), is_coloured=False).plain


def test_a_conflict_is_labelled_as_one():
    same = replace(token("a", 0.1, drawn="a"), is_replaced=True, is_conflict=True)
    assert compact(sequence(same), is_coloured=False).plain == "{a -> a 10%}"
    rows = printed(token_table(sequence(same), EVERY["source"], is_coloured=False)).splitlines()
    assert rows[2].split()[-2:] == ["conflict", "10.0%"]


def test_energies_are_in_the_table_and_their_sum_below():
    row = replace(
        sequence(energetic("a"), energetic("b", drawn="x"), energetic("c", drawn="c")), score=0.75
    )
    lines = printed(token_table(row, ELECTRIC, is_coloured=False)).splitlines()
    assert lines[2].split() == ["1", "a", "1.50", "30.0%", "-0.25"]
    assert lines[3].split()[-4:] == ["noise", "1.50", "30.0%", "-0.25"]
    assert lines[4].split()[-6:-3] == ["noise", "=", "text"]
    assert score_line(row) == "score 0.75 nats: minus the sum of E(text)"
    assert score_line(EXAMPLE) == ""


def test_energies_alone_are_written_behind_each_token():
    alone = replace(token("a", None), text_energy=-0.25)
    for is_coloured in (True, False):
        assert compact(sequence(alone), is_coloured=is_coloured).plain == "a(-0.25)"
