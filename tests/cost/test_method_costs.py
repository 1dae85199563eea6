"""What each objective, noise source and algorithm costs, on a shape small enough for paper."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from amber.cost.flops import (
    FlopsPerToken,
    flops_per_token,
    total,
    training_flops_per_sequence,
)
from amber.cost.method import Algorithm, Objective, Source, Stage
from amber.cost.published import BASE
from amber.model.config import EncoderConfig

TINY = EncoderConfig(  # one layer, two wide
    body="bert",
    vocab_size=5,
    hidden_size=2,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=3,
    embedding_size=2,
    type_vocab_size=2,
)
WIDER = replace(TINY, hidden_size=4, embedding_size=4)
BODY = 96 + 72 + 72  # of three tokens: projections 4 x 8 each, scores 24 each, feed-forward 24 each
RTD = 8 + 4  # a head at one position: a 2 x 2 product, one unit
MLM = 8 + 20  # a 2 x 2 product, five tokens
GATE = BASELINE = 4
TOWERS = 16 + 20  # a 4 x 2 product, five tokens

METHODS: list[dict[str, Any]] = [
    *({"objective": objective} for objective in get_args(Objective)),
    *({"objective": "rtd", "source": source} for source in get_args(Source)),
    *({"objective": "electric", "source": source} for source in get_args(Source)),
    {"objective": "rtd", "algorithm": "adversarial"},
    {"objective": "rtd", "algorithm": "two_stage", "stage": "generator"},
    {"objective": "rtd", "algorithm": "two_stage", "stage": "discriminator"},
    {"objective": "all_tokens_mlm", "includes_special": False},
]


def generator_of(method: dict[str, Any], shape: EncoderConfig) -> EncoderConfig | None:
    has_none = method["objective"] == "mlm" or method.get("source") in ("unigram", "uniform")
    return None if has_none else shape


def counts(
    *, length: int = 3, num_masked: int = 1, rule: Any = "standard", **method: Any
) -> dict[str, int]:
    """The heads' parts as they are, a network's other parts as one: forward."""
    costs = training_flops_per_sequence(
        TINY,
        generator_of(method, TINY),
        length=length,
        num_masked=num_masked,
        rule=rule,
        **method,
    )
    result: dict[str, int] = {}
    for name, cost in costs.items():
        is_head = cost.part.endswith(("head", "gate"))
        key = name if is_head else cost.network
        result[key] = result.get(key, 0) + cost.forward
    return result


GENERATOR = {"generator": BODY, "generator: MLM head": 2 * MLM}


@pytest.mark.parametrize(
    ("objective", "heads"),
    [
        ("rtd", {"RTD head": 3 * RTD}),  # every position
        ("rtd_masked", {"RTD head": 2 * RTD}),  # the two chosen ones
        ("replace_mlm", {"MLM head": 2 * MLM}),
        ("all_tokens_mlm", {"MLM head": 3 * MLM, "copy gate": 3 * GATE}),
        ("electric", {"energy head": 3 * RTD}),
    ],
)
def test_the_heads_of_each_objective(objective: Objective, heads: dict[str, int]):
    named = {f"discriminator: {head}": flops for head, flops in heads.items()}
    expected = GENERATOR | {"discriminator": BODY} | named
    assert counts(objective=objective, num_masked=2) == expected


def test_the_masked_language_model_is_alone():
    expected = {"encoder": BODY, "encoder: MLM head": 2 * MLM}
    assert counts(objective="mlm", num_masked=2) == expected


def test_all_tokens_without_the_special_ones_are_two_fewer():
    seen = counts(objective="all_tokens_mlm", includes_special=False, length=5)
    assert seen["discriminator: MLM head"] == 3 * MLM
    assert seen["discriminator: copy gate"] == 3 * GATE


@pytest.mark.parametrize("source", ["unigram", "uniform"])
def test_noise_from_a_list_costs_nothing(source: Source):
    expected = {"discriminator": BODY, "discriminator: RTD head": 3 * RTD}
    assert counts(objective="rtd", source=source) == expected


def test_two_towers_are_two_bodies_with_a_head_at_every_ordinary_position():
    expected = {
        "towers": 2 * BODY,
        "towers: vocabulary head": 1 * TOWERS,  # three tokens, two of them special
        "discriminator": BODY,
        "discriminator: energy head": 3 * RTD,
    }
    method: dict[str, Any] = {"objective": "electric", "source": "two_tower"}
    assert counts(**method) == expected
    assert counts(**method, num_masked=2) == expected
    assert counts(**method, num_ordinary=2)["towers: vocabulary head"] == 2 * TOWERS


def test_towers_with_tables_of_another_width():
    config = replace(TINY, embedding_size=4)
    costs = training_flops_per_sequence(
        TINY, config, length=3, num_masked=1, objective="rtd", source="two_tower"
    )
    assert costs["towers: embedding projection"].forward == 2 * 3 * 16
    assert costs["towers: vocabulary head"].forward == 2 * 4 * 4 + 2 * 4 * 5


def test_the_adversarial_algorithm_adds_one_unit_at_the_chosen_positions():
    joint = counts(objective="rtd", num_masked=2)
    adversarial = counts(objective="rtd", num_masked=2, algorithm="adversarial")
    assert adversarial == joint | {"generator: baseline head": 2 * BASELINE}


def test_the_two_stages_are_the_generator_alone_then_both_networks():
    first = counts(objective="rtd", algorithm="two_stage", stage="generator", num_masked=2)
    assert first == GENERATOR
    second = counts(objective="rtd", algorithm="two_stage", stage="discriminator", num_masked=2)
    assert second == counts(objective="rtd", num_masked=2)


def train_over_forward(rule: Any, **method: Any) -> dict[str, set[float]]:
    costs = training_flops_per_sequence(
        TINY, generator_of(method, WIDER), length=32, num_masked=5, rule=rule, **method
    )
    ratios: dict[str, set[float]] = {}
    for cost in costs.values():
        ratios.setdefault(cost.network, set()).add(cost.train / cost.forward)
    return ratios


@pytest.mark.parametrize(("rule", "factor"), [("standard", 3.0), ("paper", 2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_what_learns_has_a_backward_pass_and_what_does_not_has_none(rule, factor, method):
    is_frozen = method.get("source") == "frozen" or method.get("stage") == "discriminator"
    for network, ratios in train_over_forward(rule, **method).items():
        assert ratios == {1.0 if network == "generator" and is_frozen else factor}


@pytest.mark.parametrize("method", METHODS)
def test_the_four_numbers_give_the_cost_of_each_sequence_at_its_own_length(method):
    generator = generator_of(method, WIDER)
    cost = flops_per_token(TINY, generator, **method)
    sequences = [(16, 2, 13), (7, 1, 5), (3, 1, 1)]  # length, masked, ordinary
    expected = sum(
        total(
            training_flops_per_sequence(
                TINY, generator, length=n, num_masked=k, num_ordinary=m, **method
            )
        ).train
        for n, k, m in sequences
    )
    sums = {"num_tokens": 26, "squares": 256 + 49 + 9, "num_masked": 4, "num_ordinary": 19}
    assert cost.total(**sums) == expected


def test_the_four_numbers_by_hand():
    cost = flops_per_token(TINY, TINY, objective="electric", source="two_tower")
    body = 32 + 24  # without the scores, which are 8 for each pair of tokens
    assert cost == FlopsPerToken(
        per_token=3 * (3 * body + RTD), per_square=3 * 3 * 8, per_masked=0, per_ordinary=3 * TOWERS
    )
    cost = flops_per_token(TINY, TINY, objective="all_tokens_mlm", includes_special=False)
    assert cost == FlopsPerToken(
        per_token=3 * 2 * body,
        per_square=3 * 2 * 8,
        per_masked=3 * MLM,
        per_ordinary=3 * (MLM + GATE),
    )


def train(rule: Any, **method: Any) -> int:
    costs = training_flops_per_sequence(
        WIDER, generator_of(method, TINY), length=64, num_masked=10, rule=rule, **method
    )
    return total(costs).train


@pytest.mark.parametrize("rule", ["standard", "paper"])
def test_more_work_costs_more(rule):
    assert train(rule, objective="rtd_masked") < train(rule, objective="rtd")
    assert train(rule, objective="electric") == train(rule, objective="rtd")
    assert train(rule, objective="replace_mlm") < train(rule, objective="all_tokens_mlm")
    prices = [train(rule, objective="rtd", source=s) for s in ("uniform", "frozen", "generator")]
    assert prices == sorted(set(prices))
    towers = train(rule, objective="rtd", source="two_tower")
    assert towers > train(rule, objective="rtd", algorithm="adversarial") > prices[-1]


def test_the_heads_by_the_papers_rule():
    # Of 32 positions 5 are counted as chosen. One position: vocabulary 20 + 8 + 14 x 2 + 7 x 5;
    # binary 8 + 9 x 2 + 4; one unit 4; towers 8 more than the vocabulary.
    def heads(**method: Any) -> dict[str, int]:
        seen = counts(length=32, num_masked=1, rule="paper", **method)
        return {name.partition(": ")[2]: n for name, n in seen.items() if ": " in name}

    mlm = {"MLM head": 5 * 91}
    assert heads(objective="rtd") == mlm | {"RTD head": 32 * 30}
    assert heads(objective="rtd_masked") == mlm | {"RTD head": 5 * 30}
    assert heads(objective="mlm") == mlm
    assert heads(objective="replace_mlm", source="uniform") == mlm
    all_tokens = {"MLM head": 32 * 91, "copy gate": 32 * 4}
    assert heads(objective="all_tokens_mlm", source="uniform") == all_tokens
    towers = {"vocabulary head": 32 * 99, "energy head": 32 * 30}
    assert heads(objective="electric", source="two_tower") == towers
    adversarial = {"baseline head": 5 * 4, "RTD head": 32 * 30}
    assert heads(objective="rtd", algorithm="adversarial") == mlm | adversarial


def test_two_towers_are_two_bodies_by_the_papers_rule():
    one = counts(length=32, rule="paper", objective="rtd")["generator"]
    two = counts(length=32, rule="paper", objective="rtd", source="two_tower")["towers"]
    assert two == 2 * one


def test_two_stage_training_of_the_papers_base_size_branches_where_its_figure_3_does():
    base = EncoderConfig(
        body="bert",
        vocab_size=30_522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        embedding_size=768,
        type_vocab_size=2,
    )

    def step(generator: EncoderConfig | None, **method: Any) -> int:
        costs = training_flops_per_sequence(
            base, generator, length=BASE.length, num_masked=77, rule="paper", **method
        )
        return 256 * total(costs).train

    stages: tuple[Stage, ...] = ("generator", "discriminator")
    first, second = (
        step(base, objective="rtd", algorithm="two_stage", stage=stage) for stage in stages
    )
    bert = 1_000_000 * step(None, objective="mlm")
    assert bert == pytest.approx(6.428335104e19, rel=1e-15)
    assert round(bert / (first + second)) == 404_191
    assert 404_191 * first == pytest.approx(2.59827e19, abs=1e14)  # its last digit
    assert 404_191 * (first + second) == pytest.approx(bert, rel=1e-5)


WRONG: list[tuple[EncoderConfig | None, dict[str, Any], str]] = [
    (TINY, {"objective": "mlm"}, "mlm objective has no generator"),
    (None, {"objective": "mlm", "source": "unigram"}, "mlm objective has no noise"),
    (TINY, {"objective": "rtd", "source": "uniform"}, "uniform has no network, got one"),
    (None, {"objective": "rtd"}, "generator is a network, got none"),
    (TINY, {"objective": "rtd", "algorithm": "two_stage"}, "no step of the stage both"),
    (TINY, {"objective": "rtd", "stage": "generator"}, "no step of the stage generator"),
    (
        TINY,
        {"objective": "rtd", "algorithm": "adversarial", "source": "frozen"},
        "adversarial training needs the source generator",
    ),
]


@pytest.mark.parametrize(("generator", "method", "message"), WRONG)
def test_choices_that_name_no_training_are_refused(generator, method, message):
    with pytest.raises(ValueError, match=message):
        training_flops_per_sequence(TINY, generator, length=3, num_masked=1, **method)


def test_every_algorithm_is_counted_here():
    seen = {method.get("algorithm", "joint") for method in METHODS}
    assert seen == set(get_args(Algorithm))
