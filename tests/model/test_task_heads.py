"""Heads for tasks: where each one looks, how the official ones score, and how new ones start."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from networks import BERT, MODERN, batch, random_encoder, randomize
from torch import nn

from amber.errors import UserError
from amber.model.init import initialize
from amber.model.joint_answers import UNSEEN, JointAnswerHead, JointScores, joint_loss
from amber.model.task_heads import OfficialHead, TaskHead, TaskModel, mean_state
from amber.model.task_shape import TaskKind, TaskShape

LABELS = ("no", "perhaps", "yes")
KINDS: list[tuple[TaskKind, tuple[str, ...], tuple[int, ...]]] = [
    ("classification", LABELS, (2, 3)),
    ("multilabel", LABELS, (2, 3)),
    ("regression", (), (2, 1)),
    ("tagging", LABELS, (2, 12, 3)),
    ("qa", (), (2, 12, 2)),
]
STATES = torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(1))
CONTEXT = torch.tensor([[False, False, True, True, True, False], [False, True, True] + 3 * [False]])


def joint_head() -> JointAnswerHead:
    head = JointAnswerHead(BERT)
    randomize(head)
    return head


def concatenated_ends(head: JointAnswerHead, row: int, start: int) -> torch.Tensor:
    """Scores of the ends by the formula as it is written: both vectors joined."""
    states = STATES[row]
    joined = torch.cat([states[start].expand_as(states), states], dim=-1)  # (T, 2 D)
    return head.end(nn.functional.gelu(head.end_dense(joined))).squeeze(-1)


def test_the_mean_leaves_out_padding():
    states = torch.tensor([[[1.0], [3.0], [100.0]]])
    assert mean_state(states, torch.tensor([[True, True, False]])).tolist() == [[2.0]]
    assert mean_state(states[:, :2], None).tolist() == [[2.0]]


def test_the_official_head_is_one_layer_on_cls_or_on_each_token():
    text = OfficialHead(BERT, TaskShape(model_type="electra", kind="regression", head="official"))
    shape = TaskShape(model_type="electra", kind="tagging", labels=LABELS, head="official")
    tags = OfficialHead(BERT, shape)
    for head in (text, tags):
        assert [name for name, _ in head.named_parameters()] == ["logits.weight", "logits.bias"]
    assert text.eval()(STATES, None).equal(text.logits(STATES[:, 0]))
    assert tags.train()(STATES, None).equal(tags.logits(STATES))


def test_the_official_head_drops_a_tenth_of_cls():
    shape = TaskShape(model_type="electra", kind="regression", head="official")
    head = OfficialHead(replace(BERT, hidden_size=1000), shape).train()
    with torch.no_grad():
        head.logits.weight.fill_(1.0)
        head.logits.bias.zero_()
        torch.manual_seed(0)
        kept = head(torch.ones(50, 1, 1000), None) * 0.9 / 1000  # share of elements kept
    assert kept.mean().item() == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("config", [BERT, MODERN])
def test_a_network_gives_one_row_of_scores_per_text_or_token(config):
    ids, mask, types = batch(config)
    model_type = "electra" if config.body == "bert" else "modernbert"
    for head in ("hugging_face", "official"):
        for kind, labels, shape in KINDS:
            task = TaskShape(model_type=model_type, kind=kind, labels=labels, head=head)
            model = TaskModel(random_encoder(config), task)
            initialize(model.head, config, seed=1)
            scores = model.eval()(ids, mask, types)
            assert scores.shape == shape
            # with 5 of 12 tokens of padding: nothing that is read changes but by rounding
            short = model(ids[1:, :7], None, types[1:, :7])
            rows = scores[1:] if task.is_text else scores[1:, :7]
            torch.testing.assert_close(short, rows, atol=1e-5, rtol=1e-5)


def test_the_end_depends_on_the_joined_vectors():
    head = joint_head()
    scores = head.given_start(STATES, CONTEXT, torch.tensor([3, 0]))
    can_be = CONTEXT.clone()
    can_be[:, 0] = True
    for row, start in ((0, 3), (1, 0)):
        expected = concatenated_ends(head, row, start)
        seen = can_be[row]
        # the two halves are summed in another order than the joined product
        torch.testing.assert_close(scores.end[row][seen], expected[seen], atol=1e-4, rtol=1e-4)
        assert (scores.end[row][~seen] == UNSEEN).all()
        assert (scores.start[row][~seen] == UNSEEN).all()
        assert scores.start[row][seen].equal(head.start(STATES[row]).squeeze(-1)[seen])


def test_no_answer_is_read_from_cls_and_the_likely_starts():
    head = joint_head()
    scores = head.given_start(STATES, CONTEXT, torch.tensor([3, 0]))
    chances = scores.start[0].softmax(-1)
    mean = torch.stack([chances[i] * STATES[0, i] for i in range(6)]).sum(0)
    joined = torch.cat([STATES[0, 0], mean])
    expected = head.no_answer(nn.functional.gelu(head.no_answer_dense(joined)))[0]
    torch.testing.assert_close(scores.no_answer[0], expected, atol=1e-4, rtol=1e-4)


def test_the_search_finds_the_likeliest_pairs():
    head = joint_head()
    with torch.no_grad():  # scores of about 1, so that many pairs have a chance
        for layer in (head.start, head.end):
            layer.weight.mul_(0.1)
    spans = head.search(STATES, CONTEXT)
    row = 0
    start_chances = head.start_scores(STATES, CONTEXT | (torch.arange(6) == 0))[row].log_softmax(-1)
    places = [0, 2, 3, 4]
    expected = {}
    for start in places:
        ends = concatenated_ends(head, row, start)[places].log_softmax(-1)
        for end, chance in zip(places, ends, strict=True):
            expected[start, end] = (start_chances[start] + chance).item()
    best = sorted(expected, key=lambda pair: -expected[pair])
    found = list(zip(spans.start[row].tolist(), spans.end[row].tolist(), strict=True))
    assert len(found) == len(set(found)) == 36
    assert found[:16] == best
    chances = spans.log_chance[row].tolist()
    assert chances[:16] == pytest.approx([expected[pair] for pair in best], abs=1e-4)
    assert all(a >= b for a, b in itertools.pairwise(chances))
    assert max(chances[16:]) < UNSEEN / 2


def test_a_narrow_beam_is_the_start_of_greedy_choice():
    head = joint_head()
    one = head.search(STATES, CONTEXT, beam_size=1)
    assert one.start.shape == (2, 1)
    can_be = CONTEXT | (torch.arange(6) == 0)
    scores = head(STATES, can_be)
    assert one.start[:, 0].equal(scores[..., 0].argmax(1))
    assert one.end[:, 0].equal(scores[..., 1].argmax(1))


def test_the_joint_loss_is_half_of_start_and_end_and_half_of_no_answer():
    scores = JointScores(
        start=torch.tensor([[0.0, 0.0]]),
        end=torch.tensor([[0.0, math.log(3.0)]]),
        no_answer=torch.tensor([0.0]),
    )
    one = torch.tensor([1])
    loss = joint_loss(scores, one, one, torch.tensor([False]))
    expected = (math.log(2) - math.log(0.75)) / 2 + 0.5 * math.log(2)
    assert loss.tolist() == pytest.approx([expected])
    without = joint_loss(scores, one, one, torch.tensor([False]), no_answer_weight=0.0)
    assert without.tolist() == pytest.approx([expected - 0.5 * math.log(2)])


def test_new_heads_of_transformers_start_small_and_official_ones_by_glorot():
    config = replace(MODERN, hidden_size=128, embedding_size=128, initial_scale=1.0)
    shape = TaskShape(model_type="modernbert", kind="classification", labels=LABELS)
    head = TaskHead(config, shape)
    initialize(head, config, seed=1)
    assert head.dense is not None
    assert 0.03 < head.output.weight.abs().max() <= 0.04  # cut at two deviations of 0.02
    assert 0.15 < head.dense.weight.abs().max() <= 2 * 128**-0.5
    official = nn.ModuleList([OfficialHead(config, shape), JointAnswerHead(config)])
    initialize(official, config, seed=1)
    for name, weight in official.named_parameters():
        if name.endswith("weight"):
            bound = math.sqrt(6 / sum(weight.shape))
            assert 0.9 * bound < weight.abs().max() <= bound, name
        else:
            assert not weight.any(), name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "classification", "labels": ("a",)}, "takes at least 2 labels, got 1"),
        ({"kind": "tagging"}, "takes at least 1 labels, got 0"),
        ({"kind": "qa", "labels": ("a",)}, "takes no labels, got 1"),
        ({"kind": "classification", "labels": ("a", "b", "a")}, "'a' is listed more than once"),
        ({"kind": "regression", "dropout": 1.0}, r"in \[0, 1\), got 1.0"),
        ({"kind": "regression", "pooling": "mean"}, "pooling = mean has no effect"),
        ({"kind": "qa", "pooling": "mean", "model_type": "modernbert"}, "has no effect"),
    ],
)
def test_a_head_that_cannot_be_is_refused(settings, message: str):
    with pytest.raises(UserError, match=message):
        TaskShape(**({"model_type": "electra"} | settings))
