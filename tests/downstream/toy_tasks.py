"""A tiny model folder, and data that it can learn in a second."""

import json
import random
from dataclasses import replace
from pathlib import Path

from amber.downstream.config import FinetuneConfig, RecipeConfig
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.folder import save_discriminator
from amber.model.heads import RTDHead
from amber.model.init import initialize
from amber.tasks.own import OwnData
from amber.tokens.tokenizer import save_tokenizer, wordpiece

FILLER = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
WORDS = [*FILLER, "good", "bad", "anna", "paris", "who", "where", "red", "round", "is"]
SHAPE = EncoderConfig(
    body="bert",
    vocab_size=5 + len(WORDS),
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    embedding_size=16,
    max_position_embeddings=64,
    type_vocab_size=2,
    norm_eps=1e-12,
)
RECIPE = RecipeConfig(
    learning_rate=1e-2,
    layer_decay=1.0,
    epochs=3,
    batch_size=8,
    hidden_dropout=0.0,
    attention_dropout=0.0,
    head_dropout=0.0,
)


LEARNING = replace(RECIPE, learning_rate=3e-3, epochs=12)


def write_model(folder: Path, shape: EncoderConfig = SHAPE) -> Path:
    """Write a folder of random weights with its tokenizer."""
    tokenizer = wordpiece(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=True, strip_accents=True
    )
    save_tokenizer(tokenizer, folder / "tokenizer", model_max_length=64)
    encoder, head = Encoder(shape, Embeddings(shape)), RTDHead(shape)
    initialize(encoder, shape, seed=1)
    initialize(head, shape, seed=1)
    model = folder / "model"
    save_discriminator(model, encoder, head, tokenizer_dir=folder / "tokenizer", card="# tiny\n")
    return model


def sentence(rng: random.Random, *words: str) -> list[str]:
    """Put words among others at random places."""
    found = rng.choices(FILLER, k=rng.randint(2, 9))
    for word in words:
        found.insert(rng.randrange(len(found) + 1), word)
    return found


def write_texts(path: Path, *, count: int = 48, seed: int = 0) -> Path:
    """Write a TSV: the word good makes a text positive, bad negative."""
    rng = random.Random(seed)
    rows = ["text\tlabel"]
    for number in range(count):
        name, word = (("positive", "good"), ("negative", "bad"))[number % 2]
        rows.append(f"{' '.join(sentence(rng, word))}\t{name}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def write_lines(path: Path, records: list[dict]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def tagged(*, count: int = 48, seed: int = 0) -> list[dict]:
    """Sentences in which anna is a person and paris a place."""
    rng, tags = random.Random(seed), {"anna": "B-PER", "paris": "B-LOC"}
    found = [
        sentence(rng, *rng.sample(["anna", "paris"], k=rng.randint(1, 2))) for _ in range(count)
    ]
    return [{"words": words, "tags": [tags.get(w, "O") for w in words]} for words in found]


def questions(*, count: int = 64, seed: int = 0, unanswerable: bool = False) -> list[dict]:
    """Questions whose answer is the one name in the context."""
    rng, found = random.Random(seed), list[dict]()
    for number in range(count):
        name = rng.choice(["anna", "paris"])
        is_silent = unanswerable and number % 2 == 0
        words = sentence(rng) if is_silent else sentence(rng, name)
        context = " ".join(words)
        answers = {"text": [], "answer_start": []}
        if not is_silent:
            answers = {"text": [name], "answer_start": [context.index(name)]}
        found.append({"question": "who", "context": context, "answers": answers})
    return found


def toy_config(folder: Path, model: Path, **changes) -> FinetuneConfig:
    """Settings for own data in `folder`: files called train and dev."""
    settings = {
        "model": model,
        "task": "own",
        "data": (folder,),
        "out": folder / "out",
        "jobs": 1,
        "threads": 1,
        "device": "cpu",
        "precision": "float32",
        "recipe": RECIPE,
        "own": OwnData(),
    }
    return FinetuneConfig(**settings | changes)
