"""Train a tokenizer; the same text gives the same tokenizer, bit for bit.

The trainers of the `tokenizers` library number new pieces in the order of a hash map, which differs
from process to process. So the alphabet is counted and numbered here, and handed to its BPE trainer
as fixed pieces; WordPiece is then built from the pieces that it finds. For Unigram, only the set of
pieces is taken from its trainer (its scores are sums in changing order); the scores are counted
again here.

The alphabet holds the most frequent characters that cover 99.95 % of the text, always; and further
ones with at least `min_frequency` occurrences as long as the alphabet's pieces fill no more than an
eighth of the vocabulary.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from amber.errors import UserError
from amber.text.clean import UnicodeForm
from amber.tokens.tokenizer import MAX_WORD_LENGTH, add_template, wordpiece
from amber.tokens.vocabulary import SPECIAL_TOKENS

Kind = Literal["wordpiece", "unigram", "bpe"]

COVERAGE = 0.9995
RARE_SHARE = 8  # rare characters may fill one eighth of the vocabulary
RECOUNT_CHARACTERS = 20_000_000
RECOUNT_ROUNDS = 4
SPECIAL_SCORE = -1e4  # no path through a text prefers a special token


def train_tokenizer(
    texts: Sequence[str],
    *,
    kind: Kind = "wordpiece",
    vocab_size: int,
    lowercase: bool = True,
    strip_accents: bool = False,
    unicode_form: UnicodeForm = "NFC",
    min_frequency: int = 2,
    max_word_length: int = MAX_WORD_LENGTH,
) -> Tokenizer:
    """Learn a vocabulary from normalised documents.

    Args:
        texts: the documents; their order changes nothing.
        kind: WordPiece as in BERT, Unigram as in SentencePiece, or byte-level BPE (which has no
            [UNK]).
        vocab_size: tokens, the five special ones included.
        lowercase: fold case.
        strip_accents: drop combining marks; harmful in scripts that write vowels as marks.
        unicode_form: becomes part of the tokenizer, so that later text gets it too.
        min_frequency: occurrences below which a character or a merge is not learned.
        max_word_length: characters; longer words are one [UNK] (WordPiece only).

    Raises:
        UserError: no text, or a vocabulary smaller than its alphabet.
    """
    normalizer = _normalizer(kind, lowercase, strip_accents, unicode_form)
    texts = [normalizer.normalize_str(text) for text in texts] if normalizer else list(texts)
    counts = _count_characters(texts)
    if not counts:
        raise UserError("no text to train a tokenizer on: check the paths and the separator")
    if kind == "wordpiece":
        tokens = _train_wordpiece(texts, counts, vocab_size, min_frequency)
        tokenizer = wordpiece(
            tokens,
            lowercase=lowercase,
            strip_accents=strip_accents,
            max_word_length=max_word_length,
            unicode_form=unicode_form,
        )
    elif kind == "unigram":
        tokenizer = _train_unigram(texts, counts, vocab_size, min_frequency)
        tokenizer.normalizer = normalizer
    else:
        tokenizer = _train_bpe(texts, vocab_size, min_frequency)
        tokenizer.normalizer = normalizer
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    add_template(tokenizer)
    return tokenizer


def _normalizer(kind: Kind, lowercase: bool, strip_accents: bool, form: UnicodeForm) -> Any:
    if kind == "wordpiece":
        return wordpiece(
            SPECIAL_TOKENS, lowercase=lowercase, strip_accents=strip_accents, unicode_form=form
        ).normalizer
    parts: list[Any] = []
    if form != "none":
        parts.append(normalizers.NFC() if form == "NFC" else normalizers.NFKC())
    if lowercase:
        parts.append(normalizers.Lowercase())
    if strip_accents:
        parts += [normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()]
    return normalizers.Sequence(parts) if parts else None


def _count_characters(texts: Sequence[str]) -> dict[str, int]:
    """How often each character occurs, blanks set aside."""
    total = np.zeros(0x110000, dtype=np.int64)
    held: list[str] = []
    size = 0
    for index, text in enumerate(texts):
        held.append(text)
        size += len(text)
        if size > 1 << 22 or index == len(texts) - 1:
            codes = np.frombuffer("".join(held).encode("utf-32-le"), dtype="<u4")
            seen = np.bincount(codes)
            total[: len(seen)] += seen
            held, size = [], 0
    return {chr(c): int(total[c]) for c in np.flatnonzero(total) if not chr(c).isspace()}


def _alphabet(
    counts: dict[str, int],
    pieces_of: dict[str, int],
    vocab_size: int,
    min_frequency: int,
    *,
    num_fixed: int = len(SPECIAL_TOKENS),
) -> list[str]:
    """The characters to keep, by the rule at the top, sorted by code point."""
    ordered = sorted(counts, key=lambda c: (-counts[c], c))
    enough = COVERAGE * sum(counts.values())
    covered = num_pieces = 0
    kept: list[str] = []
    for character in ordered:
        is_rare = covered >= enough
        if is_rare and counts[character] < min_frequency:
            break
        if is_rare and num_pieces + pieces_of[character] > vocab_size // RARE_SHARE:
            break
        kept.append(character)
        covered += counts[character]
        num_pieces += pieces_of[character]
    _check_size(num_pieces + num_fixed, vocab_size, len(kept))
    return sorted(kept)


def _check_size(needed: int, vocab_size: int, num_characters: int) -> None:
    if needed > vocab_size:
        raise UserError(
            f"vocab_size is {vocab_size}, but the alphabet of this text ({num_characters} "
            f"characters, {needed} tokens with the special ones) does not fit: set it to {needed} "
            "or more"
        )


def _without_rare(texts: Sequence[str], counts: dict[str, int], kept: list[str]) -> Iterator[str]:
    """The texts with every other character made a blank, so that no neighbours are glued."""
    rare = sorted(set(counts) - set(kept))
    if not rare:
        yield from texts
        return
    pattern = re.compile("[" + "".join(re.escape(character) for character in rare) + "]")
    for text in texts:
        yield pattern.sub(" ", text)


def _train_wordpiece(
    texts: Sequence[str], counts: dict[str, int], vocab_size: int, min_frequency: int
) -> list[str]:
    scaffold = Tokenizer(models.BPE(continuing_subword_prefix="##"))
    scaffold.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore
    spacing = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=True, strip_accents=False, lowercase=False
    )
    words = pre_tokenizers.BertPreTokenizer()
    # a character that is always a word of its own (CJK, punctuation) has no ## form
    pieces_of = {
        c: 1 + (len(words.pre_tokenize_str(spacing.normalize_str(f"a{c}"))) == 1) for c in counts
    }
    alphabet = _alphabet(counts, pieces_of, vocab_size, min_frequency)
    fixed = [*SPECIAL_TOKENS, *alphabet, *(f"##{c}" for c in alphabet if pieces_of[c] == 2)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=fixed,  # type: ignore
        continuing_subword_prefix="##",
        show_progress=False,
    )
    scaffold.train_from_iterator(_without_rare(texts, counts, alphabet), trainer)
    vocabulary = scaffold.get_vocab(with_added_tokens=True)
    return sorted(vocabulary, key=lambda token: vocabulary[token])


def _train_bpe(texts: Sequence[str], vocab_size: int, min_frequency: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore
    tokenizer.decoder = decoders.ByteLevel()  # type: ignore
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    _check_size(len(alphabet) + len(SPECIAL_TOKENS), vocab_size, len(alphabet))
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[*SPECIAL_TOKENS, *alphabet],  # type: ignore
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    # built again from its vocabulary and merges, so that letters are not special tokens
    state = tokenizer.model.__getstate__()
    plain = Tokenizer(_bpe_from_state(state))
    plain.pre_tokenizer = tokenizer.pre_tokenizer
    plain.decoder = tokenizer.decoder
    return plain


def _bpe_from_state(state: bytes) -> models.BPE:
    content = json.loads(state)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in content["merges"]]
    return models.BPE(vocab=content["vocab"], merges=merges, unk_token="[UNK]")  # type: ignore


def _train_unigram(
    texts: Sequence[str], counts: dict[str, int], vocab_size: int, min_frequency: int
) -> Tokenizer:
    alphabet = _alphabet(
        counts,
        dict.fromkeys(counts, 1),
        vocab_size,
        min_frequency,
        num_fixed=len(SPECIAL_TOKENS) + 1,  # the sign for a blank
    )
    scaffold = _unigram([("[UNK]", 0.0)], 0)
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),  # type: ignore
        unk_token="[UNK]",
        show_progress=False,
    )
    known = list(_without_rare(texts, counts, alphabet))
    scaffold.train_from_iterator(known, trainer)
    pieces = sorted(set(scaffold.get_vocab(with_added_tokens=False)) - set(SPECIAL_TOKENS))
    sample: list[str] = []
    size = 0
    for text in known:
        if size > RECOUNT_CHARACTERS:
            break
        sample.append(text)
        size += len(text)
    special = [(token, SPECIAL_SCORE) for token in SPECIAL_TOKENS]
    scores = dict.fromkeys(pieces, -10.0)
    ordered = pieces
    for _ in range(RECOUNT_ROUNDS):
        model = _unigram([*special, *((p, scores[p]) for p in ordered)], 1)
        used: Counter[int] = Counter()
        for start in range(0, len(sample), 256):
            for encoding in model.encode_batch_fast(sample[start : start + 256]):
                used.update(encoding.ids)
        first = len(special)
        total = sum(used.values()) + len(pieces)
        scores = {
            p: round(math.log((used[first + i] + 1) / total), 6) for i, p in enumerate(ordered)
        }
        ordered = sorted(pieces, key=lambda p: (-scores[p], p))
    return _unigram([*special, *((p, scores[p]) for p in ordered)], 1)


def _unigram(pieces: list[tuple[str, float]], unk_id: int) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # type: ignore
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()  # type: ignore
    return tokenizer
