"""`amber inspect`: what is told about each token agrees with what the networks did."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from small_runs import SmallRun, train_small

from amber.cli import inspect as command
from amber.electra.config import MaskConfig
from amber.errors import UserError
from amber.model.folder import load_discriminator, load_generator
from amber.run.commands import InspectConfig
from amber.run.inspected import InspectedToken
from amber.run.inspection import inspect_text, treatment
from amber.tokens.tokenizer import load_tokenizer

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
