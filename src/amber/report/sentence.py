"""Inspected sequences for the screen: one compact line each, then a table."""

from rich.table import Table
from rich.text import Text

from amber.run.inspected import Choice, InspectedSequence, InspectedToken, Inspection

NOTABLE = 0.5
"""Probability of being replaced from which a token is marked where there are no colours."""

FAINT = 0.1
"""Probability below which a token gets no background."""

TREATMENTS = {"mask": "", "kept": "kept ", "random": "random "}
REPLACED, LUCKY = "bold yellow", "bold green"


def compact(sequence: InspectedSequence, *, is_coloured: bool) -> Text:
    """Write a sequence as the discriminator sees it, in one line that wraps at blanks.

    With colours, the background is the suspicion. Without, replaced tokens stand in braces behind
    what the text has, and suspicion is a number where it is 50 % or more, or in braces.
    """
    write = coloured if is_coloured else plain
    pieces = [write(token) for token in sequence.tokens if not token.is_special]
    return Text(" ").join(pieces)


def coloured(token: InspectedToken) -> Text:
    """Write one token with colours."""
    shade = background(token.replaced_probability)
    choice = token.choice
    if choice is None:
        return Text(token.token, style=shade)
    there = choice.guesses[0].token if choice.sampled is None else choice.sampled.token
    if there == token.token:
        return Text(there, style=f"{shade} {LUCKY}")
    return Text.assemble((token.token, "dim strike"), " ", (there, f"{shade} {REPLACED}"))


def background(probability: float | None) -> str:
    """Return the style of a suspicion: from dark to bright red, with white letters."""
    if probability is None or probability < FAINT:
        return ""
    return f"white on rgb({60 + round(150 * probability)},20,30)"


def plain(token: InspectedToken) -> Text:
    """Write one token without colours."""
    suspicion = "" if token.replaced_probability is None else f"{token.replaced_probability:.0%}"
    choice = token.choice
    if choice is None:
        is_notable = (token.replaced_probability or 0.0) >= NOTABLE
        return Text(f"{token.token}({suspicion})" if is_notable else token.token)
    if choice.sampled is None:
        guess = choice.guesses[0]
        return Text(f"{{{token.token}: {guess.token} {guess.probability:.0%}}}")
    sign = "->" if token.is_replaced else "="
    return Text(f"{{{token.token} {sign} {choice.sampled.token} {suspicion}}}")


def legend(kind: str, *, is_coloured: bool) -> Text:
    """Explain the compact line."""
    if kind == "discriminator":
        if not is_coloured:
            return Text("word(62%): probability of being replaced, where it is 50 % or more")
        return Text("redder = more probably replaced", style="dim")
    if not is_coloured:
        if kind == "mlm":
            return Text("{word: guess 31%}: hidden, and the first guess with its probability")
        return Text(
            "{was -> is 93%}: replaced, with the probability of being replaced; {was = is 2%}: "
            "hidden and drawn right, so original; word(62%): a false alarm"
        )
    if kind == "mlm":
        return Text.assemble(
            ("hidden", "dim strike"), " ", ("wrong first guess", REPLACED), ("  right", LUCKY)
        )
    return Text.assemble(
        ("original", "dim strike"),
        " ",
        ("replaced", REPLACED),
        "  ",
        ("drawn right, so original", LUCKY),
        "  background: ",
        *[part for p in (0.1, 0.5, 0.9) for part in ((f" {p:.0%} ", background(p)), " ")],
        "probably replaced",
    )


def token_table(sequence: InspectedSequence, kind: str, *, is_coloured: bool) -> Table:
    """Lay out all tokens of a sequence, a row each."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings(kind):
        is_number = heading.startswith("P(") or heading == "#"
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for position, token in enumerate(sequence.tokens):
        cells = [Text(str(position), style="dim"), Text(token.token), *chosen_cells(token, kind)]
        if kind != "mlm":
            shade = background(token.replaced_probability) if is_coloured else ""
            cells.append(Text(f"{token.replaced_probability or 0.0:.1%}", style=shade))
        is_quiet = token.choice is None and kind != "discriminator"
        table.add_row(*cells, style="dim" if is_coloured and is_quiet else "")
    return table


def headings(kind: str) -> list[str]:
    """Name the columns."""
    middle = {
        "pair": ["generator saw", "its guesses", "drawn", "label"],
        "mlm": ["shown", "guesses", "P(right)"],
        "discriminator": [],
    }[kind]
    return ["#", "token", *middle, *([] if kind == "mlm" else ["P(replaced)"])]


def chosen_cells(token: InspectedToken, kind: str) -> list[Text]:
    """Write what happened to a token if it was chosen; blanks if not."""
    if kind == "discriminator":
        return []
    choice = token.choice
    if choice is None:
        return [Text("")] * (4 if kind == "pair" else 3)
    cells = [Text(f"{TREATMENTS[choice.treatment]}{choice.shown}"), guesses(choice)]
    if choice.sampled is None:
        return [*cells, Text(f"{choice.original_probability:.1%}")]
    label = Text("replaced", style=REPLACED) if token.is_replaced else Text("original", style=LUCKY)
    drawn = Text(f"{choice.sampled.token} {choice.sampled.probability:.1%}")
    return [*cells, drawn, label]


def guesses(choice: Choice) -> Text:
    """Write the guesses with their probabilities."""
    return Text(", ".join(f"{guess.token} {guess.probability:.1%}" for guess in choice.guesses))


def title(sequence: InspectedSequence, inspection: Inspection) -> str:
    """Name a sequence where there are several; nothing otherwise."""
    is_alone = max(each.text for each in inspection.sequences) == 1
    words = [] if is_alone else [f"text {sequence.text}"]
    if sequence.num_parts > 1:
        words.append(f"part {sequence.part} of {sequence.num_parts}")
    return ", ".join(words)
