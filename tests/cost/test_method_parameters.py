"""Which parameters each objective, noise source, algorithm and sharing has, counted by hand."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from amber.cost.method import Sharing
from amber.cost.parameters import FROZEN, parameter_counts
from amber.model.config import EncoderConfig

MAIN = EncoderConfig(
    body="bert",
    vocab_size=7,
    hidden_size=4,
    num_hidden_layers=2,
    num_attention_heads=1,
    intermediate_size=3,
    embedding_size=4,
    max_position_embeddings=5,
    type_vocab_size=2,
)
SMALL = replace(MAIN, hidden_size=2, num_hidden_layers=1)
OWN_WIDTH = replace(SMALL, embedding_size=2)
MODERN = replace(MAIN, body="modern", type_vocab_size=0)

TOKENS, PLACES = 7 * 4, (5 + 2 + 2) * 4  # positions, segments, the norm's weight and bias
LAYER = 4 * (16 + 4) + (12 + 3) + (12 + 4) + 4 * 4  # attention, up, down, two norms
SMALL_ENCODER = 4 * (4 + 2) + (6 + 3) + (6 + 2) + 4 * 2 + (8 + 2)  # the last: table to width 2
SMALL_HEAD = 2 * 4 + 3 * 4 + 7  # dense, its bias and the norm, a bias per token
BASE = {"embeddings": TOKENS + PLACES, "encoder": 2 * LAYER}
RTD = {"RTD head": 16 + 4 + 4 + 1}
GENERATOR = {"generator encoder": SMALL_ENCODER, "generator MLM head": SMALL_HEAD}


@pytest.mark.parametrize(
    ("objective", "heads"),
    [
        ("rtd", RTD),
        ("rtd_masked", RTD),
        ("electric", {"energy head": 25}),
        ("replace_mlm", {"MLM head": 16 + 12 + 7}),
        ("all_tokens_mlm", {"MLM head": 16 + 12 + 7, "copy gate": 5}),
    ],
)
def test_the_heads_of_each_objective(objective, heads):
    assert parameter_counts(MAIN, SMALL, objective=objective) == BASE | heads | GENERATOR
    alone = parameter_counts(MAIN, None, objective=objective, source="uniform")
    assert alone == BASE | heads


def test_the_masked_language_model_has_one_network():
    assert parameter_counts(MAIN, None, objective="mlm") == BASE | {"MLM head": 16 + 12 + 7}


@pytest.mark.parametrize(
    ("sharing", "main_has", "generator_has"),
    [
        ("embeddings", {}, {}),
        ("tokens", {}, {"generator positions, segments, norm": PLACES}),
        ("none", {}, {"generator embeddings": TOKENS + PLACES}),
        (
            "gdes",
            {"embeddings delta": TOKENS},
            {"generator positions, segments, norm": PLACES},
        ),
    ],
)
def test_what_is_not_shared_is_there_twice(sharing, main_has, generator_has):
    counts = parameter_counts(MAIN, SMALL, objective="rtd", sharing=sharing)
    assert counts == BASE | RTD | main_has | generator_has | GENERATOR


def test_tables_of_the_generators_own_have_its_width():
    counts = parameter_counts(MAIN, OWN_WIDTH, objective="rtd", sharing="none")
    assert counts["generator embeddings"] == (7 + 5 + 2 + 2) * 2
    assert counts["generator encoder"] == SMALL_ENCODER - (8 + 2)
    assert counts["generator MLM head"] == 2 * 2 + 3 * 2 + 7


def test_with_all_shared_the_generator_adds_its_head():
    counts = parameter_counts(MAIN, MAIN, objective="rtd", sharing="all")
    assert counts == BASE | RTD | {"generator MLM head": 16 + 12 + 7}
    with pytest.raises(ValueError, match="sharing all"):
        parameter_counts(MAIN, SMALL, objective="rtd", sharing="all")


def test_the_adversarial_generator_has_a_second_head():
    counts = parameter_counts(MAIN, SMALL, objective="rtd", algorithm="adversarial")
    assert counts == BASE | RTD | GENERATOR | {"generator baseline head": 3}


@pytest.mark.parametrize("sharing", get_args(Sharing))
def test_two_stages_have_two_networks_that_share_nothing(sharing: Sharing):
    counts = parameter_counts(MAIN, MAIN, objective="rtd", algorithm="two_stage", sharing=sharing)
    assert counts == BASE | RTD | {
        "generator embeddings": TOKENS + PLACES,
        "generator encoder": 2 * LAYER,
        "generator MLM head": 16 + 12 + 7,
    }


def test_a_frozen_network_is_counted_and_marked():
    counts = parameter_counts(MAIN, OWN_WIDTH, objective="rtd", source="frozen")
    frozen = {part: n for part, n in counts.items() if part.startswith(FROZEN)}
    assert {part: n for part, n in counts.items() if part not in frozen} == BASE | RTD
    assert frozen == {
        "frozen generator embeddings": 32,
        "frozen generator encoder": SMALL_ENCODER - 10,
        "frozen generator MLM head": 17,
    }


@pytest.mark.parametrize(
    ("sharing", "extra"),
    [
        ("embeddings", {}),
        ("tokens", {"tower positions, segments, norm": PLACES}),
        ("none", {"tower embeddings": TOKENS + PLACES}),
        ("gdes", {"embeddings delta": TOKENS, "tower positions, segments, norm": PLACES}),
    ],
)
def test_two_towers_are_two_encoders_with_one_set_of_tables(sharing, extra):
    counts = parameter_counts(
        MAIN, SMALL, objective="electric", source="two_tower", sharing=sharing
    )
    towers = {
        "tower encoders": 2 * SMALL_ENCODER,
        "tower vocabulary head": SMALL_HEAD + 2 * 4,  # two states are read
    }
    assert counts == BASE | {"energy head": 25} | extra | towers


def test_two_towers_are_not_the_main_encoder():
    with pytest.raises(ValueError, match="two towers"):
        parameter_counts(MAIN, MAIN, objective="rtd", source="two_tower", sharing="all")


def test_the_modern_body_has_no_places_and_no_biases_but_the_last():
    def count(**method: Any) -> dict[str, int]:
        return parameter_counts(MODERN, MODERN, objective="rtd", **method)

    assert count(sharing="tokens")["generator norm"] == 4
    assert count(sharing="none")["generator embeddings"] == 7 * 4 + 4
    assert count(source="two_tower")["tower vocabulary head"] == 2 * 16 + 4 + 7
