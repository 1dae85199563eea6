"""The tokens of an inspected sequence as a table for the screen, a row each."""

from collections.abc import Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

from amber.report.sentence import LUCKY, REPLACED, background, is_random, is_untouched, suspicion
from amber.run.inspected import Choice, Guess, InspectedSequence, InspectedToken, Inspection

TREATMENTS = {"mask": "", "kept": "kept ", "random": "random "}

Column = Literal[
    "#",
    "token",
    "shown",
    "generator saw",
    "its guesses",
    "guesses",
    "P(right)",
    "drawn",
    "label",
    "P(replaced)",
    "P(noise)",
    "E(text)",
    "E",
    "P(copy)",
    "encoder names",
    "P(original)",
    "answer",
]

NUMBERS = ("#", "P(right)", "P(replaced)", "P(noise)", "E(text)", "E", "P(copy)", "P(original)")


def token_table(sequence: InspectedSequence, inspection: Inspection, *, is_coloured: bool) -> Table:
    """Lay out all tokens of a sequence."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    names = columns(inspection)
    for name in names:
        table.add_column(name, justify="right" if name in NUMBERS else "left", overflow="fold")
    for position, token in enumerate(sequence.tokens):
        cells = [cell(name, token, position, is_coloured=is_coloured) for name in names]
        is_quiet = is_untouched(token) and inspection.noise is not None
        is_quiet |= inspection.kind == "mlm" and token.choice is None
        table.add_row(*cells, style="dim" if is_coloured and is_quiet else "")
    return table


def columns(inspection: Inspection) -> list[Column]:
    """Choose the columns: what the network that proposes said, and what the main encoder did."""
    kind, objective, noise = inspection.kind, inspection.objective, inspection.noise
    if kind == "mlm":
        return ["#", "token", "shown", "guesses", "P(right)"]
    names: list[Column] = ["#", "token"]
    if noise is not None and kind != "namer":
        if noise == "two_tower":
            names.append("guesses")
        elif noise in ("generator", "frozen"):
            names.extend(("generator saw", "its guesses"))
    if noise is not None:
        names.extend(("drawn", "label"))
    if kind == "namer":
        if objective == "all_tokens_mlm":
            names.append("P(copy)")
        return [*names, "encoder names", "P(original)", "answer"]
    if kind != "electric":
        return [*names, "P(replaced)"]
    return [*names, "E", "P(noise)", "E(text)"] if noise is not None else [*names, "E(text)"]


def cell(name: Column, token: InspectedToken, position: int, *, is_coloured: bool) -> Text:
    """Write one cell; blank where there is nothing to say."""
    choice, naming = token.choice, token.naming
    if name == "#":
        return Text(str(position), style="dim")
    if name == "token":
        return Text(token.token)
    if name == "drawn":
        return drawn(token)
    if name == "label":
        return label(token, is_electric=token.energy is not None)
    if name in ("P(replaced)", "P(noise)"):
        shade = background(suspicion(token)) if is_coloured else ""
        return number(token.replaced_probability, ".1%", shade)
    if name in ("E", "E(text)"):
        return number(token.energy if name == "E" else token.text_energy, ".2f")
    if naming is not None and name in ("P(copy)", "encoder names", "P(original)", "answer"):
        shade = background(suspicion(token)) if is_coloured else ""
        is_right = naming.is_right
        return {
            "P(copy)": number(naming.copy_probability, ".1%"),
            "encoder names": guesses(naming.guesses),
            "P(original)": number(naming.original_probability, ".1%", shade),
            "answer": Text("right" if is_right else "wrong", LUCKY if is_right else REPLACED),
        }[name]
    if choice is None:
        return Text("")
    return of_choice(name, choice)


def of_choice(name: Column, choice: Choice) -> Text:
    """Write what the network that proposes saw and said."""
    if name in ("shown", "generator saw"):
        return Text(f"{TREATMENTS[choice.treatment or 'mask']}{choice.shown or ''}")
    if name in ("guesses", "its guesses"):
        return guesses(choice.guesses)
    return number(choice.original_probability, ".1%") if name == "P(right)" else Text("")


def drawn(token: InspectedToken) -> Text:
    """Write what was put in the place of a token."""
    if token.choice is not None and token.choice.sampled is not None:
        sampled = token.choice.sampled
        return Text(f"{sampled.token} {sampled.probability:.1%}")
    return Text(f"{token.seen} at random" if is_random(token) else "")


def label(token: InspectedToken, *, is_electric: bool) -> Text:
    """Write the label of a token that was chosen or replaced."""
    if is_untouched(token):
        return Text("")
    if not token.is_replaced:
        return Text("original", style=LUCKY)
    words = ("noise = text", "noise") if is_electric else ("conflict", "replaced")
    return Text(words[0] if token.is_conflict else words[1], style=REPLACED)


def guesses(proposed: Sequence[Guess]) -> Text:
    """Write the guesses with their probabilities."""
    return Text(", ".join(f"{guess.token} {guess.probability:.1%}" for guess in proposed))


def number(value: float | None, form: str, style: str = "") -> Text:
    """Write a number; blank where there is none."""
    return Text(
        "" if value is None else f"{value:{form}}", style=style if value is not None else ""
    )
