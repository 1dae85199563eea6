"""`amber inspect` of every objective and noise: its numbers are those of the training step."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import write_data

from amber.cli import inspect as command
from amber.data.config import BatchConfig
from amber.electra.config import LossConfig, MaskConfig, NoiseConfig
from amber.electra.loss import electric_logits
from amber.electra.outcome import Outcome
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.run.commands import InspectConfig
from amber.run.config import BudgetConfig, EvaluationConfig, PretrainConfig
from amber.run.device import open_process
from amber.run.evaluation import mask_batch
from amber.run.folders import join, open_model
from amber.run.inspected import InspectedToken, Inspection
from amber.run.inspection import inspect_text, known_corpus, make_batch
from amber.run.observation import Observation, describe, play
from amber.run.pieces import cut_texts
from amber.run.pretrain import pretrain
from amber.run.score import open_scorer, score_texts
from amber.run.setup import vocabulary_of
from amber.tokens.tokenizer import load_tokenizer, special_ids

TEXT = "the cat sees the dog and the bird hears a big tree with one small house"
MASK = MaskConfig(fraction=0.5)

RUNS = {
    "masked": {"objective": "rtd_masked", "label_rule": "content"},
    "replace": {"objective": "replace_mlm"},
    "all": {"objective": "all_tokens_mlm"},
    "electric": {"objective": "electric", "noise": NoiseConfig(source="two_tower")},
    "unigram": {"noise": NoiseConfig(source="unigram")},
    "uniform": {"noise": NoiseConfig(source="uniform")},
    "source": {
        "noise": NoiseConfig(source="unigram", random_fraction=0.4, top_k=4),
        "label_rule": "source",
        "loss": LossConfig(include_special=False),
    },
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_data(tmp_path_factory.mktemp("observation"))


@pytest.fixture(scope="module")
def runs(data):
    """Runs of one step by name, each trained when it is first asked for."""
    made: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in made:
            made[name] = data.parent / name
            config = PretrainConfig(
                data=data,
                out=made[name],
                device="cpu",
                precision="float32",
                model=EncoderConfig(
                    hidden_size=16,
                    num_hidden_layers=1,
                    num_attention_heads=2,
                    intermediate_size=24,
                    max_position_embeddings=32,
                    initial_std=0.5,  # answers that differ
                ),
                mask=MASK,
                batch=BatchConfig(size=4, length=24, num_workers=0),
                budget=BudgetConfig(steps=1),
                evaluation=EvaluationConfig(examples=2, batch_size=2),
                **RUNS[name],
            )
            pretrain(config, show=lambda event: None)
        return made[name]

    return run


def look(out: Path, num_texts: int = 6) -> tuple[Observation, Outcome, list[list[InspectedToken]]]:
    """Observe a few texts, and let the model do its forward pass on the same batch."""
    opened = open_model(out)
    rows = opened.encoder.config.vocab_size
    counts = known_corpus(out / "config.toml", num_rows=rows).token_counts
    vocabulary = vocabulary_of(opened.tokenizer, torch.device("cpu"), num_rows=rows)
    model = join(opened, vocabulary, token_counts=counts)
    pieces = cut_texts([TEXT] * num_texts, opened.tokenizer, length=24, unicode_form="NFC")
    batch = make_batch(pieces, special_ids(opened.tokenizer), first=0, seed=0)
    seen = play(opened, model, vocabulary, batch, MASK, 1.0, top=3)
    with torch.no_grad():
        outcome = model(batch, mask_batch(batch, MASK, vocabulary), temperature=1.0)
    return seen, outcome, describe(opened.tokenizer, seen)


def inspected(out: Path, **settings) -> tuple[Inspection, list[InspectedToken]]:
    inspection = inspect_text(InspectConfig(model=out, text=(TEXT,) * 6, **settings))
    return inspection, [token for row in inspection.sequences for token in row.tokens]


@pytest.mark.parametrize("name", ["replace", "all"])
def test_what_is_named_is_what_the_forward_pass_names_and_loses(runs, name):
    seen, outcome, rows = look(runs(name))
    answer = outcome.answer
    tokenizer = load_tokenizer(runs(name) / "encoder")
    nats = 0.0
    for (row, at), naming in seen.namings.items():
        assert naming.guesses[0].token == tokenizer.id_to_token(int(answer.named[row, at]))
        assert naming.is_right == (naming.guesses[0].token == rows[row][at].token)
        nats -= np.log(naming.original_probability)
    assert len(seen.namings) == int(answer.is_scored.sum())
    assert nats == pytest.approx(float(answer.loss), rel=1e-4)


def test_the_copy_gate_is_that_of_the_forward_pass(runs):
    seen, outcome, _ = look(runs("all"))
    for (row, at), naming in seen.namings.items():
        gate = torch.tensor(naming.copy_probability).logit()
        assert float(gate) == pytest.approx(-float(outcome.answer.logits[row, at]), abs=1e-4)


def test_replace_mlm_names_the_chosen_tokens_only(runs):
    _, _, (row, *_) = look(runs("replace"))
    assert [token.naming is not None for token in row] == [
        token.choice is not None for token in row
    ]


def test_energy_and_noise_give_the_logit_of_the_forward_pass(runs):
    seen, outcome, _ = look(runs("electric"))
    where = outcome.answer.is_scored
    assert seen.energy is not None
    share = torch.tensor(0.5).log().expand(int(where.sum()))  # 8 of 16
    logits = electric_logits(seen.energy[where], seen.noise_probability[where].log(), share)
    torch.testing.assert_close(logits, outcome.answer.logits[where], atol=1e-4, rtol=0.0)
    torch.testing.assert_close(seen.replaced_probability[where], logits.sigmoid())
    assert seen.energy[~where].isnan().all()


def test_the_score_of_a_sentence_is_that_of_amber_score(runs):
    inspection, tokens = inspected(runs("electric"))
    with open_process("cpu", "float32") as process:
        scorer = open_scorer(open_model(runs("electric")), process, by="energy", length=24)
        (score,) = score_texts(scorer, [TEXT])
    assert inspection.sequences[0].score == pytest.approx(score.value, abs=1e-4)
    first = tokens[1:17]
    assert -sum(token.text_energy for token in first) == pytest.approx(score.value, abs=1e-4)
    assert any(token.energy != token.text_energy for token in first)  # other tokens are seen


def test_electric_alone_tells_the_energies_of_the_text(runs, tmp_path):
    shutil.copytree(runs("electric") / "encoder", tmp_path / "alone")
    inspection, tokens = inspected(tmp_path / "alone")
    together, _ = inspected(runs("electric"))
    assert inspection.notes == (
        f"there are no towers beside {tmp_path / 'alone'}: the text is judged as it is",
    )
    assert [row.score for row in inspection.sequences] == pytest.approx(
        [row.score for row in together.sequences], abs=1e-5
    )
    assert all(token.energy is None for token in tokens)


def test_towers_guess_the_text_as_it_is(runs):
    seen, outcome, _ = look(runs("electric"))
    tokenizer = load_tokenizer(runs("electric") / "encoder")
    everywhere = outcome.proposal.everywhere.clone()
    everywhere[:, [tokenizer.token_to_id(t) for t in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]] = -1e9
    for (row, at), choice in seen.choices.items():
        best = everywhere[16 * row + at - 1].softmax(-1).max(-1)
        assert choice.treatment is None
        assert choice.guesses[0].token == tokenizer.id_to_token(int(best.indices))
        assert choice.guesses[0].probability == pytest.approx(float(best.values), abs=1e-5)


def test_a_discriminator_of_chosen_tokens_is_asked_there_only(runs):
    seen, outcome, rows = look(runs("masked"))
    for row, at in np.ndindex(6, 18):
        token = rows[row][at]
        assert (token.replaced_probability is None) == (token.choice is None)
        if token.choice is not None:
            expected = float(outcome.answer.logits[row, at].sigmoid())
            assert token.replaced_probability == pytest.approx(expected, abs=1e-6)


def test_unigram_noise_is_drawn_by_the_frequencies_of_the_runs_data(runs, data):
    inspection, tokens = inspected(runs("unigram"))
    assert inspection.noise == "unigram"
    tokenizer = load_tokenizer(data / "tokenizer")
    counts = np.load(data / "token_counts.npy").astype(float)
    special = ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
    counts[[tokenizer.token_to_id(name) for name in special]] = 0.0
    chosen = [token for token in tokens if token.choice]
    assert len(chosen) == 6 * 8
    for token in chosen:
        shares = {
            name: counts[tokenizer.token_to_id(name)] / counts.sum()
            for name in (token.token, token.choice.sampled.token)
        }
        assert token.choice.original_probability == pytest.approx(shares[token.token], rel=1e-4)
        drawn = token.choice.sampled
        assert drawn.probability == pytest.approx(shares[drawn.token], rel=1e-4)
        assert token.choice.guesses == ()
        assert token.seen == drawn.token


def test_unigram_noise_without_its_data_is_said_and_the_text_is_judged(runs, data, tmp_path):
    shutil.copytree(runs("unigram"), tmp_path / "run")
    config = (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    gone = config.replace(f'"{data}"', f'"{tmp_path / "gone"}"', 1)
    (tmp_path / "run" / "config.toml").write_text(gone, encoding="utf-8")
    inspection, tokens = inspected(tmp_path / "run")
    assert len(inspection.notes) == 1
    assert "is gone or was changed" in inspection.notes[0]
    assert not any(token.choice for token in tokens)
    with pytest.raises(UserError, match="temperature has no effect: the data"):
        inspected(tmp_path / "run", temperature=0.5)


def test_a_temperature_without_effect_on_uniform_noise_is_refused(runs):
    _, tokens = inspected(runs("uniform"))
    chances = [token.choice.sampled.probability for token in tokens if token.choice]
    assert max(chances) == pytest.approx(min(chances))
    with pytest.raises(UserError, match="temperature has no effect"):
        inspected(runs("uniform"), temperature=0.5)


def test_conflicts_and_random_replacements_are_told(runs):
    inspection, tokens = inspected(runs("source"))
    assert inspection.label_rule == "source"
    for token in tokens:
        differs = token.seen != token.token
        assert token.is_replaced == (differs or token.choice is not None)
        assert token.is_conflict == (token.choice is not None and not differs)
        assert (token.replaced_probability is None) == token.is_special  # not in the loss
    assert any(token.is_conflict for token in tokens)
    assert any(token.choice is None and token.seen != token.token for token in tokens)


def test_the_chance_of_a_draw_counts_top_k(runs):
    _, tokens = inspected(runs("source"))
    chances = {
        token.choice.sampled.token: token.choice.sampled.probability
        for token in tokens
        if token.choice
    }
    assert len(chances) == 4
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_is_printed(runs, name, capsys):
    command.run(InspectConfig(model=runs(name), text=(TEXT,)), is_json=False)
    printed = capsys.readouterr().out
    assert ("score " in printed) == (name == "electric")
    assert ("P(copy)" in printed) == (name == "all")
    assert ("encoder names" in printed) == (name in ("all", "replace"))
    assert max(map(len, printed.splitlines())) <= 120
