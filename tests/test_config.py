"""Settings are read strictly; every shipped preset is the paper's or loads as it is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

import amber
from amber.config import differences, flatten, read_toml, suggest, to_dict, to_toml, update
from amber.electra.config import LossConfig, NoiseConfig
from amber.errors import UserError
from amber.model.config import EncoderConfig
from amber.optim.config import OptimConfig
from amber.run.config import PretrainConfig

PRESETS = sorted((Path(amber.__file__).parent / "presets").glob("*.toml"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    """A section."""

    rate: float = 0.5
    steps: int = 3

    def __post_init__(self) -> None:
        """Refuse negative steps."""
        if self.steps < 0:
            raise UserError(f"inner.steps must be at least 0, got {self.steps}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer:
    """One field of each kind."""

    inner: Inner = field(default_factory=Inner)
    kind: Literal["a", "b"] = "a"
    is_on: bool = False
    path: Path = Path("x")
    other: Path | None = None
    count: int | None = None
    names: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()


def changed(**values: Any) -> Outer:
    """Defaults with changes, as a file would make them."""
    return update(Outer(), values, where="f.toml")


def pretrain(**values: Any) -> PretrainConfig:
    """A whole run's settings with changes."""
    config = PretrainConfig(data=Path("d"), out=Path("o"), model=EncoderConfig())
    return update(config, values, where="f.toml")


def test_values_are_put_in_and_the_rest_stays():
    found = changed(inner={"rate": 0.25}, kind="b", is_on=True, path="y", count=4, names=["p", "q"])
    assert found == Outer(
        inner=Inner(rate=0.25),
        kind="b",
        is_on=True,
        path=Path("y"),
        count=4,
        names=("p", "q"),
    )
    assert Outer() == Outer(inner=Inner(rate=0.5, steps=3))


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(UserError, match=r"^f.toml \[inner\]: no setting 'stesp' in Inner; did you"):
        changed(inner={"stesp": 1})
    with pytest.raises(UserError, match=r"did you mean 'learning_rate'\?$"):
        pretrain(optim={"learning_rat": 1e-3})
    with pytest.raises(
        UserError, match=r"no setting 'optin' in PretrainConfig; did you mean 'opti"
    ):
        pretrain(optin={"learning_rate": 1e-3})


def test_a_key_near_to_none_lists_all():
    assert suggest("zzz", ["rate", "steps"]) == "; there are rate, steps"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"inner": {"steps": 1.0}},
            r"^f.toml \[inner\]: steps = 1.0 is not of type int: write an int",
        ),
        ({"inner": {"steps": True}}, "steps = True is not of type int"),
        ({"inner": {"rate": True}}, "rate = True is not of type float"),
        ({"inner": {"rate": "2e-4"}}, "rate = '2e-4' is not of type float: write a float"),
        ({"inner": {"rate": float("nan")}}, "rate = nan is not a number to compute with"),
        ({"inner": {"rate": float("inf")}}, "rate = inf is not a number to compute with"),
        ({"inner": 3}, "inner is a section, got the value 3"),
        ({"kind": "c"}, "kind = 'c' is not one of 'a', 'b'"),
        ({"kind": ["a"]}, "kind = .* is not one of 'a', 'b'"),
        ({"is_on": 1}, "is_on = 1 is not of type bool"),
        ({"is_on": "False"}, "is_on = 'False' is not of type bool"),
        ({"path": 5}, "path = 5 is not of type Path"),
        ({"other": 5}, "other = 5 is not of type Path"),
        ({"count": "4"}, "count = '4' is not of type int"),
        ({"count": False}, "count = False is not of type int"),
        ({"names": "p"}, r"names = 'p' is not a list: write \['p'\]"),
        ({"names": ["p", 3]}, "names = 3 is not of type str"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_key(values: dict, message: str):
    with pytest.raises(UserError, match=message):
        changed(**values)


def test_a_whole_number_is_accepted_for_a_float():
    rate = changed(inner={"rate": 2}).inner.rate
    assert rate == 2.0
    assert isinstance(rate, float)


def test_what_the_dataclass_refuses_names_the_file_and_section():
    with pytest.raises(
        UserError, match=r"^f.toml \[inner\]: inner.steps must be at least 0, got -1$"
    ):
        changed(inner={"steps": -1})
    with pytest.raises(UserError, match=r"^f.toml: batch.length \(1024\) exceeds model.max_posit"):
        pretrain(batch={"length": 1024})


def test_settings_survive_the_way_through_toml(tmp_path: Path):
    path = tmp_path / "c.toml"
    config = pretrain(
        objective="mlm",
        init="m",
        model={"body": "bert", "type_vocab_size": 2, "norm_eps": 1e-12},
        optim={"learning_rate": 1e-3, "bias_correction": False},
        budget={"flops": 4e14},
        log={"tensorboard": True},
    )
    path.write_text(to_toml(to_dict(config)))
    found = update(
        PretrainConfig(data=Path("x"), out=Path("y"), model=EncoderConfig()),
        read_toml(path),
        where=str(path),
    )
    assert found == config
    other = changed(names=["p"], paths=["a/b", "c"], other="z")
    path.write_text(to_toml(to_dict(other)))
    assert update(Outer(), read_toml(path), where="f") == other


def test_nones_are_left_out():
    assert "other" not in to_dict(Outer())
    assert to_dict(Outer())["path"] == "x"


def test_a_file_that_is_not_there_or_not_toml_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(UserError, match="cannot be read"):
        read_toml(tmp_path)
    bad = tmp_path / "bad.toml"
    bad.write_text("a = = 3")
    with pytest.raises(UserError, match=r"bad.toml: is not TOML .*; correct the file$"):
        read_toml(bad)
    bad.write_bytes(b"a = '\xd6'")
    with pytest.raises(UserError, match="cannot be read"):
        read_toml(bad)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 3\r\n")
    assert read_toml(path) == {"a": 3}


def test_differences_name_the_dotted_keys_with_both_values():
    left = {"a": {"b": 1, "c": 2.0}, "d": "x", "e": [1]}
    right = {"a": {"b": 1, "c": 3.0}, "f": True, "e": [1]}
    assert differences(left, right) == ["a.c: 2.0 -> 3.0", "d: x -> unset", "f: unset -> True"]
    assert differences(left, left) == []
    assert flatten(left) == {"a.b": 1, "a.c": 2.0, "d": "x", "e": [1]}


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_shipped_preset_is_accepted(path: Path):
    assert isinstance(pretrain(**read_toml(path)), PretrainConfig)


def test_every_name_that_can_be_asked_for_has_a_file():
    names = PretrainConfig.__annotations__["preset"].__args__
    assert sorted(names) == sorted(path.stem for path in PRESETS)


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_misspelt_key_in_a_preset_is_refused(path: Path):
    values = read_toml(path)
    for section in values:
        for key in values[section]:
            wrong = {section: {key + "x": values[section][key]}}
            with pytest.raises(UserError, match=f"no setting '{key}x'.*'{key}'"):
                pretrain(**wrong)


@pytest.mark.parametrize(
    (
        "name",
        "layers",
        "hidden",
        "heads",
        "embedding",
        "fraction",
        "mask",
        "length",
        "batch",
        "rate",
    ),
    [  # Clark et al. 2020, table 6; Small's generator by its compute
        ("electra-small", 12, 256, 4, 128, 1 / 2, 0.15, 128, 128, 5e-4),
        ("electra-small-plus", 12, 256, 4, 128, 1.0, 0.15, 512, 128, 5e-4),
        ("electra-base", 12, 768, 12, 768, 1 / 3, 0.15, 512, 256, 2e-4),
        ("electra-large", 24, 1024, 16, 1024, 1 / 4, 0.25, 512, 2048, 2e-4),
    ],
)
def test_the_papers_presets_have_the_papers_values(
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    embedding: int,
    fraction: float,
    mask: float,
    length: int,
    batch: int,
    rate: float,
):
    path = next(path for path in PRESETS if path.stem == name)
    config = pretrain(**read_toml(path))
    model, optim = config.model, config.optim
    assert model.body == "bert"
    assert (model.num_hidden_layers, model.hidden_size) == (layers, hidden)
    assert (model.num_attention_heads, model.head_size) == (heads, 64)
    assert (model.intermediate_size, model.embedding_size) == (4 * hidden, embedding)
    assert (model.max_position_embeddings, model.type_vocab_size) == (512, 2)
    assert (model.hidden_dropout, model.attention_dropout) == (0.1, 0.1)
    assert (model.norm_eps, model.initial_std, model.initial_scale) == (1e-12, 0.02, 0.0)
    assert config.generator.width_fraction == pytest.approx(fraction, abs=1e-6)
    assert config.generator.depth_fraction == 1.0
    assert (config.mask.fraction, config.mask.keep_fraction) == (mask, 0.15)
    assert config.mask.random_fraction == 0.0
    assert (config.batch.length, config.batch.size) == (length, batch)
    assert config.method.weights_at(0.0) == (1.0, 50.0)
    assert config.noise.temperature == 1.0
    assert (optim.learning_rate, optim.warmup_steps, optim.schedule) == (rate, 10_000, "linear")
    assert (optim.beta1, optim.beta2, optim.eps) == (0.9, 0.999, 1e-6)
    assert (optim.weight_decay, optim.bias_correction) == (0.01, False)
    assert (optim.max_grad_norm, optim.matrices) == (1.0, "adamw")
    steps = {
        "electra-small": 1_000_000,
        "electra-small-plus": 4_000_000,
        "electra-base": 766_000,
        "electra-large": 400_000,
    }
    assert config.budget.steps == steps[name]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (EncoderConfig, "vocab_size", -1),
        (EncoderConfig, "type_vocab_size", -1),
        (EncoderConfig, "type_vocab_size", 2),  # the modern body has no segments
        (EncoderConfig, "norm_eps", 0.0),
        (EncoderConfig, "norm_eps", float("nan")),
        (EncoderConfig, "initial_std", 0.0),
        (EncoderConfig, "initial_std", float("inf")),
        (EncoderConfig, "initial_scale", -0.5),
        (EncoderConfig, "rope_theta", 0.0),
        (LossConfig, "generator_weight", -1.0),
        (LossConfig, "generator_weight", float("nan")),
        (LossConfig, "discriminator_weight", float("inf")),
        (NoiseConfig, "temperature", float("nan")),
        (NoiseConfig, "final_temperature", float("inf")),
        (OptimConfig, "learning_rate", float("inf")),
        (OptimConfig, "eps", float("nan")),
        (OptimConfig, "weight_decay", float("inf")),
    ],
)
def test_an_impossible_value_is_refused_with_its_name(kind: type, name: str, value: float):
    with pytest.raises(UserError, match=rf"\.{name} "):
        kind(**{name: value})


def test_a_body_with_embeddings_of_a_negative_width_is_refused():
    with pytest.raises(UserError, match="embedding_size must be at least 0, got -1"):
        EncoderConfig(body="bert", embedding_size=-1)


def test_a_loss_of_nothing_is_refused():
    with pytest.raises(UserError, match="are both 0"):
        LossConfig(generator_weight=0.0, discriminator_weight=0.0)
    assert LossConfig(generator_weight=0.0).weights_at(0.0, "rtd") == (0.0, 50.0)
