"""What a run leaves behind: Hugging Face folders with a model card, and summary.json."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from amber import __version__
from amber.electra.config import BINARY, Objective
from amber.electra.networks import plain
from amber.electra.pretraining import PretrainingModel
from amber.model.config import Body, EncoderConfig
from amber.model.encoder import Encoder
from amber.model.folder import save_discriminator, save_generator
from amber.model.towers import TwoTowers, save_towers
from amber.run.checkpoint import TrainState
from amber.run.setup import Run

MAIN: Final[dict[Objective, str]] = {
    "rtd": "the discriminator of an ELECTRA pair: per token, was it replaced?",
    "rtd_masked": "a discriminator that was trained at the chosen tokens only: was it replaced?",
    "replace_mlm": "an encoder that names the original tokens at places with replacements",
    "all_tokens_mlm": "an encoder that copies each token or names the original one",
    "mlm": "a masked language model",
    "electric": "an energy model of text: per token, its energy given all others",
}
"""What the main encoder is, by objective."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """How a run went."""

    out: str
    is_done: bool
    """False when it was stopped before the end of its budget."""

    signal_number: int
    """Of the signal that stopped it; 0 = none."""

    steps: int
    tokens: int
    flops: int
    """Standard rule, padding not counted."""

    seconds: float
    """Of training steps."""

    objective: str
    before: dict[str, float]
    """Held-out metrics before the first step."""

    after: dict[str, float]
    """Held-out metrics at the end; empty when the run was stopped."""

    unigram_entropy: float
    """Of the training text, in nats: what knowing only the frequencies reaches."""

    models: list[str]
    """Folders that `transformers` loads."""


def write_results(
    run: Run,
    state: TrainState,
    *,
    after: dict[str, float],
    signal_number: int,
) -> Summary:
    """Write the model folders and summary.json; only the first process does.

    Args:
        run: with the trained networks.
        state: where it stopped.
        after: held-out metrics at the end; empty when the run was stopped.
        signal_number: of the signal that stopped it.
    """
    out = run.config.out
    names = model_names(run.model)
    summary = Summary(
        out=str(out),
        is_done=bool(after),
        signal_number=signal_number,
        steps=state.step,
        tokens=state.tokens,
        flops=state.flops,
        seconds=state.seconds,
        objective=run.config.objective,
        before=state.first_evaluation or {},
        after=after,
        unigram_entropy=run.manifest.unigram_entropy,
        models=[str(out / name) for name in names],
    )
    if not run.process.is_first:
        return summary
    for name in names:
        save_model(run, summary, name)
    beside = out / ".summary.json.unfinished"
    beside.write_text(json.dumps(asdict(summary), indent=1) + "\n")
    beside.rename(out / "summary.json")
    return summary


def model_names(model: PretrainingModel) -> list[str]:
    """Return the folders of a run's networks, the main one last."""
    main = "discriminator" if model.method.objective in ("rtd", "rtd_masked") else "encoder"
    if model.generator is None or model.method.objective == "mlm":
        return [main]
    return ["towers" if isinstance(model.generator, TwoTowers) else "generator", main]


def save_model(run: Run, summary: Summary, name: str) -> None:
    """Write one model folder."""
    model, folder = run.model, run.config.out / name
    kept = {
        "tokenizer_dir": run.config.data / "tokenizer",
        "card": model_card(run, summary, name),
    }
    if name == "towers":
        assert isinstance(model.generator, TwoTowers)
        save_towers(folder, model.generator, **kept)
    elif name == "generator":
        assert isinstance(model.generator, Encoder)
        assert model.mlm_head is not None
        save_generator(folder, plain(model.generator), model.mlm_head, **kept)
    elif model.rtd_head is not None:
        meaning = "energy" if model.method.objective == "electric" else "replaced"
        encoder = plain(model.encoder)
        save_discriminator(folder, encoder, model.rtd_head, meaning=meaning, **kept)
    else:
        head = model.vocabulary_head or model.mlm_head
        assert head is not None
        save_generator(folder, plain(model.encoder), head, copy_gate=model.copy_gate, **kept)


def model_card(run: Run, summary: Summary, name: str) -> str:
    """Write the README.md of a model folder."""
    is_main = name in ("discriminator", "encoder")
    shape = shape_of(run.model, is_main=is_main)
    what = {"generator": "a masked language model that proposes replacements"}
    what |= {"towers": "two causal networks that give each token's probability from the others"}
    what |= {name: MAIN[run.config.objective]} if is_main else {}
    auto = auto_class(name, run.config.objective, shape.body)
    is_detector = is_main and run.config.objective in BINARY
    lines = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {'feature-extraction' if is_detector else 'fill-mask'}",
        "tags: [amber, electra]",
        "---",
        "",
        f"# {name}",
        "",
        f"This is {what[name]}. It was pre-trained with amber {__version__}.",
        "",
    ]
    if name == "towers":
        lines += ["`transformers` has no class for it; amber reads it.", ""]
    else:
        lines += [
            "```python",
            f"from transformers import {auto}, AutoTokenizer",
            f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
            f'model = {auto}.from_pretrained("{name}")',
            "```",
            "",
        ]
    if run.config.objective == "electric" and is_main:
        lines += [
            "`transformers` has no class for energies: this one gives them as its scores. Minus",
            "their sum over a sentence's tokens is its score: amber score.",
            "",
        ]
    if run.config.objective == "all_tokens_mlm" and is_main:
        lines += [
            "`transformers` has no copy gate: it reads the scores for a token that is not copied.",
            "The gate is in copy_gate.safetensors.",
            "",
        ]
    if is_detector and run.config.objective != "electric":
        lines += [
            "A positive score means replaced. The model was never trained to fill in masked",
            "tokens: use the generator's folder for that. For a task, fine-tune this one.",
        ]
        if shape.body != "bert":
            lines += [
                "With the task classes of `transformers`, pass `ignore_mismatched_sizes=True`: the",
                "head in this folder has two labels.",
            ]
        lines.append("")
    lines += [
        "| | |",
        "|---|---|",
        f"| body | {shape.body}: {shape.num_hidden_layers} layers, {shape.hidden_size} wide, "
        f"{shape.num_attention_heads} heads |",
        f"| vocabulary | {shape.vocab_size} tokens |",
        f"| longest sequence | {shape.max_position_embeddings} tokens, trained on "
        f"{run.config.batch.length} |",
        f"| trained | {summary.steps} steps, {summary.tokens:,} tokens, {summary.flops:.3e} FLOPs "
        "(matrix products) |",
        f"| finished | {'yes' if summary.is_done else 'no: stopped before its budget'} |",
    ]
    lines += [f"| held-out {name} | {value:.4g} |" for name, value in summary.after.items()]
    return "\n".join(lines) + "\n"


def shape_of(model: PretrainingModel, *, is_main: bool) -> EncoderConfig:
    """Return the shape of the main encoder, or of the generator or a tower."""
    second = model.generator
    if is_main or second is None:
        return model.encoder.config
    return second.left.config if isinstance(second, TwoTowers) else second.config


def auto_class(name: str, objective: Objective, body: Body) -> str:
    """Return the class of `transformers` that loads a model folder of a run."""
    if name == "generator" or objective not in BINARY:
        return "AutoModelForMaskedLM"
    return "AutoModelForPreTraining" if body == "bert" else "AutoModelForTokenClassification"


def read_summary(path: Path) -> Summary:
    """Read summary.json of a finished run."""
    return Summary(**json.loads(path.read_text()))
