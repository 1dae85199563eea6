"""Fine-tuning on real tasks: scores by model, and the same fine-tuning by `Trainer` beside it.

    python bench/finetune.py table NAME=MODEL ... --data TASKS --out OUT [--tasks cola,trec] ...
    python bench/finetune.py trainer NAME=MODEL ... --data TASKS --out OUT [--tasks sst2] ...

table: each cell is one `amber finetune` with the flags below and several seeds; NAME=MODEL@scratch
starts from random weights. trainer: the same by bench/trainer.py, which is written with
`transformers.Trainer`: same examples, epochs, rate of each layer, batch size and precision. What is
there already is kept. Both print tables of what is in OUT. Two commands at the same time, each on
one core (taskset -c 0 and -c 1, --jobs 1), measure the same work; one after the other, with --jobs
for amber and --threads for the Trainer, what a machine's cores are good for.
"""

import argparse
import json
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

DEFAULTS = {task: {"--recipe.length": "128", "--recipe.epochs": "3"} for task in TASKS}
DEFAULTS |= {
    task: {"--recipe.length": "256", "--recipe.epochs": "3"}
    for task in ("wnut17", "wikiann", "resume", "cluener")
}
"""What amber takes where nothing is given, for the reference."""

TRAINER = Path(__file__).with_name("trainer.py")


def flags_of(task: str, args: argparse.Namespace) -> dict[str, str]:
    """Return the settings of a task by their flags; those of --flags go before ours."""
    words = [*TASKS[task][1], *args.flags.split()]
    return {"--task": task} | dict(zip(words[::2], words[1::2], strict=True))


def command(model: str, task: str, out: Path, args: argparse.Namespace) -> list[str]:
    """Return the words of one `amber finetune`."""
    words = [sys.executable, "-m", "amber", "finetune", model.removesuffix("@scratch")]
    words += ["--data", str(args.data / TASKS[task][0]), "--out", str(out), "--device", "cpu"]
    words += [word for pair in flags_of(task, args).items() for word in pair]
    words += ["--from-scratch"] if model.endswith("@scratch") else []
    words += ["--precision", args.precision, "--threads", str(args.threads)]
    return [*words, "--seeds", str(args.seeds), "--jobs", str(args.jobs), "--json"]


def run(words: list[str], log: Path) -> dict[str, Any]:
    """Run a command that prints JSON; keep what else it says in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=file, text=True, check=False)
    if done.returncode:
        sys.exit(f"failed, see {log}: {' '.join(words)}")
    return json.loads(done.stdout)


def cell(result: dict[str, Any]) -> str:
    """Write the runs of a cell: median, deviation, range, seconds of one run."""
    spread = result["spreads"][result["scored_split"]][result["metrics"][0]]
    values = [100 * (spread[name] or 0) for name in ("median", "standard_deviation", "min", "max")]
    seconds = statistics.median(one["seconds"] for one in result["runs"])
    text = "{:.1f} +- {:.1f} ({:.1f} to {:.1f}); {:.0f} s".format(*values, seconds)
    collapsed = sum(bool(one["collapsed"]) for one in result["runs"])
    return f"{text}, {collapsed} collapsed" if collapsed else text


def make_table(args: argparse.Namespace, models: dict[str, str]) -> None:
    """Fill the table, one cell after the other."""
    for task in args.tasks.split(","):
        for name, model in models.items():
            print(f"{task}, {name}", flush=True)
            place = args.out / name
            result = run(command(model, task, place / task, args), place / f"{task}.log")
            (place / f"{task}.json").write_text(json.dumps(result) + "\n")


def run_trainer(args: argparse.Namespace, models: dict[str, str]) -> None:
    """Fine-tune with the reference, seed by seed."""
    for task in args.tasks.split(","):
        for name, model in models.items():
            if model.endswith("@scratch"):
                sys.exit(f"{name}: the reference starts from weights: leave @scratch out")
            place = args.out / f"{name}-trainer"
            words = command(model, task, place / task, args)
            rates = run([*words, "--show-rates"], place / f"{task}-rates.log")
            for seed in range(args.seeds):
                path = place / f"{task}-seed-{seed}.json"
                if not path.is_file():
                    print(f"{task}, {name} by Trainer, seed {seed}", flush=True)
                    other = trainer_command(args, model, task, seed, rates)
                    found = run(other, place / f"{task}-{seed}.log")
                    path.write_text(json.dumps(found) + "\n")


def trainer_command(
    args: argparse.Namespace, model: str, task: str, seed: int, rates: dict[str, Any]
) -> list[str]:
    """Return the words of the reference with the recipe that amber takes."""
    words = [sys.executable, str(TRAINER), model, "--data", str(args.data / TASKS[task][0])]
    for name, value in (DEFAULTS[task] | flags_of(task, args)).items():
        words += [name.replace("--recipe.", "--").replace("--own.", "--own-"), value]
    words += ["--learning-rate", str(rates["learning_rate"])]
    words += ["--layer-decay", str(rates["layer_decay"])]
    words += ["--precision", "bf16" if args.precision == "auto" else args.precision]
    words += ["--sampling", args.sampling, "--threads", str(args.threads)]
    return [*words, "--seed", str(seed)]


def show(out: Path, models: list[str]) -> str:
    """Write the tables of what there is."""
    found = {
        (task, name): json.loads(path.read_text())
        for task in TASKS
        for name in models
        if (path := out / name / f"{task}.json").is_file()
    }
    lines = [["task", "train, scored", "score", "majority", *models], ["---"] * (4 + len(models))]
    for task in TASKS:
        cells = {name: found[task, name] for name in models if (task, name) in found}
        if not cells:
            continue
        one = next(iter(cells.values()))
        split, metric, num = one["scored_split"], one["metrics"][0], one["num_examples"]
        base = 100 * one["baselines"][split][metric]["value"]
        head = [task, f"{num['train']:,}, {num[split]:,} {split}", metric, f"{base:.1f}"]
        lines.append([*head, *(cell(cells[name]) if name in cells else "" for name in models)])
    pages = [lines]
    headings = ["task", "model", "amber", "Trainer", "its time / ours", "all seeds"]
    lines = [headings, ["---"] * len(headings)]
    for (task, name), result in found.items():
        paths = sorted((out / f"{name}-trainer").glob(f"{task}-seed-*.json"))
        if paths:
            lines.append(
                [task, name, *compared(result, [json.loads(p.read_text()) for p in paths])]
            )
    pages += [lines] if len(lines) > 2 else []
    return "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in page) for page in pages)


def compared(ours: dict[str, Any], theirs: list[dict[str, Any]]) -> list[str]:
    """Set the runs of both beside each other, seed by seed."""
    split, metric = ours["scored_split"], ours["metrics"][0]
    by_seed = {run["seed"]: run for run in ours["runs"]}
    theirs = [run for run in theirs if run["seed"] in by_seed]
    runs = [by_seed[run["seed"]] for run in theirs]
    columns = [[100 * run["scores"][split][metric] for run in runs]]
    columns.append([100 * run["scores"][metric] for run in theirs])
    ratios = [b["seconds"] / a["seconds"] for a, b in zip(runs, theirs, strict=True)]
    counts = {ours["num_sequences"], *(run["num_sequences"] for run in theirs)}
    if len(counts) > 1:
        texts_of = ", ".join(f"{count:,}" for count in sorted(counts))
        print(f"{ours['task']}: not as many sequences: {texts_of}")
    texts = [f"{statistics.median(c):.1f} ({min(c):.1f} to {max(c):.1f})" for c in columns]
    seconds = [
        f"{statistics.median(run['seconds'] for run in part):.0f} s" for part in (runs, theirs)
    ]
    texts = [f"{text}; {time}" for text, time in zip(texts, seconds, strict=True)]
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    total = sum(run["seconds"] for run in theirs)  # without its start and its reading; ours with
    return [
        *texts,
        spread,
        f"{total:.0f} s / {ours['seconds']:.0f} s = {total / ours['seconds']:.2f}",
    ]


def main() -> None:
    """Read the words and do what they ask for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("table", "trainer"))
    parser.add_argument("models", nargs="+", help="NAME=MODEL or NAME=MODEL@scratch")
    parser.add_argument("--data", type=Path, required=True, help="folder with the tasks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--sampling", default="group_by_length", help="of Trainer; or random")
    parser.add_argument("--flags", default="", help="more settings of amber, with their values")
    args = parser.parse_args()
    models = dict(part.split("=", 1) for part in args.models)
    make_table(args, models) if args.what == "table" else run_trainer(args, models)
    print(show(args.out, list(models)))


if __name__ == "__main__":
    main()
