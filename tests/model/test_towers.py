"""Two towers predict each token from all the others, and from nothing of itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from networks import BERT, MODERN, batch, randomize

from amber.cost.parameters import (
    embedding_parameters,
    encoder_parameters,
    mlm_head_parameters,
)
from amber.model.attention import SDPA_LENGTH
from amber.model.config import EncoderConfig
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.towers import TwoTowers

SHAPES = {"bert": BERT, "modern": MODERN, "bert of one width": replace(BERT, embedding_size=16)}


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> EncoderConfig:
    return SHAPES[request.param]


def random_towers(shape: EncoderConfig) -> TwoTowers:
    towers = TwoTowers(shape, Embeddings(shape))
    randomize(towers)
    return towers


def text(shape: EncoderConfig, length: int = 12) -> tuple[torch.Tensor, ...]:
    """Ids, mask and segments; all but the ends of each row and the padding are ordinary."""
    ids, mask, types = batch(shape, length)
    is_ordinary = mask.clone()
    is_ordinary[:, 0] = is_ordinary[0, -1] = is_ordinary[1, -6] = False
    return ids, mask, types, is_ordinary


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Float32, or bfloat16 as in training on a CPU."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=name == "bfloat16"):
        yield


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_prediction_depends_on_all_other_real_tokens_and_not_on_its_own(
    shape: EncoderConfig, name: str
):
    # One row per change: first each of the 12 tokens of the first text, then the 7 of the other.
    towers = random_towers(shape)
    parts = text(shape)
    of = torch.tensor([0] * 12 + [1] * 7)
    changed = torch.tensor([*range(12), *range(7)])
    ids, mask, types, is_ordinary = (part[of] for part in parts)
    other = ids.clone()
    at = torch.arange(19), changed
    other[at] = 5 + (ids[at] + 3) % 30
    row, place = is_ordinary.nonzero(as_tuple=True)
    with torch.no_grad(), precision(name):
        before = towers(ids, mask, types, is_ordinary)
        after = towers(other, mask, types, is_ordinary)
    assert before.shape == (len(row), shape.vocab_size)
    is_same, is_itself = (after == before).all(dim=-1), place == changed[row]
    assert int(is_itself.sum()) == 10 + 5
    assert is_same[is_itself].all()
    if name == "float32":
        assert not is_same[~is_itself].any()
    else:  # a small change may be lost in 8 bits
        assert is_same[~is_itself].float().mean() < 0.2


def test_padding_has_no_influence_and_can_be_cut_off(shape: EncoderConfig):
    towers = random_towers(shape)
    ids, mask, types, is_ordinary = text(shape)
    with torch.no_grad():
        before = towers(ids, mask, types, is_ordinary)
        other = ids.masked_fill(~mask, 9)
        assert torch.equal(towers(other, mask, types, is_ordinary), before)
        short = [part[1:, :7] for part in (ids, mask, types, is_ordinary)]
        expected = before[int(is_ordinary[0].sum()) :]
        torch.testing.assert_close(towers(*short), expected, atol=1e-5, rtol=1e-5)
        short[1] = None  # no padding, no mask
        torch.testing.assert_close(towers(*short), expected, atol=1e-5, rtol=1e-5)


def test_each_tower_is_blind_to_one_side(shape: EncoderConfig):
    towers = random_towers(shape)
    ids, mask, types, _ = text(shape)
    other = ids.clone()
    other[:, 5] = 5 + (ids[:, 5] + 3) % 30
    with torch.no_grad():
        for tower, is_blind in ((towers.left, slice(0, 5)), (towers.right, slice(6, 7))):
            before, after = tower(ids, mask, types), tower(other, mask, types)
            is_same = (before == after).all(dim=-1)
            assert is_same[:, is_blind].all()
            seeing = slice(5, 7) if tower is towers.left else slice(0, 6)
            assert not is_same[:, seeing].any()


def test_scores_are_those_of_the_states_before_and_after_in_order(shape: EncoderConfig):
    towers = random_towers(shape)
    ids, mask, types, is_ordinary = text(shape)
    with torch.no_grad():
        found = towers(ids, mask, types, is_ordinary)
        before, after = towers.left(ids, mask, types), towers.right(ids, mask, types)
        place = 0
        for row, column in is_ordinary.nonzero().tolist():
            states = torch.cat([before[row, column - 1], after[row, column + 1]])
            x = towers.norm(F.gelu(towers.dense(states)))
            expected = towers.left.embeddings.token.weight @ x + towers.bias
            torch.testing.assert_close(found[place], expected, atol=1e-5, rtol=1e-5)
            place += 1
    assert place == len(found)


@pytest.mark.parametrize("direction", ["left", "right"])
def test_a_tower_is_an_encoder_that_looks_at_one_side(shape: EncoderConfig, direction: str):
    # What it says at a place equals what an encoder that looks at both sides says of that side
    # alone; in the first layer's terms the places stay the same, so only the left can be cut.
    towers = random_towers(shape)
    tower = towers.left if direction == "left" else towers.right
    both = Encoder(shape, Embeddings(shape))
    both.load_state_dict(tower.state_dict())
    ids, mask, types, _ = text(shape)
    mask = torch.ones_like(mask)
    with torch.no_grad():
        found = tower(ids, mask, types)
        end = 0 if direction == "left" else -1  # the end sees itself alone
        alone = torch.zeros_like(mask)
        alone[:, end] = True
        torch.testing.assert_close(found[:, end], both(ids, alone, types)[:, end])


def test_the_plain_way_and_the_fused_way_agree(shape: EncoderConfig):
    # The first 20 of 512 tokens, right tower aside: with the rest as padding, the long sequence
    # goes through the fused attention and the short one through three plain steps.
    shape = replace(shape, max_position_embeddings=SDPA_LENGTH)
    towers = random_towers(shape).bfloat16()
    ids, mask, types, is_ordinary = text(shape, 20)
    longer = [F.pad(part, (0, SDPA_LENGTH - 20)) for part in (ids, mask, types, is_ordinary)]
    with torch.no_grad():
        short = towers(ids, mask, types, is_ordinary).float()
        long = towers(*longer).float()
        exact = towers.float()(ids, mask, types, is_ordinary)
    error = (exact - short).abs().max()
    assert (long - short).abs().max() < 3 * error  # of bfloat16, in both ways
    assert error < 0.05 * exact.abs().max()


def test_no_ordinary_tokens_give_no_scores(shape: EncoderConfig):
    towers = random_towers(shape)
    ids, mask, types, is_ordinary = text(shape)
    scores = towers(ids, mask, types, torch.zeros_like(is_ordinary))
    assert scores.shape == (0, shape.vocab_size)
    scores.sum().backward()
    assert all(p.grad is not None for p in towers.parameters())


def test_there_are_as_many_parameters_as_the_cost_model_says(shape: EncoderConfig):
    towers = random_towers(shape)
    assert sum(p.numel() for p in towers.parameters()) == (
        embedding_parameters(shape)
        + 2 * encoder_parameters(shape)
        + mlm_head_parameters(shape, num_inputs=2)
    )
    assert towers.left.embeddings is towers.right.embeddings
