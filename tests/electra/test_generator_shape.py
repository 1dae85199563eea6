"""The sizes of the published generators, and odd ones by a stated rule."""

from dataclasses import replace

import pytest

from amber.electra.config import GeneratorConfig, LossConfig, NoiseConfig, generator_shape
from amber.errors import UserError
from amber.model.config import EncoderConfig


def bert(hidden: int, heads: int, *, layers: int = 12) -> EncoderConfig:
    """A BERT shape with a feed-forward layer of 4 times the width."""
    return EncoderConfig(
        body="bert",
        vocab_size=100,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        embedding_size=128,
        type_vocab_size=2,
    )


@pytest.mark.parametrize(
    ("hidden", "heads", "fraction", "width", "num_heads"),
    [
        (256, 4, 0.25, 64, 1),  # ELECTRA-Small by table 6
        (256, 4, 0.5, 128, 2),  # by its compute
        (256, 4, 1.0, 256, 4),  # as released
        (768, 12, 1 / 3, 256, 4),  # Base
        (768, 12, 0.333333333, 256, 4),
        (1024, 16, 0.25, 256, 4),  # Large
        (192, 3, 1 / 3, 64, 1),
        (100, 1, 0.25, 25, 1),
        (100, 4, 0.25, 25, 1),
        (320, 5, 0.25, 80, 1),
    ],
)
def test_widths_heads_and_feed_forward(
    hidden: int, heads: int, fraction: float, width: int, num_heads: int
):
    main = bert(hidden, heads)
    found = generator_shape(main, GeneratorConfig(width_fraction=fraction))
    assert found == replace(
        main, hidden_size=width, num_attention_heads=num_heads, intermediate_size=4 * width
    )
    assert found.hidden_size % found.num_attention_heads == 0


@pytest.mark.parametrize(("fraction", "layers"), [(1.0, 6), (0.5, 3), (1 / 3, 2), (0.01, 1)])
def test_depths_are_rounded_and_at_least_one(fraction: float, layers: int):
    found = generator_shape(EncoderConfig(), GeneratorConfig(depth_fraction=fraction))
    assert found == replace(EncoderConfig(), num_hidden_layers=layers)


def test_a_width_that_its_heads_do_not_divide_is_refused_with_one_that_works():
    # 0.3 of 768 is 230, and 3 heads of 64 do not divide it; 3 * 64 / 768 = 0.25 does.
    with pytest.raises(UserError, match=r"width of 230, which 3 heads do not divide: try 0.25$"):
        generator_shape(bert(768, 12), GeneratorConfig(width_fraction=0.3))
    with pytest.raises(UserError, match="width of 0"):
        generator_shape(bert(100, 1), GeneratorConfig(width_fraction=0.001))


def test_the_modern_body_keeps_its_width():
    with pytest.raises(UserError, match="keep it at 1 and lower generator.depth_fraction"):
        generator_shape(EncoderConfig(), GeneratorConfig(width_fraction=0.5))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (GeneratorConfig, "width_fraction", 0.0),
        (GeneratorConfig, "depth_fraction", 2.5),
        (NoiseConfig, "temperature", 0.0),
        (LossConfig, "generator_weight", -1.0),
        (LossConfig, "discriminator_weight", -0.1),
    ],
)
def test_impossible_values_are_refused(kind: type, name: str, value: float):
    with pytest.raises(UserError, match=rf"\.{name} must be .*, got {value}"):
        kind(**{name: value})
