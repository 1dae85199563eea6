"""Inspected sequences for the screen: one compact line each, and what its signs mean."""

from rich.text import Text

from amber.run.inspected import InspectedSequence, InspectedToken, Inspection

NOTABLE = 0.5
"""Probability of being replaced from which a token is marked where there are no colours."""

FAINT = 0.1
"""Probability below which a token gets no background."""

REPLACED, LUCKY = "bold yellow", "bold green"


def compact(sequence: InspectedSequence, *, is_coloured: bool) -> Text:
    """Write a sequence as the main encoder sees it, in one line that wraps at blanks.

    With colours, the background is the suspicion. Without, replaced tokens stand in braces behind
    what the text has, and suspicion is a number where it is 50 % or more, or in braces.
    """
    tokens = [token for token in sequence.tokens if not token.is_special]
    write = coloured if is_coloured else plain
    return Text(" ").join(write(token) for token in tokens)


def coloured(token: InspectedToken) -> Text:
    """Write one token with colours."""
    shade = background(suspicion(token))
    if is_energy_only(token):
        return Text.assemble(token.token, (f"({token.text_energy:.2f})", "dim"))
    if is_untouched(token):
        return Text(token.token, style=shade)
    there = stands_there(token)
    if there == token.token and not token.is_conflict:
        return Text(there, style=f"{shade} {LUCKY}")
    return Text.assemble((token.token, "dim strike"), " ", (there, f"{shade} {REPLACED}"))


def is_energy_only(token: InspectedToken) -> bool:
    """Whether its energy in the text as it is is all that is known of a token."""
    return token.text_energy is not None and token.seen is None


def is_untouched(token: InspectedToken) -> bool:
    """Whether a token was neither chosen nor replaced."""
    return token.choice is None and token.seen in (None, token.token)


def stands_there(token: InspectedToken) -> str:
    """Return what stands at a touched token: what was drawn, or the first guess."""
    if token.seen is None and token.choice is not None:
        return token.choice.guesses[0].token
    return token.seen or token.token


def suspicion(token: InspectedToken) -> float | None:
    """Return how probable it is to the main encoder that the text has another token here."""
    if token.naming is not None:
        return 1.0 - token.naming.original_probability
    return token.replaced_probability


def background(probability: float | None) -> str:
    """Return the style of a suspicion: from dark to bright red, with white letters."""
    if probability is None or probability < FAINT:
        return ""
    return f"white on rgb({60 + round(150 * probability)},20,30)"


def plain(token: InspectedToken) -> Text:
    """Write one token without colours."""
    if is_energy_only(token):
        return Text(f"{token.token}({token.text_energy:.2f})")
    named = "" if token.naming is None else first_guess(token.naming.guesses)
    chance = token.replaced_probability
    if is_untouched(token):
        is_wrong = token.naming is not None and not token.naming.is_right
        remark = f"{chance:.0%}" if chance is not None and chance >= NOTABLE else ""
        remark = named if is_wrong else remark
        return Text(f"{token.token}({remark})" if remark else token.token)
    if token.seen is None and token.choice is not None:
        return Text(f"{{{token.token}: {first_guess(token.choice.guesses)}}}")
    sign = "->" if token.is_replaced else "="
    sign = "~>" if token.choice is None else sign
    remark = f": {named}" if named else ("" if chance is None else f" {chance:.0%}")
    return Text(f"{{{token.token} {sign} {token.seen}{remark}}}")


def first_guess(guesses: tuple) -> str:
    """Write the most probable of some guesses."""
    return f"{guesses[0].token} {guesses[0].probability:.0%}"


def legend(inspection: Inspection, *, is_coloured: bool) -> Text:
    """Explain the compact line and the columns of the table."""
    signs = coloured_signs(inspection) if is_coloured else Text("; ".join(plain_signs(inspection)))
    return Text("\n").join([signs, *map(Text, remarks(inspection))])


def plain_signs(inspection: Inspection) -> list[str]:
    """Explain the signs of a line without colours."""
    kind = inspection.kind
    if kind == "mlm":
        return ["{word: guess 31%}: hidden, and the first guess with its probability"]
    if inspection.noise is None:
        return {
            "electric": ["word(1.23): its energy, given all other tokens"],
            "namer": ["word(guess 31%): the encoder would name another token here"],
        }.get(kind, ["word(62%): probability of being replaced, where it is 50 % or more"])
    if kind == "namer":
        signs = [
            "{was -> is: name 31%}: replaced, and what the encoder names there",
            "{was = is: name 80%}: chosen and drawn right",
        ]
        signs += ["word(name 31%): named wrong"] * (inspection.objective == "all_tokens_mlm")
    elif kind == "electric":
        signs = [
            "{was -> is 93%}: noise, with the probability of being noise",
            "{was -> was 4%}: noise that equals the text",
            "word(62%): a false alarm",
        ]
    else:
        signs = ["{was -> is 93%}: replaced, with the probability of being replaced"]
        if inspection.label_rule == "source":
            signs.append(
                "{was -> was 2%}: conflict, drawn right but labelled replaced by its source"
            )
        else:
            signs.append("{was = was 2%}: chosen and drawn right, so original")
        signs += ["word(62%): a false alarm"] * (inspection.objective != "rtd_masked")
    has_random = any(is_random(token) for row in inspection.sequences for token in row.tokens)
    signs += ["{was ~> is ...}: not chosen, but replaced at random"] * has_random
    return signs


def is_random(token: InspectedToken) -> bool:
    """Whether a token was replaced without being chosen (noise.random_fraction)."""
    return token.choice is None and not is_untouched(token)


def coloured_signs(inspection: Inspection) -> Text:
    """Explain the colours of a line."""
    kind = inspection.kind
    if kind == "mlm":
        return Text.assemble(
            ("hidden", "dim strike"), " ", ("wrong first guess", REPLACED), ("  right", LUCKY)
        )
    if inspection.noise is None:
        words = {
            "electric": "word(1.23): its energy, given all other tokens",
            "namer": "redder = the encoder would sooner name another token",
        }
        return Text(words.get(kind, "redder = more probably replaced"), style="dim")
    is_source = inspection.label_rule == "source"
    lucky = () if is_source else ("  ", ("drawn right, so original", LUCKY))
    what = {"namer": "that another token is named", "electric": "noise"}.get(kind, "replaced")
    return Text.assemble(
        ("original", "dim strike"),
        " ",
        ("noise" if kind == "electric" else "replaced", REPLACED),
        *lucky,
        "  background: ",
        *[part for p in (0.1, 0.5, 0.9) for part in ((f" {p:.0%} ", background(p)), " ")],
        f"probability {what}" if kind == "namer" else f"probably {what}",
    )


def remarks(inspection: Inspection) -> list[str]:
    """Explain what differs from objective to objective and from noise to noise."""
    noise, objective = inspection.noise, inspection.objective
    lines = []
    if noise == "two_tower":
        lines.append("guesses: of the towers, which see the text as it is on both sides of a token")
    if noise == "unigram":
        lines.append("drawn: by the token frequencies of the training text, seeing nothing else")
    if noise == "uniform":
        lines.append("drawn: every token alike")
    if objective == "rtd_masked":
        lines.append(
            "P(replaced): it was trained at chosen tokens only, and means nothing elsewhere"
        )
    if objective == "all_tokens_mlm":
        lines.append("P(copy): of keeping the token that is seen; what is named counts it in")
    if objective == "electric":
        lines.append(
            "E(text): energy in the text as it is, given all other tokens; low: likely there"
        )
        if noise is not None:
            lines.append(
                "E: the same in the text with noise; P(noise): from E, the probability of the "
                "token under the noise, and the share of noise"
            )
    return lines


def title(sequence: InspectedSequence, inspection: Inspection) -> str:
    """Name a sequence where there are several; nothing otherwise."""
    is_alone = max(each.text for each in inspection.sequences) == 1
    words = [] if is_alone else [f"text {sequence.text}"]
    if sequence.num_parts > 1:
        words.append(f"part {sequence.part} of {sequence.num_parts}")
    return ", ".join(words)


def score_line(sequence: InspectedSequence) -> str:
    """Write the score of a sequence; nothing where it has none."""
    if sequence.score is None:
        return ""
    return f"score {sequence.score:.2f} nats: minus the sum of E(text)"
