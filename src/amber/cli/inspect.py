"""`amber inspect`: a text through the eyes of a model, token by token."""

from dataclasses import asdict

from rich.console import Console

from amber.cli.output import open_console, print_json
from amber.report.sentence import compact, legend, score_line, title
from amber.report.token_table import token_table
from amber.run.commands import InspectConfig
from amber.run.inspected import Inspection
from amber.run.inspection import inspect_text


def run(config: InspectConfig, *, is_json: bool) -> int:
    """Print what the model does with the texts."""
    inspection = inspect_text(config)
    if is_json:
        print_json(asdict(inspection))
    else:
        show(inspection, open_console(is_json=False))
    return 0


def show(inspection: Inspection, console: Console, *, has_tables: bool = True) -> None:
    """Print each sequence as a compact line and, if wanted, as a table."""
    is_coloured = has_colours(console)
    for note in inspection.notes:
        console.print(f"{note}\n", markup=False)
    if any(sequence.num_parts > 1 for sequence in inspection.sequences):
        console.print(
            f"longer texts are cut into sequences of {inspection.length} tokens, "
            "[CLS] and [SEP] included\n"
        )
    for sequence in inspection.sequences:
        name = title(sequence, inspection)
        if name and has_tables:
            console.print(name, style="bold")
        console.print(compact(sequence, is_coloured=is_coloured))
        console.print()
        if has_tables:
            console.print(token_table(sequence, inspection, is_coloured=is_coloured))
            console.print()
        if sequence.score is not None:
            console.print(f"{score_line(sequence)}\n")
    console.print(legend(inspection, is_coloured=is_coloured))


def has_colours(console: Console) -> bool:
    """Whether colours can be seen."""
    return console.color_system is not None and not console.no_color
