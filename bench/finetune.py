"""Fine-tuning on real tasks: a table of scores over models, and the time beside `Trainer`.

    python bench/finetune.py table NAME=MODEL ... --data TASKS --out OUT [--tasks cola,trec] ...
    python bench/finetune.py compare MODEL --data TASKS --out OUT --tasks sst2 [--seeds 3] ...

table: each cell is one `amber finetune` with the flags below and several seeds; what is there
already is kept. Writes OUT/table.md, with medians, standard deviations and ranges.

compare: for each seed the same fine-tuning by amber and by bench/trainer.py (transformers.Trainer:
same examples, epochs, rates of each layer, batch size and precision), at the same time on one core
each, or one after the other when --threads takes all cores. Writes OUT/compare.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

QA = ["--task", "own", "--own.kind", "qa", "--own.dev-fraction", "0.2", "--recipe.length", "384"]
TASKS: dict[str, tuple[str, list[str]]] = {
    "cola": ("glue/CoLA", []),
    "sst2": ("glue/SST-2", ["--limit-train", "8000"]),
    "mrpc": ("glue/MRPC", []),
    "stsb": ("glue/STS-B", ["--limit-train", "3000", "--recipe.epochs", "3"]),
    "rte": ("glue/RTE", ["--recipe.epochs", "5"]),
    "trec": ("trec", ["--score-on", "test"]),
    "wnut17": ("wnut17", []),
    "wikiann": ("wikiann_en", ["--limit-train", "5000"]),
    "xquad-en": ("xquad/xquad.en.json", QA),
    "tnews": ("clue_tnews", ["--limit-train", "10000"]),
    "chnsenticorp": ("zh_chnsenticorp", ["--limit-train", "5000"]),
    "resume": ("zh_resume_ner", []),
    "cluener": ("cluener2020", ["--limit-train", "5000"]),
}
"""Where each task is, and its flags."""

TRAINER = Path(__file__).with_name("trainer.py")


def command(model: str, task: str, out: Path, args: argparse.Namespace) -> list[str]:
    """Return the words of one `amber finetune`."""
    place, flags = TASKS[task]
    words = [sys.executable, "-m", "amber", "finetune", model]
    words += [] if "--task" in flags else ["--task", task]
    words += ["--data", str(args.data / place), "--out", str(out), "--device", "cpu"]
    return [*words, *flags, *args.flags.split()]


def run(words: list[str], log: Path) -> dict[str, Any]:
    """Run a command that prints JSON; keep what else it says in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=file, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed, see {log}: {' '.join(words)}")
    return json.loads(done.stdout)


def cell(result: dict[str, Any], metric: str) -> str:
    """Write the runs of a cell: median, deviation, range."""
    spread = result["spreads"][result["scored_split"]][metric]
    values = [100 * spread[name] for name in ("median", "standard_deviation", "min", "max")]
    text = "{:.1f} +- {:.1f} ({:.1f} to {:.1f})".format(*values)
    collapsed = sum(bool(one["collapsed"]) for one in result["runs"])
    return f"{text}, {collapsed} collapsed" if collapsed else text


def make_table(args: argparse.Namespace) -> None:
    """Fill the table, one cell after the other."""
    models = dict(part.split("=", 1) for part in args.models)
    lines = [
        ["task", "train, scored", "score", "majority", *models],
        ["---"] * (4 + len(models)),
    ]
    seconds = {name: 0.0 for name in models}
    for task in args.tasks.split(","):
        cells = []
        for name, model in models.items():
            out = args.out / name / task
            is_new = model.endswith("@scratch")
            words = command(model.removesuffix("@scratch"), task, out, args)
            words += ["--from-scratch"] if is_new else []
            words += ["--seeds", str(args.seeds), "--threads", "1", "--json"]
            print(f"{task}, {name}", flush=True)
            result = run(words, args.out / name / f"{task}.log")
            split, metric = result["scored_split"], result["metrics"][0]
            num, each = result["num_examples"], [one["seconds"] for one in result["runs"]]
            seconds[name] += sum(each)
            cells.append(f"{cell(result, metric)}; {statistics.median(each):.0f} s")
            base = 100 * result["baselines"][split][metric]["value"]
        head = [task, f"{num['train']:,}, {num[split]:,} {split}", metric, f"{base:.1f}"]
        lines.append([*head, *cells])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        (args.out / "table.md").write_text(table + "\n")
    print(table)
    print({name: round(total) for name, total in seconds.items()}, "seconds of training")


def compare(args: argparse.Namespace) -> None:
    """Train the same with both, seed by seed."""
    found: list[dict[str, Any]] = []
    is_together = 2 * args.threads <= len(os.sched_getaffinity(0))
    for task in args.tasks.split(","):
        ratios = []
        for seed in range(args.seeds):
            out = args.out / task / f"seed-{seed}"
            words = command(args.model, task, out, args)
            words += ["--seed", str(seed), "--threads", str(args.threads), "--json"]
            words += ["--precision", args.precision]
            log = args.out / f"{task}-{seed}-trainer.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            plan = run([*words, "--show-rates"], args.out / f"{task}-rates.log")
            other = trainer_command(args, task, seed, plan)
            with log.open("w") as file:
                if is_together:
                    process = subprocess.Popen(other, stdout=subprocess.PIPE, stderr=file)
                    ours = run(words, args.out / f"{task}-{seed}.log")
                else:
                    ours = run(words, args.out / f"{task}-{seed}.log")
                    process = subprocess.Popen(other, stdout=subprocess.PIPE, stderr=file)
                printed, _ = process.communicate()
            if process.returncode:
                sys.exit(f"failed, see {log}: {' '.join(other)}")
            theirs = json.loads(printed.splitlines()[-1])
            mine, metric = ours["runs"][0], ours["metrics"][0]
            if ours["num_sequences"] != theirs["num_sequences"]:
                print(f"{task}: {ours['num_sequences']} and {theirs['num_sequences']} sequences")
            ratios.append(theirs["seconds"] / mine["seconds"])
            row = {
                "task": task,
                "seed": seed,
                "metric": metric,
                "amber": mine["scores"][ours["scored_split"]][metric],
                "trainer": theirs["scores"][metric],
                "amber_seconds": mine["seconds"],
                "trainer_seconds": theirs["seconds"],
            }
            found.append(row)
            print(json.dumps(row), flush=True)
            (args.out / "compare.json").write_text(json.dumps(found, indent=1) + "\n")
        rows = [row for row in found if row["task"] == task]
        for name in ("amber", "trainer"):
            scores = [100 * row[name] for row in rows]
            print(f"{task} {name}: {statistics.median(scores):.2f} ({min(scores):.2f} to "
                  f"{max(scores):.2f})")  # fmt: skip
        print(f"{task} ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to "
              f"{max(ratios):.2f})")  # fmt: skip


def trainer_command(
    args: argparse.Namespace, task: str, seed: int, plan: dict[str, Any]
) -> list[str]:
    """Return the words of the reference with the recipe that amber takes."""
    place, flags = TASKS[task]
    given = [*flags, *args.flags.split()]
    words = [sys.executable, str(TRAINER), args.model, "--data", str(args.data / place)]
    values = {"--task": task, "--recipe.length": "128", "--recipe.epochs": "3"}
    values |= {"--recipe.length": "256"} if task in ("wnut17", "wikiann") else {}
    values |= {"--recipe.epochs": "10"} if task in ("rte", "stsb") else {}
    values |= {"--recipe.epochs": "3"} if task == "xquad-en" else {}
    values |= dict(zip(given[::2], given[1::2], strict=True))
    for name, value in values.items():
        words += [name.replace("--recipe.", "--").replace("--own.", "--own-"), value]
    words += ["--learning-rate", str(plan["learning_rate"])]
    words += ["--layer-decay", str(plan["layer_decay"]), "--precision", args.precision]
    return [*words, "--seed", str(seed), "--threads", str(args.threads)]


def main() -> None:
    """Read the words and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("table", "compare"))
    parser.add_argument("models", nargs="+", help="NAME=MODEL (NAME=MODEL@scratch); or a MODEL")
    parser.add_argument("--data", type=Path, required=True, help="folder with the tasks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--flags", default="", help="more settings, with their values, for amber")
    args = parser.parse_args()
    args.model = args.models[0]
    make_table(args) if args.what == "table" else compare(args)


if __name__ == "__main__":
    main()
