"""Load, check, name and save tokenizers.

A word of more characters than `max_word_length` becomes one [UNK] in WordPiece: 100 in
`transformers`, 200 in Google's code; the default here is 100, so that exported tokenizers give the
ids that people expect.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from amber.errors import UserError
from amber.tokens.vocabulary import (
    SPECIAL_NAMES,
    SpecialIds,
    is_ordinary,
    looks_cased,
    read_vocabulary,
    special_ids,
    special_token_ids,
    vocab_size,
)

__all__ = [
    "SpecialIds",
    "fingerprint",
    "is_ordinary",
    "load_tokenizer",
    "longest_text",
    "save_tokenizer",
    "special_ids",
    "special_token_ids",
    "vocab_size",
]

MAX_WORD_LENGTH = 100
CONFIG_NAMES = {f"{role}_token": role for role in SPECIAL_NAMES}


def load_tokenizer(
    path: Path,
    *,
    lowercase: bool | None = None,
    strip_accents: bool | None = None,
    max_word_length: int | None = None,
) -> Tokenizer:
    """Load a `vocab.txt`, a `tokenizer.json`, or a Hugging Face folder with one of them.

    Args:
        path: the file or folder.
        lowercase: for a vocab.txt; by default what tokenizer_config.json says, else whether the
            vocabulary holds no ASCII capitals.
        strip_accents: for a vocab.txt; by default what tokenizer_config.json says, else as
            `lowercase`.
        max_word_length: for a vocab.txt; characters.

    Returns:
        The tokenizer without padding and truncation; its post-processor adds [CLS] and [SEP].

    Raises:
        UserError: not there, damaged, a special token missing, tokens repeated, or a setting that
            this kind of file decides itself.
    """
    file, config = _locate(path)
    if file.suffix == ".json":
        names = {"lowercase": lowercase, "strip_accents": strip_accents}
        for name, value in {**names, "max_word_length": max_word_length}.items():
            if value is not None:
                raise UserError(f"{file}: {name} is decided in this file: leave the setting out")
        tokenizer = _from_json(file)
    else:
        tokens, _ = read_vocabulary(file)
        if lowercase is None:
            lowercase = config.get("do_lower_case")
        if lowercase is None:
            lowercase = not looks_cased(tokens)
        if strip_accents is None:
            strip_accents = config.get("strip_accents")
        tokenizer = wordpiece(
            tokens,
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            max_word_length=max_word_length or MAX_WORD_LENGTH,
            handle_chinese_chars=config.get("tokenize_chinese_chars", True),
        )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    _mark_special(tokenizer, config, file)
    return tokenizer


def _locate(path: Path) -> tuple[Path, dict[str, Any]]:
    """The file to load, and the tokenizer_config.json beside it when a folder was given."""
    if not path.exists():
        raise UserError(
            f"{path}: no such file or folder: give a vocab.txt, a tokenizer.json or a folder"
        )
    if not path.is_dir():
        if path.suffix not in (".txt", ".json"):
            raise UserError(
                f"{path}: not a vocab.txt or tokenizer.json: give one, or a folder with one"
            )
        return path, {}
    config: dict[str, Any] = {}
    config_path = path / "tokenizer_config.json"
    if config_path.is_file():
        try:
            config = json.loads(config_path.read_text(encoding="utf-8-sig"))
        except (ValueError, OSError) as error:
            raise UserError(f"{config_path}: not readable JSON ({error})") from error
        if not isinstance(config, dict):
            raise UserError(f"{config_path}: not a JSON object: copy the folder again")
    for name in ("tokenizer.json", "vocab.txt"):
        if (path / name).is_file():
            return path / name, config
    raise UserError(
        f"{path}: neither tokenizer.json nor vocab.txt in this folder: save the tokenizer there "
        "with "
        "transformers' save_pretrained"
    )


def longest_text(folder: Path) -> int | None:
    """The tokens of a text that `transformers` reads with this tokenizer; None: no limit is set."""
    limit = _locate(folder)[1].get("model_max_length")
    return limit if isinstance(limit, int) and limit > 0 else None


def _from_json(file: Path) -> Tokenizer:
    try:
        content = file.read_text(encoding="utf-8-sig")
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # the library raises bare Exception for bad content
        raise UserError(f"{file}: not a readable tokenizer.json ({error})") from error
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    if len(set(vocabulary.values())) < len(vocabulary):
        raise UserError(f"{file}: several tokens share one id: each token needs its own")
    return tokenizer


def _mark_special(tokenizer: Tokenizer, config: dict[str, Any], file: Path) -> None:
    """Make sure that the five tokens are special and that [CLS] and [SEP] are put around text."""
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    for key in CONFIG_NAMES:
        named = config.get(key)
        name = named.get("content") if isinstance(named, dict) else named
        if isinstance(name, str) and name not in vocabulary:
            raise UserError(
                f"{file}: {key} is '{name}' in tokenizer_config.json, which is not in the "
                "vocabulary: "
                "add it, or correct the name"
            )
    try:
        ids = special_ids(tokenizer)
    except UserError as error:
        raise UserError(f"{file}: {error}") from error
    known = tokenizer.get_added_tokens_decoder()
    missing = [i for i in asdict(ids).values() if i not in known or not known[i].special]
    tokenizer.add_special_tokens([tokenizer.id_to_token(i) for i in sorted(missing)])
    if tokenizer.num_special_tokens_to_add(False) == 0:
        add_template(tokenizer)


def add_template(tokenizer: Tokenizer) -> None:
    """Put [CLS] before a text and [SEP] after each of one or two."""
    ids = special_ids(tokenizer)
    cls, sep = tokenizer.id_to_token(ids.cls), tokenizer.id_to_token(ids.sep)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {sep} $B:1 {sep}:1",
        special_tokens=[(cls, ids.cls), (sep, ids.sep)],
    )


def wordpiece(
    tokens: Sequence[str],
    *,
    lowercase: bool,
    strip_accents: bool,
    max_word_length: int = MAX_WORD_LENGTH,
    handle_chinese_chars: bool = True,
    unicode_form: str = "none",
) -> Tokenizer:
    """Build BERT's tokenizer around a list of pieces, the index being the id."""
    unk = next((name for name in SPECIAL_NAMES["unk"] if name in set(tokens)), "[UNK]")
    model = models.WordPiece(
        {token: row for row, token in enumerate(tokens)},
        unk_token=unk,
        max_input_chars_per_word=max_word_length,
        continuing_subword_prefix="##",
    )
    tokenizer = Tokenizer(model)
    bert = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=handle_chinese_chars,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    forms = {"NFC": normalizers.NFC, "NFKC": normalizers.NFKC}
    if unicode_form in forms:
        tokenizer.normalizer = normalizers.Sequence([forms[unicode_form](), bert])  # type: ignore
    else:
        tokenizer.normalizer = bert  # type: ignore
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore
    tokenizer.decoder = decoders.WordPiece(prefix="##")  # type: ignore
    return tokenizer


def fingerprint(tokenizer: Tokenizer) -> str:
    """SHA-256 of the whole tokenizer: vocabulary, rules, special tokens.

    Scores count to nine digits: the library reads back its own last digits differently.
    """
    content = json.loads(tokenizer.to_str(), parse_float=lambda digits: f"{float(digits):.9g}")
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


def save_tokenizer(
    tokenizer: Tokenizer,
    folder: Path,
    *,
    model_max_length: int,
    model_input_names: Sequence[str] = ("input_ids", "token_type_ids", "attention_mask"),
) -> None:
    """Write the Hugging Face files: `transformers.AutoTokenizer` gives the same ids from them.

    Args:
        tokenizer: what to save.
        folder: made when it is not there.
        model_max_length: tokens, [CLS] and [SEP] included.
        model_input_names: what the tokenizer hands to the model; leave out `token_type_ids` for a
            body without segments.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.no_padding()
    plain.no_truncation()
    plain.save(str(folder / "tokenizer.json"))
    names = {f"{r}_token": plain.id_to_token(i) for r, i in asdict(special_ids(plain)).items()}
    # the general class takes tokenizer.json as it is; the class of BERT would rebuild its
    # normaliser
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model_max_length,
        "model_input_names": list(model_input_names),
        "clean_up_tokenization_spaces": False,
        **names,
    }
    _write_json(folder / "tokenizer_config.json", config)
    _write_json(folder / "special_tokens_map.json", names)
    rows = {row: token for token, row in plain.get_vocab(with_added_tokens=True).items()}
    if isinstance(plain.model, models.WordPiece) and len(rows) == vocab_size(plain):
        lines = "".join(f"{rows[row]}\n" for row in range(len(rows)))
        (folder / "vocab.txt").write_text(lines, encoding="utf-8", newline="\n")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
