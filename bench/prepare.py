"""Speed of `amber prepare` from text to ids, as a ratio to what the tokenizer library does alone.

    python bench/prepare.py TEXT --tokenizer vocab.txt --num-workers 2

Both sides get the same text, tokenizer, batches and number of processes, in turn, three times. The
library's side
is given the batches ready in memory and only calls `encode_batch`; ours also reads, normalises,
drops
duplicates, converts and writes. Starting processes is part of both times.
"""

import argparse
import statistics
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tokenizers import Tokenizer

from amber.text.corpus import ReadingRule, read_corpus
from amber.text.files import find_sources
from amber.tokens.config import PrepareConfig
from amber.tokens.encode import single_thread
from amber.tokens.prepare import prepare
from amber.tokens.tokenised import BATCH_CHARACTERS
from amber.tokens.tokenizer import load_tokenizer

HELD: list[Tokenizer] = []


def start(tokenizer_json: str) -> None:
    HELD.append(Tokenizer.from_str(tokenizer_json))


def encode(texts: list[str]) -> int:
    encodings = HELD[0].encode_batch(texts, add_special_tokens=False)
    return sum(len(encoding) for encoding in encodings)


def plain(batches: list[list[str]], tokenizer: Tokenizer, num_workers: int) -> float:
    """Seconds that the library alone takes."""
    begin = time.perf_counter()
    with single_thread():
        if num_workers == 1:
            HELD[:] = [tokenizer]
            for texts in batches:
                encode(texts)
        else:
            context = get_context("spawn")
            with ProcessPoolExecutor(
                num_workers, mp_context=context, initializer=start, initargs=(tokenizer.to_str(),)
            ) as pool:
                list(pool.map(encode, batches))
    return time.perf_counter() - begin


def ours(text: str, tokenizer: Path, num_workers: int) -> float:
    """Seconds that the whole of `prepare` takes."""
    with tempfile.TemporaryDirectory() as folder:
        config = PrepareConfig(
            text=(text,), out=Path(folder, "data"), tokenizer=tokenizer, num_workers=num_workers
        )
        begin = time.perf_counter()
        prepare(config)
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--num-workers", type=int, default=2)
    args = parser.parse_args()
    tokenizer = load_tokenizer(args.tokenizer)
    batches: list[list[str]] = [[]]
    size = 0
    for document in read_corpus(find_sources([args.text]).sources, ReadingRule(), counts=Counter()):
        batches[-1].append(document.text)
        size += len(document.text)
        if sum(map(len, batches[-1])) >= BATCH_CHARACTERS:
            batches.append([])
    ratios = []
    for turn in range(3):
        library = plain(batches, tokenizer, args.num_workers)
        amber = ours(args.text, args.tokenizer, args.num_workers)
        ratios.append(library / amber)
        print(
            f"turn {turn + 1}: encode_batch {library:.2f} s, prepare {amber:.2f} s, "
            f"{size / amber / 1e6:.2f} million characters/s, ratio {ratios[-1]:.2f}"
        )
    print(f"{args.num_workers} processes: median ratio {statistics.median(ratios):.2f} (aim: 0.8)")


if __name__ == "__main__":
    main()
