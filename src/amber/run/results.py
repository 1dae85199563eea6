"""What a run leaves behind: Hugging Face folders with a model card, and summary.json."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from amber import __version__
from amber.model.folder import save_discriminator, save_generator
from amber.run.checkpoint import TrainState
from amber.run.setup import Run


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
    names = ["generator", "discriminator"] if run.config.objective == "rtd" else ["encoder"]
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
    tokenizer_dir = run.config.data / "tokenizer"
    model = run.model
    if model.rtd_head is not None:
        save_discriminator(
            out / "discriminator",
            model.encoder,
            model.rtd_head,
            tokenizer_dir=tokenizer_dir,
            card=model_card(run, summary, "discriminator"),
        )
    save_generator(
        out / names[0],
        model.generator,
        model.mlm_head,
        tokenizer_dir=tokenizer_dir,
        card=model_card(run, summary, names[0]),
    )
    beside = out / ".summary.json.unfinished"
    beside.write_text(json.dumps(asdict(summary), indent=1) + "\n")
    beside.rename(out / "summary.json")
    return summary


def model_card(run: Run, summary: Summary, name: str) -> str:
    """Write the README.md of a model folder."""
    shape = run.model.encoder.config if name != "generator" else run.model.generator.config
    is_detector = name == "discriminator"
    what = {
        "discriminator": "the discriminator of an ELECTRA pair: per token, was it replaced?",
        "generator": "the generator of an ELECTRA pair: a small masked language model",
        "encoder": "a masked language model",
    }[name]
    auto = "AutoModelForPreTraining" if shape.body == "bert" else "AutoModelForTokenClassification"
    auto = auto if is_detector else "AutoModelForMaskedLM"
    lines = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {'feature-extraction' if is_detector else 'fill-mask'}",
        "tags: [amber, electra]",
        "---",
        "",
        f"# {name}",
        "",
        f"This is {what}. It was pre-trained with amber {__version__}.",
        "",
        "```python",
        f"from transformers import {auto}, AutoTokenizer",
        f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
        f'model = {auto}.from_pretrained("{name}")',
        "```",
        "",
    ]
    if is_detector:
        lines += [
            "A positive score means replaced. The model was never trained to fill in masked",
            "tokens: use the generator's folder for that. For a task, fine-tune this one.",
            "",
        ]
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


def read_summary(path: Path) -> Summary:
    """Read summary.json of a finished run."""
    return Summary(**json.loads(path.read_text()))
