"""Raw text to a data folder: the whole of `amber prepare` behind its command line.

When a tokenizer is trained the corpus is read twice: once for the sample that it learns from (train
split only), once to be tokenised. Normalising and dropping duplicates is done in this process,
tokenising in others; memory is bounded by batches in flight, 16 bytes a document for duplicates,
and the tokenizer's sample.
"""

import hashlib
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

import amber
from amber.errors import UserError
from amber.text.corpus import ReadingRule, read_corpus
from amber.text.files import FoundFiles, Source, find_sources
from amber.text.sample import HashSample
from amber.tokens.config import PrepareConfig
from amber.tokens.shards import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    Manifest,
    manifest_json,
    token_dtype,
    unigram_entropy,
)
from amber.tokens.tokenised import OnProgress, Progress, Tokenised, tokenise
from amber.tokens.tokenizer import MAX_WORD_LENGTH, fingerprint, load_tokenizer, save_tokenizer
from amber.tokens.train import train_tokenizer
from amber.tokens.unknown import unk_by_script, unk_fraction
from amber.tokens.vocabulary import read_vocabulary, special_ids, vocab_size
from amber.tokens.words import load_jieba
from amber.tokens.writer import check_disk, check_free, mark_files, written_folder

DEFAULT_VOCAB_SIZE = 30_000
DEFAULT_SAMPLE_MB = 100
COUNTED: tuple[str, ...] = (
    "documents_read",
    "documents_empty",
    "documents_duplicate",
    "bad_lines_replaced",
    "bad_lines_skipped",
    "bad_records_skipped",
    "controls_removed",
    "characters_read",
)
PROBE_CHARACTERS = 500_000
PROBE_FILES = 32
COMPRESSION_RATIO = 3  # raw bytes per compressed byte, for the estimate of disk space
TOKENS_PER_BYTE = 0.2  # fewer than most texts have: the estimate must not refuse wrongly


@dataclass(frozen=True, kw_only=True, slots=True)
class _Probed:
    """A tokenizer and what it does to a sample."""

    tokenizer: Tokenizer
    by_script: dict[str, dict[str, int | float]]


def prepare(config: PrepareConfig, *, on_progress: OnProgress | None = None) -> Manifest:
    """Write the data folder.

    Args:
        config: the settings.
        on_progress: is called with (bytes read, bytes to read, documents, tokens); the bytes are
            those on the disk, twice when a tokenizer is trained.

    Returns:
        The manifest, as it stands in the folder.

    Raises:
        UserError: anything that the user can mend; nothing is left in the place of the output then.
    """
    check_free(config.out, overwrite=config.overwrite)
    if config.words == "jieba":
        load_jieba()  # is it there? asked before the text is read
    given, notes = _given_tokenizer(config)  # checked before the text is looked at
    found = find_sources(config.text)
    rule = _reading_rule(config, found.sources)
    _check_space(config, found.sources, vocab_size(given) if given else config.vocab_size)
    total = sum(source.size for source in found.sources)
    progress = Progress(on_progress, total if given else 2 * total)
    with written_folder(config.out, overwrite=config.overwrite) as folder:
        if given is None:
            probed = _train(config, rule, found.sources, progress)
        else:
            by_script = unk_by_script(given, _first_documents(found.sources, rule))
            probed = _Probed(tokenizer=given, by_script=by_script)
        _check_unk(config, unk_fraction(probed.by_script), "a sample of the text", probed.by_script)
        return _write(config, rule, found, probed, notes, folder, progress)


def _given_tokenizer(config: PrepareConfig) -> tuple[Tokenizer | None, list[str]]:
    if config.tokenizer is None:
        return None, []
    tokenizer = load_tokenizer(
        config.tokenizer,
        lowercase=config.lowercase,
        strip_accents=config.strip_accents,
        max_word_length=config.max_word_length,
    )
    notes: list[str] = []
    if config.tokenizer.suffix == ".txt":
        notes = read_vocabulary(config.tokenizer)[1]
    return tokenizer, notes


def _reading_rule(config: PrepareConfig, sources: Iterable[Source]) -> ReadingRule:
    """Fill in the defaults; refuse settings about formats that do not occur."""
    formats = {source.format for source in sources}
    if config.separator is not None and "txt" not in formats:
        raise UserError(
            "separator has no effect: there is no .txt file among the files; leave it out"
        )
    if config.text_field is not None and formats == {"txt"}:
        raise UserError("text_field has no effect: there are only .txt files; leave it out")
    return ReadingRule(
        separator=config.separator or "blank_line",
        text_field=config.text_field or "text",
        on_bad=config.on_bad,
        unicode_form=config.unicode_form,
        dedup=config.dedup,
        held_out_fraction=config.held_out_fraction,
    )


def _check_space(config: PrepareConfig, sources: Iterable[Source], num_rows: int | None) -> None:
    raw = sum(s.size * (1 if s.compression == "none" else COMPRESSION_RATIO) for s in sources)
    item = token_dtype(num_rows or DEFAULT_VOCAB_SIZE).itemsize
    check_disk(config.out, int(raw * TOKENS_PER_BYTE * item))


def _train(
    config: PrepareConfig, rule: ReadingRule, sources: tuple[Source, ...], progress: Progress
) -> _Probed:
    """Train on a sample of the train split, count [UNK] on what is held out."""
    learned = HashSample((config.tokenizer_sample_mb or DEFAULT_SAMPLE_MB) * 1_000_000)
    probe = HashSample(PROBE_CHARACTERS)
    for document in read_corpus(sources, rule, counts=Counter(), on_bytes=progress.add_bytes):
        (probe if document.is_held_out else learned).add(document)
        progress.documents += 1
        if progress.documents % 1000 == 0:
            progress.report()
    progress.documents = 0
    texts = learned.texts()
    tokenizer = train_tokenizer(
        texts,
        kind=config.tokenizer_kind or "wordpiece",
        vocab_size=config.vocab_size or DEFAULT_VOCAB_SIZE,
        lowercase=True if config.lowercase is None else config.lowercase,
        strip_accents=bool(config.strip_accents),
        unicode_form=config.unicode_form,
        min_frequency=config.min_frequency or 2,
        max_word_length=config.max_word_length or MAX_WORD_LENGTH,
    )
    by_script = unk_by_script(tokenizer, probe.texts() or texts[:1000])
    return _Probed(tokenizer=tokenizer, by_script=by_script)


def _first_documents(sources: tuple[Source, ...], rule: ReadingRule) -> list[str]:
    """The beginnings of up to 32 files spread over the corpus, half a million characters in all."""
    step = max(1, len(sources) // PROBE_FILES)
    chosen = sources[::step][:PROBE_FILES]
    texts: list[str] = []
    for source in chosen:
        room = PROBE_CHARACTERS // len(chosen)
        for document in read_corpus([source], rule, counts=Counter()):
            texts.append(document.text[:room])
            room -= len(texts[-1])
            if room <= 0:
                break
    return texts


def _check_unk(
    config: PrepareConfig, share: float, where: str, by_script: dict[str, dict[str, int | float]]
) -> None:
    if share <= config.max_unk_fraction:
        return
    worst = max(by_script, key=lambda script: by_script[script]["unk"], default="?")
    raise UserError(
        f"{share:.1%} of the tokens in {where} are [UNK], most of them {worst} (the limit is "
        f"{config.max_unk_fraction:.1%}): use a tokenizer made for this text, raise vocab_size or "
        "max_word_length, or raise max_unk_fraction"
    )


def _check_content(config: PrepareConfig, done: Tokenised, num_read: int) -> None:
    """Refuse a result that cannot be trained or evaluated on."""
    train, held_out = done.sizes["train"], done.sizes["held_out"]
    if not train.num_tokens:
        raise UserError(
            f"{', '.join(config.text)}: no document with text is left "
            f"({num_read} read): check the files and the separator"
        )
    if config.held_out_fraction and not held_out.num_tokens:
        raise UserError(
            f"{', '.join(config.text)}: no two different documents, so nothing can be held out: "
            "put blank lines between documents, or set separator to line"
        )


def _write(
    config: PrepareConfig,
    rule: ReadingRule,
    found: FoundFiles,
    probed: _Probed,
    notes: list[str],
    folder: Path,
    progress: Progress,
) -> Manifest:
    tokenizer = probed.tokenizer
    save_tokenizer(tokenizer, folder / "tokenizer", model_max_length=config.model_max_length)
    counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    done = tokenise(
        read_corpus(found.sources, rule, counts=counts, on_bytes=progress.add_bytes),
        tokenizer,
        folder,
        num_workers=config.num_workers or _num_cores(),
        progress=progress,
        words=config.words,
    )
    _check_content(config, done, counts["documents_read"])
    _check_unk(config, done.unk_fraction, "the whole text", probed.by_script)
    np.save(folder / "token_counts.npy", done.token_counts)
    counts["documents_without_tokens"] = done.num_empty
    counts["special_tokens_replaced"] = done.num_special
    counts["documents_kept"] = sum(size.num_documents for size in done.sizes.values())
    counts["tokens"] = sum(size.num_tokens for size in done.sizes.values())
    counts["bytes_on_disk"] = sum(source.size for source in found.sources)
    if config.words == "jieba":
        counts["chinese_words"] = done.num_chinese
        counts["chinese_words_as_tokens"] = done.num_split
        if not done.num_chinese:
            notes = [*notes, "words: there is no Chinese in the text, so jieba changed nothing"]
    files = mark_files(folder)
    content = [
        fingerprint(tokenizer),
        *(f"{n} {m.sha256}" for n, m in files.items() if "/" not in n),
    ]
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        vocab_size=vocab_size(tokenizer),
        special=special_ids(tokenizer),
        fingerprint=hashlib.sha256("\n".join(content).encode()).hexdigest(),
        tokenizer_fingerprint=fingerprint(tokenizer),
        unigram_entropy=unigram_entropy(done.token_counts),
        train=done.sizes["train"],
        held_out=done.sizes["held_out"],
        counts=dict(sorted(counts.items())),
        unk_fraction=done.unk_fraction,
        unk_by_script=probed.by_script,
        settings=_settings(config),
        versions={
            "amber": amber.__version__,
            "tokenizers": version("tokenizers"),
            "numpy": version("numpy"),
            "python": platform.python_version(),
            **({"jieba": version("jieba")} if config.words == "jieba" else {}),
        },
        sources=[{**asdict(s), "path": s.path.as_posix()} for s in found.sources],
        skipped_files=list(found.skipped),
        notes=notes,
        files=files,
        words=config.words,
    )
    (folder / MANIFEST_NAME).write_text(manifest_json(manifest), encoding="utf-8")
    return manifest


def _num_cores() -> int:
    """Return the cores that this process may use; not every system can say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _settings(config: PrepareConfig) -> dict[str, Any]:
    values = asdict(config)
    return {k: v.as_posix() if isinstance(v, Path) else v for k, v in values.items()}
