"""`amber inspect`: what is told about each token agrees with what the networks did."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from padded_tables import pad_tables
from small_runs import SmallRun, train_small
from tokenizers import Tokenizer

from amber.cli import inspect as command
from amber.config import read_toml, to_toml
from amber.electra.config import MaskConfig
from amber.errors import UserError
from amber.model.folder import load_discriminator, load_generator
from amber.run import inspection
from amber.run.choices import treatment
from amber.run.commands import InspectConfig
from amber.run.folders import read_training_settings
from amber.run.inspected import InspectedToken
from amber.run.inspection import Corpus, as_trained, inspect_text, make_batch
from amber.run.pieces import Piece, cut_texts
from amber.tokens.encode import Encoder
from amber.tokens.tokenizer import load_tokenizer, special_ids, wordpiece
from amber.tokens.vocabulary import SPECIAL_TOKENS

TEXT = "the cat sees the dog and the bird hears a big tree with one small house"


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("inspection") / "pair")


@pytest.fixture(scope="module")
def mlm(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("inspection") / "mlm", objective="mlm")


def tokens_of(config: InspectConfig) -> list[InspectedToken]:
    return [token for row in inspect_text(config).sequences for token in row.tokens]


def test_the_tokens_are_the_text_between_the_special_ones(pair):
    tokens = tokens_of(InspectConfig(model=pair.out, text=("the cat",)))
    assert [token.token for token in tokens] == ["[CLS]", "the", "cat", "[SEP]"]
    assert [token.is_special for token in tokens] == [True, False, False, True]


def test_the_runs_share_of_the_tokens_is_chosen_and_never_a_special_one(pair):
    tokens = tokens_of(InspectConfig(model=pair.out, text=(TEXT,)))
    chosen = [token for token in tokens if token.choice]
    assert len(tokens) == 18
    assert len(chosen) == 4  # a quarter of 16
    assert not any(token.is_special for token in chosen)


def test_the_label_tells_whether_the_drawn_token_differs(pair):
    texts = (TEXT,) * 40
    tokens = tokens_of(InspectConfig(model=pair.out, text=texts, fraction=0.5))
    for token in tokens:
        differs = token.choice is not None and token.choice.sampled.token != token.token
        assert token.is_replaced == differs
    drawn = [token for token in tokens if token.choice]
    assert {token.is_replaced for token in drawn} == {True, False}  # a lucky one is original


def test_the_three_treatments_are_shown_as_what_they_are(pair):
    tokens = tokens_of(InspectConfig(model=pair.out, text=(TEXT,) * 40))
    choices = [(token.token, token.choice) for token in tokens if token.choice]
    assert {choice.treatment for _, choice in choices} == {"mask", "kept", "random"}
    for token, choice in choices:
        if choice.treatment != "random":
            assert choice.shown == ("[MASK]" if choice.treatment == "mask" else token)


def test_treatment_by_hand():
    config = MaskConfig(keep_fraction=0.2, random_fraction=0.3)
    assert [treatment(draw, config) for draw in (0.1, 0.2, 0.4, 0.6)] == [
        "kept",
        "random",
        "random",
        "mask",
    ]


def test_the_guesses_are_the_generators_softmax(pair):
    tokens = tokens_of(InspectConfig(model=pair.out, text=(TEXT,), top=200))
    tokenizer = load_tokenizer(pair.out / "generator")
    encoder, head = load_generator(pair.out / "generator")
    seen = [tokenizer.token_to_id(t.choice.shown if t.choice else t.token) for t in tokens]
    with torch.no_grad():
        hidden = encoder.eval()(torch.tensor([seen]))[0]
        scores = head(hidden, encoder.embeddings.table)
    scores[:, [tokenizer.token_to_id(t) for t in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]] = -1e9
    for position, token in enumerate(tokens):
        if token.choice:
            expected = scores[position].softmax(-1)
            for guess in token.choice.guesses:
                there = float(expected[tokenizer.token_to_id(guess.token)])
                assert guess.probability == pytest.approx(there, abs=1e-5)
            of_text = float(expected[tokenizer.token_to_id(token.token)])
            assert token.choice.original_probability == pytest.approx(of_text, abs=1e-5)


def test_the_suspicion_is_the_discriminators_on_the_drawn_tokens(pair):
    tokens = tokens_of(InspectConfig(model=pair.out, text=(TEXT,)))
    tokenizer = load_tokenizer(pair.out / "discriminator")
    encoder, head = load_discriminator(pair.out / "discriminator")
    seen = [t.choice.sampled.token if t.choice else t.token for t in tokens]
    ids = torch.tensor([[tokenizer.token_to_id(name) for name in seen]])
    with torch.no_grad():
        expected = head(encoder.eval()(ids)).sigmoid()[0]
    told = torch.tensor([token.replaced_probability for token in tokens])
    torch.testing.assert_close(told, expected, atol=1e-5, rtol=0.0)


def test_the_seed_decides(pair):
    first, again, other = (
        inspect_text(InspectConfig(model=pair.out, text=(TEXT,), seed=seed)).sequences
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_a_long_text_is_cut_into_the_runs_sequences(pair, capsys):
    words = "cat dog " * 25
    config = InspectConfig(model=pair.out, text=("one", words))
    sequences = inspect_text(config).sequences
    assert [(row.text, row.part, row.num_parts) for row in sequences] == [
        (1, 1, 1),
        (2, 1, 3),
        (2, 2, 3),
        (2, 3, 3),
    ]
    inner = [t.token for row in sequences[1:] for t in row.tokens if not t.is_special]
    assert inner == words.split()
    assert max(len(row.tokens) for row in sequences) == 24
    command.run(config, is_json=False)
    printed = capsys.readouterr().out
    assert "cut into sequences of 24 tokens" in printed
    assert "text 2, part 3 of 3" in printed


def test_a_discriminator_alone_judges_the_text_as_it_is(pair, tmp_path):
    shutil.copytree(pair.out / "discriminator", tmp_path / "alone")
    inspection = inspect_text(InspectConfig(model=tmp_path / "alone", text=(TEXT,)))
    assert inspection.kind == "discriminator"
    assert inspection.noise is None
    assert "no generator beside" in inspection.notes[0]
    for token in inspection.sequences[0].tokens:
        assert token.choice is None
        assert token.is_replaced is None
        assert 0 < token.replaced_probability < 1
    with pytest.raises(UserError, match="fraction has no effect"):
        inspect_text(InspectConfig(model=tmp_path / "alone", text=(TEXT,), fraction=0.3))


def test_a_masked_language_model_has_guesses_only(mlm):
    inspection = inspect_text(InspectConfig(model=mlm.out, text=(TEXT,)))
    assert inspection.kind == "mlm"
    chosen = [token for token in inspection.sequences[0].tokens if token.choice]
    assert chosen
    assert all(token.choice.sampled is None for token in chosen)
    assert all(token.replaced_probability is None for token in chosen)
    with pytest.raises(UserError, match="temperature has no effect"):
        inspect_text(InspectConfig(model=mlm.out, text=(TEXT,), temperature=2.0))


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_text_is_refused(text):
    with pytest.raises(UserError, match="the text is empty"):
        InspectConfig(model=Path("run"), text=(text,))


def test_a_text_of_control_characters_is_refused(pair):
    with pytest.raises(UserError, match="has no token"):
        inspect_text(InspectConfig(model=pair.out, text=("\x00\ufeff",)))


def test_chinese_and_emoji_come_through(pair, capsys):
    config = InspectConfig(model=pair.out, text=("\u732b\u72d7 \U0001f600",))
    assert command.run(config, is_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    names = [token["token"] for token in told["sequences"][0]["tokens"]]
    assert names == ["[CLS]", "\u732b", "\u72d7", "\U0001f600", "[SEP]"]
    command.run(config, is_json=False)
    assert "\u732b" in capsys.readouterr().out


def test_a_temperature_changes_the_draw_but_not_what_the_generator_believes(pair):
    cold, hot = (
        [t.choice for t in tokens_of(InspectConfig(model=pair.out, text=(TEXT,), temperature=t))]
        for t in (0.05, 50.0)
    )
    for one, other in zip(cold, hot, strict=True):
        if one is not None and other is not None:
            assert one.guesses == other.guesses
    flat = [choice.sampled.probability for choice in hot if choice]
    assert max(flat) < 1.1 * min(flat)


def test_names_of_special_tokens_in_a_text_are_read_as_amber_prepare_reads_them(pair):
    text = "the [MASK] sees [PAD] a cat"
    tokenizer = load_tokenizer(pair.out / "discriminator")
    expected = [tokenizer.id_to_token(i) for i in Encoder(tokenizer).encode([text]).ids.tolist()]
    tokens = tokens_of(InspectConfig(model=pair.out, text=(text,)))
    assert [token.token for token in tokens[1:-1]] == expected
    assert not {"[MASK]", "[PAD]"} & set(expected)


def two_accents() -> Tokenizer:
    """A tokenizer that tells an accented letter from the letter with a combining accent."""
    tokens = [*SPECIAL_TOKENS, "\u00e9", "e\u0301"]
    return wordpiece(tokens, lowercase=False, strip_accents=False)


@pytest.mark.parametrize(("form", "token"), [("NFC", 5), ("none", 6)])
def test_a_text_gets_the_normal_form_of_the_training_text(form, token):
    pieces = cut_texts(["e\u0301"], two_accents(), length=8, unicode_form=form)
    assert [piece.ids for piece in pieces] == [[2, token, 3]]


def test_pieces_say_where_words_begin_if_asked(pair):
    tokenizer = load_tokenizer(pair.out / "generator")
    (piece,) = cut_texts(
        ["the cat houses"], tokenizer, length=24, unicode_form="NFC", words="tokenizer"
    )
    names = [tokenizer.id_to_token(token) for token in piece.ids]
    assert names[-2].startswith("##")
    assert piece.is_word_start == [not name.startswith("##") for name in names]
    (first, *_) = cut_texts(["the cat"] * 2, tokenizer, length=24, unicode_form="NFC")
    assert first.is_word_start is None


def test_batches_say_where_words_begin_and_padding_begins_words(pair):
    special = special_ids(load_tokenizer(pair.out / "generator"))
    pieces = [
        Piece(
            text=1, part=1, num_parts=1, ids=[2, 9, 8, 3], is_word_start=[True, True, False, True]
        ),
        Piece(text=2, part=1, num_parts=1, ids=[2, 9, 3], is_word_start=[True, True, True]),
    ]
    batch = make_batch(pieces, special, first=0, seed=0)
    assert batch.is_word_start.tolist() == [[True, True, False, True], [True, True, True, True]]
    assert batch.input_ids[1].tolist() == [2, 9, 3, special.pad]


def test_what_a_run_cannot_do_without_its_data_is_said(pair):
    trained = read_training_settings(pair.out / "config.toml")
    mask = MaskConfig(unit="word", frequency_power=0.5)
    settings, notes = as_trained(replace(trained, mask=mask), Corpus())
    assert (settings.mask.unit, settings.mask.frequency_power) == ("token", 0.0)
    assert ["words" in note for note in notes] == [True, False]
    known = Corpus(token_counts=torch.ones(9, dtype=torch.int64), words="tokenizer")
    settings, notes = as_trained(replace(trained, mask=mask), known)
    assert settings.mask == mask
    assert notes == []


def test_the_normal_form_is_that_of_the_runs_data_while_it_is_the_same(pair, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(pair.data, data)
    manifest = json.loads((data / "manifest.json").read_text(encoding="utf-8"))
    manifest["settings"]["unicode_form"] = "none"
    (data / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    values = read_toml(pair.out / "config.toml") | {"data": str(data)}
    changed = values | {"data_fingerprint": "another"}
    gone = values | {"data": str(tmp_path / "gone")}
    for settings, form in ((values, "none"), (changed, "NFC"), (gone, "NFC")):
        (tmp_path / "config.toml").write_text(to_toml(settings), encoding="utf-8")
        assert read_training_settings(tmp_path / "config.toml").unicode_form == form


def test_the_networks_are_joined_once_for_many_batches(pair, monkeypatch):
    calls = []

    def join(*arguments, **named):
        calls.append(arguments)
        return original(*arguments, **named)

    original = inspection.join
    monkeypatch.setattr(inspection, "join", join)
    inspect_text(InspectConfig(model=pair.out, text=("cat",) * 40))
    assert len(calls) == 1


def test_rows_of_the_table_without_a_token_are_never_guessed_or_drawn(pair, tmp_path):
    pad_tables(pair.out, tmp_path, num_more=8)
    texts = (TEXT,) * 3
    tokens = tokens_of(InspectConfig(model=tmp_path, text=texts, temperature=3.0))
    before = tokens_of(InspectConfig(model=pair.out, text=texts, temperature=3.0))
    names = [t.choice.sampled.token for t in tokens if t.choice]
    assert len(names) == 12
    assert names == [t.choice.sampled.token for t in before if t.choice]
    guesses = [guess.token for t in tokens if t.choice for guess in t.choice.guesses]
    assert not any(name.startswith("[row") for name in guesses)
