"""Draw the held-out curves of runs over their FLOPs.

python bench/plot_runs.py RUN... --out picture.png [--unigram NATS]
"""

import argparse
import json
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

PANELS = (
    ("masked_lm_loss", "masked language model loss, nats"),
    ("disc_loss", "replaced token detection loss, nats"),
    ("disc_auc", "discriminator AUC"),
)


def curve(run: Path, name: str) -> tuple[list[float], list[float]]:
    """Read one metric of a run: FLOPs and values."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    points = [(e["flops"], e[name]) for e in lines if e["kind"] == "held_out" and name in e]
    return [x for x, _ in points if x], [y for x, y in points if x]


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--unigram", type=float, help="unigram entropy, nats, drawn as a line")
    args = parser.parse_args()
    matplotlib.use("Agg")
    shown = [p for p in PANELS if any(curve(run, p[0])[0] for run in args.runs)]
    figure, axes = plt.subplots(1, len(shown), figsize=(5.2 * len(shown), 4.2), squeeze=False)
    for axis, (name, title) in zip(axes[0], shown, strict=True):
        for number, run in enumerate(args.runs):
            x, y = curve(run, name)
            if x:
                axis.plot(x, y, color=f"C{number}", label=run.name)
        if name == "masked_lm_loss" and args.unigram:
            axis.axhline(args.unigram, color="gray", linestyle=":", label="unigram entropy")
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("training FLOPs (standard rule)")
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=130)


if __name__ == "__main__":
    main()
