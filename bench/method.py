"""Every objective, noise source, algorithm, sharing and label rule at equal FLOPs, on one corpus.

Each row is one `amber pretrain`, with the flags below and the preset's settings for all else. A row
that is there already is kept, one that was stopped goes on. With --pairs, each model is then
measured on the held-out text and on minimal pairs; a table is written to OUT/table.md, all figures
to OUT/table.json.

    python bench/method.py DATA OUT [--flops 1e14] [--rows "rtd|mlm"] [--pairs BLIMP] [--seeds 0,1]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FROZEN = "rtd"
"""The row whose generator the frozen one takes."""

ROWS: dict[str, list[str]] = {
    "rtd": [],
    "mlm": ["--objective", "mlm"],
    "rtd_masked": ["--objective", "rtd_masked"],
    "replace_mlm": ["--objective", "replace_mlm"],
    "all_tokens_mlm": ["--objective", "all_tokens_mlm"],
    "electric": ["--objective", "electric", "--noise.source", "two_tower"],
    "electric, unigram noise": ["--objective", "electric", "--noise.source", "unigram"],
    "unigram noise": ["--noise.source", "unigram"],
    "uniform noise": ["--noise.source", "uniform"],
    "two-tower noise": ["--noise.source", "two_tower"],
    "frozen generator": [
        *("--noise.source", "frozen", "--noise.temperature", "2"),
        *("--noise.final-temperature", "1"),
    ],
    "two-stage": ["--algorithm", "two_stage"],
    "adversarial": ["--algorithm", "adversarial"],
    "labels by source": ["--label-rule", "source"],
    "temperature 0.7, top-k 40": ["--noise.temperature", "0.7", "--noise.top-k", "40"],
    "gdes": ["--sharing", "gdes"],
    "no sharing": ["--sharing", "none"],
    "all shared": ["--sharing", "all"],
}

NUMBERS = {
    "masked_lm_loss": ".2f",
    "masked_lm_accuracy": ".1%",
    "sampled_masked_lm_accuracy": ".1%",
    "generator_entropy": ".2f",
    "replaced_fraction": ".1%",
    "disc_auc": ".3f",
    "disc_precision": ".1%",
    "disc_recall": ".1%",
}
"""Metrics, and how they are written."""


def folder_of(out: Path, name: str, seed: int) -> Path:
    """Return the folder of a row's run."""
    return out / f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"


def train(name: str, args: argparse.Namespace, seed: int) -> None:
    """Train a row unless it is done; note its wall time and its peak memory."""
    run = folder_of(args.out, name, seed)
    if (run / "cost.json").is_file():
        return
    words = ["--data", str(args.data), "--out", str(run), "--seed", str(seed)]
    words += ["--budget.flops", str(args.flops), "--device", "cpu", *ROWS[name]]
    if name == "frozen generator":
        words += ["--noise.checkpoint", str(folder_of(args.out, FROZEN, seed))]
    if (run / "checkpoints").is_dir():
        words = ["--out", str(run), "--resume"]
    print(f"{name}, seed {seed}", flush=True)
    start = time.perf_counter()
    with (args.out / "log.txt").open("a") as log:
        command = [sys.executable, "-m", "amber", "pretrain", *words, "--json"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{name}: failed, see {args.out / 'log.txt'}")
    cost = {"wall_seconds": time.perf_counter() - start, "peak_megabytes": usage.ru_maxrss / 1024}
    (run / "cost.json").write_text(json.dumps(cost) + "\n")


def measure(name: str, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Measure a finished row on the held-out text and on minimal pairs, once."""
    run = folder_of(args.out, name, seed)
    path = run / "measured.json"
    if not path.is_file():
        print(f"measuring {name}, seed {seed}", flush=True)
        words = [str(run), "--data", str(args.data), "--examples", "0", "--json"]
        words += ["--pairs", str(args.pairs), "--pairs-limit", str(args.pairs_limit)]
        command = [sys.executable, "-m", "amber", "evaluate", *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        path.write_text(done.stdout)
    summary = json.loads((run / "summary.json").read_text())
    cost = json.loads((run / "cost.json").read_text())
    return {"name": name, "seed": seed, **json.loads(path.read_text()), **cost, "run": summary}


def row(found: dict[str, Any]) -> list[str]:
    """Write a row of the table."""
    metrics, baselines, pairs = found["metrics"], found["baselines"], found["pairs"]
    losses = ("encoder_lm_loss", "disc_loss", "masked_lm_loss")
    loss = next(key for key in losses if key in metrics)
    cells = [f"{metrics[key]:{form}}" if key in metrics else "" for key, form in NUMBERS.items()]
    total = pairs["total"]
    return [
        found["name"],
        f"{metrics[loss]:.4f}",
        f"{baselines[loss]:.4f}",
        *cells,
        f"{100 * total['accuracy']:.1f} ({pairs['by']})",
        f"{found['run']['tokens'] / 1e6:.2f}",
        f"{found['run']['seconds'] / 60:.1f}",
        f"{found['peak_megabytes']:.0f}",
    ]


HEADINGS = (
    *("row", "encoder's loss", "knowing nothing", "generator's loss", "its accuracy", "sampled"),
    *("entropy", "replaced", "AUC", "precision", "recall", "BLiMP %", "M tokens", "minutes", "MB"),
)


def main() -> None:
    """Train the rows, one after the other, or measure them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--flops", type=float, default=1e14)
    parser.add_argument("--rows", default="|".join(ROWS), help="names, with | between them")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--pairs", type=Path, help="folder of BLiMP: then measure, too")
    parser.add_argument("--pairs-limit", type=int, default=100, help="pairs of each paradigm")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (name, seed) for seed in map(int, args.seeds.split(",")) for name in args.rows.split("|")
    ]
    for name, seed in jobs:
        train(name, args, seed)
    if args.pairs is None:
        return
    found = [measure(name, args, seed) for name, seed in jobs]
    (args.out / "table.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = [HEADINGS, ["---"] * len(HEADINGS), *map(row, found)]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (args.out / "table.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
