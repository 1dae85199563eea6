"""Sentence scores: against plain loops and `transformers`, and what is refused."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from padded_tables import pad_tables
from small_runs import SmallRun, train_small

from amber.errors import RunError, UserError
from amber.model.folder import load_discriminator, load_generator
from amber.run import score
from amber.run.device import Process
from amber.run.folders import OpenedModel, open_model
from amber.run.pieces import cut_texts
from amber.run.score import Score, Scorer, open_scorer, score_texts, ways_to_score
from amber.run.setup import vocabulary_of
from amber.tokens.tokenizer import load_tokenizer, save_tokenizer, vocab_size

TEXTS = ["the cat sees a dog", "one", "the big tree and the small house", "dog a sees cat the"]
FORBIDDEN = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("score") / "pair")


@pytest.fixture(scope="module")
def mlm(tmp_path_factory) -> SmallRun:
    return train_small(tmp_path_factory.mktemp("score") / "mlm", objective="mlm")


def scorer_of(path: Path, by=None, length=None, process=CPU) -> Scorer:
    return open_scorer(open_model(path), process, by=by, length=length)


def values(scorer: Scorer, texts: list[str]) -> list[float | None]:
    return [each.value for each in score_texts(scorer, texts)]


def ids_of(tokenizer, text: str) -> list[int]:
    inner = [tokenizer.token_to_id(word) for word in text.split()]
    return [tokenizer.token_to_id("[CLS]"), *inner, tokenizer.token_to_id("[SEP]")]


def loop(scores_at, tokenizer, text: str) -> float:
    """One forward pass per token, and a plain softmax."""
    ids, total = ids_of(tokenizer, text), 0.0
    for position in range(1, len(ids) - 1):
        shown = torch.tensor([ids])
        shown[0, position] = tokenizer.token_to_id("[MASK]")
        with torch.no_grad():
            scores = scores_at(shown, position)
        scores[[tokenizer.token_to_id(name) for name in FORBIDDEN]] = -math.inf
        total += float(scores.log_softmax(-1)[ids[position]])
    return total


@pytest.mark.parametrize("folder", ["pair", "mlm"])
def test_the_pseudo_log_likelihood_is_that_of_a_loop_over_the_tokens(folder, request):
    run = request.getfixturevalue(folder)
    path = run.out / ("generator" if folder == "pair" else "encoder")
    tokenizer = load_tokenizer(path)
    encoder, head = load_generator(path)
    encoder.eval()

    def scores_at(shown, position):
        return head(encoder(shown)[0, position : position + 1], encoder.embeddings.table)[0]

    expected = [loop(scores_at, tokenizer, text) for text in TEXTS]
    assert values(scorer_of(run.out, "pll"), TEXTS) == pytest.approx(expected, abs=1e-4)


def test_the_pseudo_log_likelihood_of_an_electra_folder_is_that_of_transformers(pair, tmp_path):
    tokenizer = load_tokenizer(pair.out / "generator")
    torch.manual_seed(0)
    config = transformers.ElectraConfig(
        vocab_size=vocab_size(tokenizer) + 3,  # rows without a token
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        initializer_range=0.5,
    )
    theirs = transformers.ElectraForMaskedLM(config).eval()
    theirs.save_pretrained(tmp_path)
    save_tokenizer(tokenizer, tmp_path, model_max_length=512)

    def scores_at(shown, position):
        scores = theirs(input_ids=shown).logits[0, position]
        scores[vocab_size(tokenizer) :] = -math.inf
        return scores

    expected = [loop(scores_at, tokenizer, text) for text in TEXTS]
    assert values(scorer_of(tmp_path), TEXTS) == pytest.approx(expected, abs=1e-4)


def test_the_score_of_a_discriminator_and_of_energies_by_hand(pair):
    tokenizer = load_tokenizer(pair.out / "discriminator")
    encoder, head = load_discriminator(pair.out / "discriminator")
    ids = torch.tensor([ids_of(tokenizer, TEXTS[0])])
    with torch.no_grad():
        logits = head(encoder.eval()(ids))[0, 1:-1]
    scorer = scorer_of(pair.out)
    assert scorer.by == "rtd"
    original = float((1 - logits.sigmoid()).log().sum())
    assert values(scorer, TEXTS[:1]) == pytest.approx([original], abs=1e-5)
    energy = replace(scorer, by="energy")
    assert values(energy, TEXTS[:1]) == pytest.approx([-float(logits.sum())], abs=1e-5)


@pytest.mark.parametrize("by", ["pll", "rtd"])
def test_a_score_depends_neither_on_the_company_nor_on_the_size_of_a_pass(pair, by, monkeypatch):
    scorer = scorer_of(pair.out, by)
    texts = [" ".join(text.split()[:n]) for text in TEXTS for n in range(1, 8)]
    alone = [values(scorer, [text])[0] for text in texts]
    assert values(scorer, texts) == pytest.approx(alone, abs=1e-5)
    monkeypatch.setitem(score.TOKENS_PER_PASS, "cpu", 17)
    assert values(scorer, texts) == pytest.approx(alone, abs=1e-5)


def test_equal_tokens_have_equal_scores_and_are_scored_once(pair, monkeypatch):
    sizes = []
    original = score.score_batch

    def score_batch(scorer, ids, budget):
        sizes.append(len(ids))
        return original(scorer, ids, budget)

    monkeypatch.setattr(score, "score_batch", score_batch)
    first, other, again = score_texts(scorer_of(pair.out), ["a cat", "a dog", "a   cat"])
    assert first == again
    assert first.windows != other.windows
    assert sum(sizes) == 2


def test_a_long_text_is_the_sum_of_its_windows(pair):
    words = ["the", "cat", "sees", "a", "dog", "one", "two"]
    scorer = scorer_of(pair.out, "pll", length=5)
    whole, *parts = score_texts(scorer, [" ".join(words), "the cat sees", "a dog one", "two"])
    assert (whole.num_tokens, len(whole.windows)) == (7, 3)
    assert whole.value == pytest.approx(sum(part.value for part in parts), abs=1e-9)


def test_the_default_length_is_that_of_the_run_and_a_longer_one_is_refused(pair):
    assert scorer_of(pair.out).length == 24
    assert scorer_of(pair.out, length=130).length == 130
    for length in (2, 131):
        with pytest.raises(UserError, match=f"length is {length}, but .* 130 at most"):
            scorer_of(pair.out, length=length)


def test_a_text_without_a_token_keeps_its_place_without_a_score(pair):
    scores = score_texts(scorer_of(pair.out), ["", "a cat", "\x00\ufeff"])
    assert scores[0] == scores[2] == Score(None, 0, ())
    assert scores[1].num_tokens == 2
    assert score_texts(scorer_of(pair.out), []) == []


def test_the_name_of_a_special_token_is_plain_text(pair):
    (named,) = score_texts(scorer_of(pair.out), ["a [MASK] cat"])
    assert named.num_tokens > 3  # [, M, A, ... or their [UNK]


def test_rows_without_a_token_get_no_probability(pair, tmp_path):
    pad_tables(pair.out, tmp_path, num_more=8)
    expected = values(scorer_of(pair.out, "pll"), TEXTS)
    assert values(scorer_of(tmp_path, "pll"), TEXTS) == pytest.approx(expected, abs=1e-4)


def test_a_score_that_the_model_lacks_is_refused(pair, mlm, tmp_path):
    for path, by, ways in (
        (mlm.out, "rtd", "set it to pll,"),
        (pair.out, "energy", "set it to rtd or pll,"),
    ):
        with pytest.raises(UserError, match=f"by is {by}, but .*{ways}"):
            scorer_of(path, by)


@pytest.mark.parametrize("objective", ["electric", "replace_mlm", "all_tokens_mlm"])
def test_one_pass_over_the_text_gives_the_score(tmp_path, objective):
    out = train_small(tmp_path / "made", objective=objective).out
    opened = open_model(out)
    found = values(scorer_of(out), TEXTS[:1])
    ids = torch.tensor([cut(opened, TEXTS[0])])
    with torch.no_grad():
        hidden = opened.encoder.eval()(ids)[0, 1:-1]  # (T, D)
        if objective == "electric":
            assert ways_to_score(opened) == ("energy",)
            expected = -opened.rtd_head(hidden[None]).sum()
        else:
            assert ways_to_score(opened)[0] == "naming"
            scores = opened.vocabulary_head(hidden, opened.encoder.embeddings.table)
            scores[:, special_rows(opened)] = -torch.inf
            chances = scores.softmax(-1).gather(1, ids[0, 1:-1, None])[:, 0]
            if opened.copy_gate is not None:
                copied = opened.copy_gate(hidden).sigmoid()
                chances = copied + (1 - copied) * chances
            expected = chances.log().sum()
    assert found == [pytest.approx(float(expected), abs=1e-4)]


def cut(opened: OpenedModel, text: str) -> list[int]:
    """The ids of a text of one window."""
    length, form = opened.trained_with.batch.length, opened.trained_with.unicode_form
    (piece,) = cut_texts([text], opened.tokenizer, length=length, unicode_form=form)
    return piece.ids


def special_rows(opened: OpenedModel) -> list[int]:
    """Rows that never stand in a text."""
    vocabulary = vocabulary_of(
        opened.tokenizer, CPU.device, num_rows=opened.encoder.config.vocab_size
    )
    return vocabulary.forbidden_ids.tolist()


def test_a_score_that_is_no_number_stops_the_command(pair):
    scorer = scorer_of(pair.out)
    with torch.no_grad():
        scorer.opened.rtd_head.classifier.bias.fill_(math.nan)
    with pytest.raises(RunError, match="no number"):
        score_texts(scorer, TEXTS)


def test_two_processes_share_the_work_and_return_the_same(pair, monkeypatch):
    expected = values(scorer_of(pair.out), TEXTS)
    shares = {}
    for rank in (1, 0):

        def gather(self, value, rank=rank):
            shares[rank] = value
            return [shares.get(0, [0.0] * 4), shares[1]]

        monkeypatch.setattr(Process, "gather", gather)
        found = values(scorer_of(pair.out, process=replace(CPU, rank=rank, num_ranks=2)), TEXTS)
    assert [len(shares[0]), len(shares[1])] == [2, 2]
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_work_that_is_done_is_told_up_to_its_end(pair, monkeypatch):
    monkeypatch.setitem(score.TOKENS_PER_PASS, "cpu", 8)
    told = []
    score_texts(scorer_of(pair.out), TEXTS, on_progress=told.append)
    assert told == sorted(told)
    assert len(told) == 5
    assert (told[0], told[-1]) == (0.0, 1.0)
