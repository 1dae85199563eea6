"""The two ways to attend agree; rotary positions turn as they should."""

import math

import pytest
import torch
import torch.nn.functional as F

from amber.model.attention import attend, attend_explicitly, rotary_table, rotate


def heads(*, seed: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, 7, 4, generator=rng).to(dtype).requires_grad_(True) for _ in range(3)]


MASK = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])


@pytest.mark.parametrize("has_mask", [True, False])
def test_the_explicit_way_equals_the_fused_one(has_mask: bool):
    outputs, gradients = [], []
    mask = MASK[:, None, None, :] if has_mask else None
    for way in ("explicit", "fused"):
        qkv = heads(seed=1)
        if way == "explicit":
            output = attend_explicitly(*qkv, mask)
        else:
            output = F.scaled_dot_product_attention(*qkv, attn_mask=mask)
        output.sin().sum().backward()
        outputs.append(output)
        gradients.append([x.grad for x in qkv])
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*gradients)


def test_short_bfloat16_on_a_cpu_takes_the_explicit_way_and_is_as_exact_as_its_scores():
    qkv = heads(seed=2, dtype=torch.bfloat16)
    output = attend(*qkv, MASK)
    assert output.equal(attend_explicitly(*qkv, MASK[:, None, None, :]))
    exact = attend(*[x.double() for x in qkv], MASK)
    # bfloat16 keeps 8 bits: scores of size 2 are off by 2 ** -8, weights and sums by 2 ** -9
    torch.testing.assert_close(output.double(), exact, atol=0.02, rtol=0.02)


def test_long_bfloat16_on_a_cpu_takes_the_fused_way():
    qkv = [x.repeat(1, 1, 74, 1) for x in heads(seed=2, dtype=torch.bfloat16)]  # 518 tokens
    assert attend(*qkv, None).equal(F.scaled_dot_product_attention(*qkv))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masked_tokens_have_no_influence(dtype: torch.dtype):
    query, key, value = (x.detach() for x in heads(seed=3, dtype=dtype))
    before = attend(query, key, value, MASK)
    key[1, :, 4:], value[1, :, 4:] = 50.0, -50.0
    assert attend(query, key, value, MASK).equal(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_without_any_real_token_looks_at_all(dtype: torch.dtype):
    qkv = heads(seed=4, dtype=dtype)
    mask = MASK.clone()
    mask[1] = False
    assert attend(*qkv, mask)[1].equal(attend(*qkv, torch.ones_like(mask))[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_to_the_left_equals_torch_s_causal_attention(dtype: torch.dtype):
    qkv, same = heads(seed=5, dtype=dtype), heads(seed=5, dtype=dtype)
    output = attend(*qkv, None, direction="left")
    expected = F.scaled_dot_product_attention(*same, is_causal=True)
    output.float().sin().sum().backward()
    expected.float().sin().sum().backward()
    # bfloat16 keeps 8 bits: see above
    tolerance = {"atol": 0.02, "rtol": 0.02} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(output, expected, **tolerance)
    gradients = [[x.grad for x in part] for part in (qkv, same)]
    torch.testing.assert_close(*gradients, **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_to_the_right_is_that_to_the_left_backwards(dtype: torch.dtype):
    qkv = [x.detach() for x in heads(seed=6, dtype=dtype)]
    found = attend(*qkv, None, direction="right")
    expected = attend(*[x.flip(2) for x in qkv], None, direction="left").flip(2)
    tolerance = {"atol": 0.02, "rtol": 0.02} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(found, expected, **tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_one_sided_attention_passes_over_padding(dtype: torch.dtype, direction: str):
    query, key, value = (x.detach() for x in heads(seed=7, dtype=dtype))
    found = attend(query, key, value, MASK, direction=direction)
    tolerance = {"atol": 0.02, "rtol": 0.02} if dtype == torch.bfloat16 else {}
    for row, length in enumerate((7, 4)):
        for t in range(length):
            side = slice(0, t + 1) if direction == "left" else slice(t, length)
            one = (row, slice(None), slice(t, t + 1))
            scores = query[one] @ key[row, :, side].transpose(1, 2) / 2.0  # 4 ** 0.5
            expected = scores.softmax(-1) @ value[row, :, side]
            torch.testing.assert_close(found[one], expected, **tolerance)
    assert found.isfinite().all()
    if direction == "right":  # padding sees no real token there: it looks at itself
        torch.testing.assert_close(found[1, :, 4:], value[1, :, 4:])
    key[1, :, 4:], value[1, :, 4:] = 50.0, -50.0
    again = attend(query, key, value, MASK, direction=direction)
    assert again[0].equal(found[0])
    assert again[1, :, :4].equal(found[1, :, :4])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("direction", ["left", "right"])
def test_a_row_without_any_real_token_is_finite_on_one_side_too(dtype: torch.dtype, direction: str):
    qkv = heads(seed=4, dtype=dtype)
    output = attend(*qkv, torch.zeros_like(MASK), direction=direction)
    output.float().sum().backward()
    assert output.isfinite().all()
    assert all(x.grad.isfinite().all() for x in qkv)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_keeps_the_expected_value(dtype: torch.dtype):
    torch.manual_seed(0)
    shape = (64, 1, 16, 4)
    query, key, value = torch.zeros(shape), torch.zeros(shape), torch.ones(shape)
    parts = [x.to(dtype) for x in (query, key, value)]
    output = attend(*parts, None, dropout=0.5).float()
    assert output.std() > 0.1
    # 64 * 16 rows of 16 weights, each 0 or 2/16: the mean's deviation is 1 / 128
    assert abs(output.mean().item() - 1.0) < 4 / 128


def test_rotary_pairs_are_the_two_halves_and_turn_by_their_angle():
    cos, sin = rotary_table(3, 4, theta=100.0, device=torch.device("cpu"))
    vectors = torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(3, 4)
    turned = rotate(vectors, cos, sin)
    assert turned[0].tolist() == [1.0, 2.0, 3.0, 4.0]
    for position in (1, 2):  # pair (1, 3) turns by 1 per position, pair (2, 4) by 100 ** -0.5
        a, b = position * 1.0, position * 0.1
        expected = [
            math.cos(a) - 3 * math.sin(a),
            2 * math.cos(b) - 4 * math.sin(b),
            3 * math.cos(a) + math.sin(a),
            4 * math.cos(b) + 2 * math.sin(b),
        ]
        torch.testing.assert_close(turned[position], torch.tensor(expected))
