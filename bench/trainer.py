"""Fine-tuning as a user of `transformers` writes it: the reference for `amber finetune`.

The network, the tokenizer's call, the alignment of tags and answers, the loop (`Trainer`) and the
scores are those of transformers, seqeval, scikit-learn and scipy. From amber come the examples, so
that both train on the same ones, and SQuAD's rule of equal answers, which its tests compare with
the official script. Prints one JSON object.

    python bench/trainer.py MODEL --task sst2 --data DIR [--seed 0] [--limit-train N] ...
"""

import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import pearsonr, spearmanr
from seqeval.metrics import f1_score as entity_f1
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import (
    AutoConfig,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from amber.downstream.config import FinetuneConfig
from amber.downstream.encoded import with_both_orders
from amber.downstream.material import Material, read_material
from amber.tasks.answers import squad_exact_match, squad_f1
from amber.tasks.config import OwnData

QUESTION_STEP = 128
MAX_ANSWER = 30
SAMPLING = "group_by_length"
"""Batches of similar lengths, as amber's; Trainer's default is random."""
DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
    *("embedding_dropout", "mlp_dropout", "attention_dropout"),
)
"""Set to 0.1, as amber does."""
Rows = list[dict[str, Any]]
Score = Callable[[Any], dict[str, float]]


def text_rows(material: Material, tokenizer: Any, examples: Any, length: int) -> Rows:
    """Encode texts or pairs."""
    names = {name: number for number, name in enumerate(material.labels)}
    rows = []
    for example in examples:
        row = dict(tokenizer(example.text, example.pair, truncation=True, max_length=length))
        is_number = material.task.kind == "regression"
        row["labels"] = float(example.label) if is_number else names[example.label]
        rows.append(row)
    return rows


def tag_rows(material: Material, tokenizer: Any, examples: Any, length: int) -> Rows:
    """Encode words; the first piece of each carries its tag, the rest -100."""
    names = {name: number for number, name in enumerate(material.labels)}
    rows = []
    for example in examples:
        words = [example.text[start:end] for start, end in example.spans]
        found = tokenizer(words, is_split_into_words=True, truncation=True, max_length=length)
        of_words = found.word_ids()
        firsts = {
            of_words.index(word): word for word in dict.fromkeys(of_words) if word is not None
        }
        labels = [-100] * len(of_words)
        for place, word in firsts.items():
            labels[place] = names[example.tags[word]]
        rows.append({**found, "labels": labels, "words": firsts})
    return rows


def question_rows(tokenizer: Any, examples: Any, length: int) -> tuple[Rows, list[Any]]:
    """Encode questions and windows of their contexts; also say which part each window is."""
    rows, parts = [], []
    for number, example in enumerate(examples):
        asked = len(tokenizer(example.question, add_special_tokens=False)["input_ids"])
        found = tokenizer(
            example.question,
            example.context,
            truncation="only_second",
            max_length=length,
            stride=length - 3 - asked - QUESTION_STEP,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        answer = example.answers[0]
        start, end = answer.start, answer.start + len(answer.text)
        for window, offsets in enumerate(found["offset_mapping"]):
            sides = found.sequence_ids(window)
            inside = [i for i, side in enumerate(sides) if side == 1]
            first, last = inside[0], inside[-1]
            places = (0, 0)
            if offsets[first][0] <= start and offsets[last][1] >= end:
                places = (
                    max(i for i in inside if offsets[i][0] <= start),
                    min(i for i in inside if offsets[i][1] >= end),
                )
            names = ("input_ids", "attention_mask", "token_type_ids")
            row = {name: found[name][window] for name in names if name in found}
            rows.append({**row, "start_positions": places[0], "end_positions": places[1]})
            parts.append((number, {i: offsets[i] for i in inside}))
    return rows, parts


def best_answers(starts: Any, ends: Any, parts: list[Any], examples: Any) -> list[str]:
    """Take the span with the highest sum of scores over all windows of a question."""
    best: dict[int, tuple[float, str]] = defaultdict(lambda: (-np.inf, ""))
    for start_scores, end_scores, (number, offsets) in zip(starts, ends, parts, strict=True):
        inside = sorted(offsets)
        firsts = sorted(inside, key=lambda i: -start_scores[i])[:20]
        lasts = sorted(inside, key=lambda i: -end_scores[i])[:20]
        for first in firsts:
            for last in lasts:
                if first <= last < first + MAX_ANSWER:
                    total = float(start_scores[first] + end_scores[last])
                    if total > best[number][0]:
                        text = examples[number].context[offsets[first][0] : offsets[last][1]]
                        best[number] = (total, text)
    return [best[number][1] for number in range(len(examples))]


def text_score(material: Material, examples: Any) -> Score:
    """Score texts by the metrics of the task."""
    gold = [example.label for example in examples]

    def score(logits: Any) -> dict[str, float]:
        if material.task.kind == "regression":
            values = logits[:, 0]
            found = {"pearson": pearsonr(gold, values)[0], "spearman": spearmanr(gold, values)[0]}
        else:
            said = [material.labels[i] for i in logits.argmax(1)]
            found = {"accuracy": accuracy_score(gold, said), "mcc": matthews_corrcoef(gold, said)}
            if len(material.labels) == 2:
                found["f1"] = f1_score(gold, said, pos_label=material.labels[1])
        return {name: float(found[name]) for name in material.task.metrics if name in found}

    return score


def tag_score(material: Material, rows: Rows, examples: Any) -> Score:
    """Score tags by entities, as seqeval counts them; words without a tag are O."""

    def score(logits: Any) -> dict[str, float]:
        golds, tags = [list(example.tags) for example in examples], []
        for row, gold, scores in zip(rows, golds, logits, strict=True):
            found = ["O"] * len(gold)
            for place, word in row["words"].items():
                found[word] = material.labels[scores[place].argmax()]
            tags.append(found)
        return {"entity_f1": float(entity_f1(golds, tags))}

    return score


def optimizer_of(
    model: torch.nn.Module, *, learning_rate: float, decay: float, num_layers: int
) -> AdamW:
    """Build AdamW whose rate falls by `decay` from each layer to the one below."""
    groups = defaultdict(list)
    for name, weight in model.named_parameters():
        layer = re.search(r"\.layers?\.(\d+)\.", name)
        if layer:
            depth = int(layer[1]) + 1
        elif ".embeddings" in name:
            depth = 0
        elif "final_norm" in name:
            depth = num_layers
        else:
            depth = num_layers + 1
        groups[depth].append(weight)
    rates = {depth: learning_rate * decay ** (num_layers + 1 - depth) for depth in groups}
    listed = [{"params": weights, "lr": rates[depth]} for depth, weights in groups.items()]
    return AdamW(listed, eps=1e-6, weight_decay=0.0, fused=True)


def main() -> None:
    """Train with one seed and print scores and seconds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--task", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--score-on", default="dev")
    parser.add_argument("--own-kind", default="classification", help="with --task own")
    parser.add_argument("--own-dev-fraction", type=float, default=0.0, help="with --task own")
    parser.add_argument("--limit-train", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=("bf16", "float32"), default="bf16")
    parser.add_argument("--sampling", choices=("group_by_length", "random"), default=SAMPLING)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--layer-decay", type=float, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--length", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    material = read_material(
        FinetuneConfig(
            model=args.model,
            task=args.task,
            data=(args.data,),
            out=Path("unused"),
            score_on=args.score_on,
            limit_train=args.limit_train,
            own=OwnData(kind=args.own_kind, dev_fraction=args.own_dev_fraction),
        )
    )
    kind, examples = material.task.kind, material.scored[args.score_on]
    train = with_both_orders(material.train) if material.task.is_unordered else material.train
    torch.manual_seed(args.seed)
    is_tagging = kind == "tagging"
    tokenizer = AutoTokenizer.from_pretrained(
        args.model, **({"add_prefix_space": True} if is_tagging else {})
    )
    num_labels = 1 if kind == "regression" else len(material.labels)
    config = AutoConfig.from_pretrained(args.model, num_labels=num_labels)
    for name in DROPOUTS:
        if hasattr(config, name):
            setattr(config, name, 0.1)
    if kind == "qa":
        config.num_labels = 2
        model = AutoModelForQuestionAnswering.from_pretrained(args.model, config=config)
        rows, _ = question_rows(tokenizer, train, args.length)
        scored, parts = question_rows(tokenizer, examples, args.length)
        collator: Any = DataCollatorWithPadding(tokenizer)
    elif is_tagging:
        model = AutoModelForTokenClassification.from_pretrained(
            args.model, config=config, ignore_mismatched_sizes=True
        )
        rows = tag_rows(material, tokenizer, train, args.length)
        scored, parts = tag_rows(material, tokenizer, examples, args.length), []
        collator = DataCollatorForTokenClassification(tokenizer)
    else:
        is_number = kind == "regression"
        config.problem_type = "regression" if is_number else "single_label_classification"
        model = AutoModelForSequenceClassification.from_pretrained(
            args.model, config=config, ignore_mismatched_sizes=True
        )
        rows = text_rows(material, tokenizer, train, args.length)
        scored, parts = text_rows(material, tokenizer, examples, args.length), []
        collator = DataCollatorWithPadding(tokenizer)
    optimizer = optimizer_of(
        model,
        learning_rate=args.learning_rate,
        decay=args.layer_decay,
        num_layers=config.num_hidden_layers,
    )
    total = args.epochs * -(-len(rows) // 32)
    warmup = 0.1 * total
    schedule = LambdaLR(optimizer, lambda step: (1 - step / total) * min(1.0, step / warmup))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=32,
                per_device_eval_batch_size=32,
                num_train_epochs=args.epochs,
                seed=args.seed,
                bf16=args.precision == "bf16",
                train_sampling_strategy=args.sampling,
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
            ),
            train_dataset=rows,
            data_collator=collator,
            optimizers=(optimizer, schedule),
        )
        with contextlib.redirect_stdout(sys.stderr):  # Trainer prints its summary
            start = time.perf_counter()
            trainer.train()
            seconds = time.perf_counter() - start
            trainer.args.train_sampling_strategy = "random"  # or predictions come by length, too
            logits = trainer.predict(scored).predictions
    if kind == "qa":
        said = best_answers(*logits, parts, examples)
        golds = [[answer.text for answer in example.answers] for example in examples]
        pairs = list(zip(golds, said, strict=True))
        scores = {
            "answer_f1": float(np.mean([squad_f1(gold, one) for gold, one in pairs])),
            "exact_match": float(np.mean([squad_exact_match(gold, one) for gold, one in pairs])),
        }
    elif is_tagging:
        scores = tag_score(material, scored, examples)(logits)
    else:
        scores = text_score(material, examples)(logits)
    found = {"seed": args.seed, "scores": scores, "seconds": seconds, "num_sequences": len(rows)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
