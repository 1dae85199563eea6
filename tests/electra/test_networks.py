"""What the two networks share is one tensor; a table and a difference make a table."""

import copy
import itertools

import pytest
import torch
from pairs import (
    COMBINATIONS,
    TOWERS,
    gradients,
    hide,
    losses,
    make_batch,
    make_model,
    randomize,
    shape_of,
    small_shape,
)

from amber.cost.flops import training_flops_per_sequence
from amber.cost.parameters import parameter_counts
from amber.electra.config import GeneratorConfig, Method, NoiseConfig, generator_shape
from amber.electra.networks import build_networks, plain, set_table
from amber.electra.pretraining import PretrainingModel
from amber.model.embeddings import Embeddings
from amber.model.encoder import Encoder
from amber.model.towers import TwoTowers

SHARED = {
    "embeddings": {"token", "position", "token_type", "norm"},
    "tokens": {"token"},
    "none": set(),
    "gdes": set(),
}


def tables_of(network: Encoder | TwoTowers) -> Embeddings:
    return network.left.embeddings if isinstance(network, TwoTowers) else network.embeddings


def state(model: PretrainingModel) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


@pytest.mark.parametrize("noise", [NoiseConfig(), TOWERS], ids=["generator", "towers"])
@pytest.mark.parametrize("sharing", SHARED)
def test_what_is_shared_is_the_same_object_and_nothing_else_is(
    body: str, sharing: str, noise: NoiseConfig
):
    model = make_model(body, sharing=sharing, noise=noise)
    ours, theirs = model.encoder.embeddings, tables_of(model.generator)
    for name in ("token", "position", "token_type", "norm"):
        one, other = getattr(ours, name, None), getattr(theirs, name, None)
        if one is not None and other is not None:
            assert (one.weight is other.weight) == (name in SHARED[sharing]), name
    shared = set(map(id, model.encoder.parameters())) & set(map(id, model.generator.parameters()))
    is_bert = body == "bert"
    weights = {"embeddings": 5 if is_bert else 2, "tokens": 1, "none": 0, "gdes": 0}
    assert len(shared) == weights[sharing]
    if sharing == "gdes":
        assert ours.base[0] is theirs.token
        assert not hasattr(ours, "token")


def test_two_towers_have_one_set_of_tables_in_every_mode(body: str):
    for sharing in SHARED:
        towers = make_model(body, sharing=sharing, noise=TOWERS).generator
        assert towers.left.embeddings is towers.right.embeddings
        own = [id(p) for p in (*towers.left.layers.parameters(), *towers.right.layers.parameters())]
        assert len(own) == len(set(own))


@pytest.mark.parametrize("name", COMBINATIONS)
def test_every_weight_has_one_name_and_a_copy_and_a_load_keep_what_is_shared(name: str):
    model = make_model("bert", **COMBINATIONS[name])
    randomize(model)
    weights = [id(p) for _, p in model.named_parameters()]
    assert len(weights) == len(set(weights))
    loaded = make_model("bert", seed=5, **COMBINATIONS[name])
    loaded.load_state_dict(model.state_dict())
    batch = make_batch([30, 12], width=32)
    expected = [loss.item() for loss in losses(model(batch, hide(batch)))]
    for other in (loaded, copy.deepcopy(model)):
        assert state(other).keys() == state(model).keys()
        assert all(torch.equal(state(other)[n], w) for n, w in state(model).items())
        assert [loss.item() for loss in losses(other(batch, hide(batch)))] == expected
        assert not set(map(id, other.parameters())) & set(weights)


def test_a_copied_pair_with_a_difference_follows_its_own_base(body: str):
    model = copy.deepcopy(make_model(body, sharing="gdes"))
    assert model.encoder.embeddings.base[0] is model.generator.embeddings.token
    with torch.no_grad():
        model.generator.embeddings.token.weight += 1.0
    assert torch.equal(model.encoder.embeddings.table, model.generator.embeddings.table)


def test_a_difference_starts_at_zero(body: str):
    model = make_model(body, sharing="gdes")
    assert not model.encoder.embeddings.delta.weight.any()
    assert torch.equal(model.encoder.embeddings.table, model.generator.embeddings.table)
    assert model.generator.embeddings.table.any()


def test_with_a_difference_both_networks_move_the_discriminator_s_table(body: str):
    # One step of the whole loss: the base by the generator's gradient, the sum by both.
    model = make_model(body, sharing="gdes")
    batch = make_batch([40, 64], width=64)
    before = state(model)
    found = gradients(model, sum(losses(model(batch, hide(batch)))))
    base, delta = "generator.embeddings.token.weight", "encoder.embeddings.delta.weight"
    with torch.no_grad():
        model.generator.embeddings.token.weight -= 0.1 * found[base]
        model.encoder.embeddings.delta.weight -= 0.1 * found[delta]
    moved = model.encoder.embeddings.table.detach() - before[base]
    torch.testing.assert_close(moved, -0.1 * (found[base] + found[delta]), atol=1e-6, rtol=1e-5)


def gdes_tables(vocab: int, *, base: float, delta: float, seed: int) -> Embeddings:
    """Tables with a random base and a random difference of some sizes."""
    shape = generator_shape(shape_of("modern"), GeneratorConfig())
    rng = torch.Generator().manual_seed(seed)
    theirs = Embeddings(shape)
    ours = Embeddings(shape, base=theirs.token)
    with torch.no_grad():
        size = theirs.token.weight.shape
        theirs.token.weight.copy_(torch.randn(size, generator=rng) * base)
        ours.delta.weight.copy_(torch.randn(size, generator=rng) * delta)
    return ours


@pytest.mark.parametrize(
    ("base", "delta"), list(itertools.product([1e-6, 1e-2, 1.0, 1e3], repeat=2))
)
def test_a_table_that_was_a_sum_comes_back_to_the_last_bit(base: float, delta: float):
    for seed in range(3):
        embeddings = gdes_tables(40, base=base, delta=delta, seed=seed)
        table = embeddings.table.detach().clone()
        with torch.no_grad():
            embeddings.delta.weight.zero_()
        set_table(embeddings, table)
        assert torch.equal(embeddings.table, table)


def test_any_other_table_comes_back_as_nearly_as_float32_can():
    for seed, scale in enumerate((1e-4, 1e-2, 1.0, 1e2)):
        embeddings = gdes_tables(40, base=1.0, delta=0.0, seed=seed)
        rng = torch.Generator().manual_seed(100 + seed)
        table = torch.randn(embeddings.table.shape, generator=rng) * scale
        set_table(embeddings, table)
        larger = torch.maximum(table.abs(), embeddings.base[0].weight.detach().abs())
        assert ((embeddings.table - table).abs() <= 2.0**-23 * larger).all()


def test_a_plain_table_is_set_to_the_last_bit():
    embeddings = Embeddings(shape_of("modern"))
    table = torch.randn(embeddings.table.shape, generator=torch.Generator().manual_seed(0))
    set_table(embeddings, table)
    assert torch.equal(embeddings.table, table)


@pytest.mark.parametrize("noise", [NoiseConfig(), TOWERS], ids=["generator", "towers"])
def test_a_plain_copy_gives_the_same_vectors_to_the_last_bit(body: str, noise: NoiseConfig):
    model = make_model(body, sharing="gdes", noise=noise)
    randomize(model)
    batch = make_batch([40, 64], width=64)
    given = batch.input_ids, batch.attention_mask, batch.token_type_ids
    copied = plain(model.encoder)
    assert torch.equal(copied(*given), model.encoder(*given))
    assert copied.embeddings.base == (None,)
    assert {p.requires_grad for p in copied.parameters()} == {True}
    assert not set(map(id, copied.parameters())) & set(map(id, model.parameters()))
    assert copied.training == model.encoder.training
    assert not plain(model.encoder.eval()).training


def test_an_encoder_with_its_own_table_is_plain(body: str):
    model = make_model(body)
    assert plain(model.encoder) is model.encoder


def test_two_stages_share_nothing_whatever_sharing_says(body: str):
    networks = build_networks(
        shape_of(body), shape_of(body), Method(algorithm="two_stage", sharing="embeddings")
    )
    ours, theirs = (set(map(id, network.parameters())) for network in networks)
    assert not ours & theirs


COUNTED = {
    **COMBINATIONS,
    **{
        f"{sharing} {source} {algorithm}": {
            "sharing": sharing,
            "noise": NoiseConfig(source=source),
            "algorithm": algorithm,
        }
        for sharing in ("embeddings", "tokens", "none", "gdes")
        for source, algorithm in (
            ("generator", "joint"),
            ("two_tower", "joint"),
            ("generator", "adversarial"),
        )
    },
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_cost_model_counts_every_parameter_once(name: str):
    for body in ("bert", "modern"):
        model = make_model(body, **COUNTED[name])
        method = model.method
        generator = small_shape(body, method) if method.is_generator_trained else None
        if method.noise.source == "frozen":
            generator = model.generator.config
        choices = {"source": method.noise.source, "algorithm": method.algorithm}
        shapes = (shape_of(body), generator)
        counts = parameter_counts(
            *shapes, objective=method.objective, sharing=method.sharing, **choices
        )
        assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
        stages = ("generator", "discriminator") if method.algorithm == "two_stage" else ("both",)
        for stage in stages:
            costs = training_flops_per_sequence(
                *shapes,
                length=64,
                num_masked=9,
                objective=method.objective,
                stage=stage,
                **choices,
            )
            networks = {cost.network for cost in costs.values()}
            main = "encoder" if method.objective == "mlm" else "discriminator"
            assert (main in networks) == (stage != "generator")
            second = {"two_tower": "towers", "unigram": None, "uniform": None}
            beside = second.get(method.noise.source, "generator")
            if method.objective != "mlm" and beside is not None:
                assert beside in networks
