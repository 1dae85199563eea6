"""`amber prepare`: show how the reading goes, and what is in the data folder."""

import json
import time
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from amber.cli.output import duration, open_console, plain_table, print_json, short_number
from amber.tokens.config import PrepareConfig
from amber.tokens.prepare import prepare
from amber.tokens.shards import Manifest, manifest_json

SECONDS_BETWEEN_LINES = 10.0
SCRIPT_HEADINGS = ("script (of a sample)", "of the tokens", "of them [UNK]")
MAIN_COUNTS = ("characters_read", "documents_read", "documents_kept", "tokens", "bytes_on_disk")
WORD_COUNTS = ("chinese_words", "chinese_words_as_tokens")


def run(config: PrepareConfig, *, is_json: bool) -> int:
    """Prepare the text and print what came out."""
    console = open_console(is_json=is_json)
    start = time.perf_counter()
    progress = Reading(console)
    with progress.live if console.is_terminal else nullcontext():
        manifest = prepare(config, on_progress=progress.note)
    if is_json:
        print_json(json.loads(manifest_json(manifest)))
    show_manifest(manifest, config, console, seconds=time.perf_counter() - start)
    return 0


class Reading:
    """How far the reading is; the text is read twice when a tokenizer is trained."""

    def __init__(self, console: Console) -> None:
        """Show nothing yet."""
        self.console = console
        self.start = self.shown = time.perf_counter()
        self.counts = (0, 0, 0, 0)
        self.live = Live(
            console=console, get_renderable=self.render, transient=True, refresh_per_second=4
        )

    def note(self, done: int, total: int, documents: int, tokens: int) -> None:
        """Note bytes read, bytes to read, documents and tokens so far."""
        self.counts = (done, total, documents, tokens)
        now = time.perf_counter()
        if not self.console.is_terminal and now - self.shown >= SECONDS_BETWEEN_LINES:
            self.shown = now
            self.console.print("  ".join(self.words()), soft_wrap=True)

    def words(self) -> list[str]:
        """Say how far it is."""
        done, total, documents, tokens = self.counts
        elapsed = time.perf_counter() - self.start
        what = f"{short_number(tokens)} tokens" if tokens else "reading"
        words = [f"{done / max(1, total):.0%}", f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"]
        words += [f"{done / 1e6 / max(elapsed, 1e-9):.1f} MB/s"]
        words += [f"{short_number(documents)} documents", what]
        if done:
            words.append(f"{duration(elapsed * (total - done) / done)} left")
        return words

    def render(self) -> Table | Text:
        """Draw the live line."""
        done, total = self.counts[:2]
        if not total:
            return Text("looking at the files", style="dim")
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=total, completed=done, width=20)
        row.add_row(bar, Text("  ".join(self.words()), no_wrap=True, overflow="ellipsis"))
        return row


def show_manifest(
    manifest: Manifest, config: PrepareConfig, console: Console, *, seconds: float
) -> None:
    """Print what is in the data folder, what was dropped, and where [UNK] occurs."""
    counts, train, held_out = manifest.counts, manifest.train, manifest.held_out
    rate = counts["bytes_on_disk"] / 1e6 / max(seconds, 1e-9)
    rows = [["characters read", f"{counts['characters_read']:,}"]]
    rows.append(["documents read", f"{counts['documents_read']:,}"])
    rows.append(["documents kept", f"{counts['documents_kept']:,}"])
    rows += [
        ["  " + name.replace("_", " "), f"{number:,}"]
        for name, number in counts.items()
        if name not in (*MAIN_COUNTS, *WORD_COUNTS) and number
    ]
    rows += [
        ["tokens to train on", f"{train.num_tokens:,}"],
        ["tokens held out", f"{held_out.num_tokens:,} in {held_out.num_documents:,} documents"],
        ["vocabulary", f"{manifest.vocab_size:,}"],
        ["unigram entropy", f"{manifest.unigram_entropy:.3f} nats"],
        ["[UNK]", f"{manifest.unk_fraction:.2%} of the tokens"],
        *word_rows(manifest),
        ["time", f"{duration(seconds)}, {rate:.1f} MB/s"],
    ]
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    console.print(table)
    console.print()
    console.print(plain_table(SCRIPT_HEADINGS, script_rows(manifest)))
    for note in manifest.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for path in manifest.skipped_files:
        console.print(f"not read: {path}", markup=False, soft_wrap=True)
    console.print(
        f"\ndata: {config.out}\nnext: amber pretrain --data {config.out} --out RUN "
        "--budget.hours 1",
        markup=False,
        soft_wrap=True,
    )


def word_rows(manifest: Manifest) -> list[list[str]]:
    """Say who cut the words, and how many of them do not fit the tokens."""
    if manifest.words == "none":
        return []
    if manifest.words == "tokenizer":
        return [["words", "of the tokenizer; a Chinese character is one"]]
    total, split = (manifest.counts[name] for name in WORD_COUNTS)
    return [
        ["words", f"of the tokenizer, and {total:,} of Chinese by jieba"],
        ["  as single tokens", f"{split:,} of these, crossed by a token"],
    ]


def script_rows(manifest: Manifest) -> list[list[str]]:
    """Write the share of the tokens and of [UNK] of each script."""
    total = sum(row["tokens"] for row in manifest.unk_by_script.values())
    return [
        [script, f"{row['tokens'] / total:.1%}", f"{row['unk_fraction']:.2%}"]
        for script, row in manifest.unk_by_script.items()
    ]
