"""Every objective, noise source, algorithm and sharing: trained, resumed, written, read again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from separate import run_apart, without_dropout
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from amber.data.config import BatchConfig
from amber.electra.config import (
    GeneratorConfig,
    LossConfig,
    MaskConfig,
    NoiseConfig,
)
from amber.errors import UserError
from amber.run import pretrain as pretrain_module
from amber.run.commands import EvaluateConfig
from amber.run.config import BudgetConfig, PretrainConfig
from amber.run.folders import open_model
from amber.run.held_out import evaluate_folder
from amber.run.log import Event
from amber.run.pretrain import pretrain

EQUAL = GeneratorConfig()
TOWERS = NoiseConfig(source="two_tower")
METHODS: dict[str, dict[str, Any]] = {
    "rtd": {},
    "rtd_masked": {"objective": "rtd_masked"},
    "replace_mlm": {"objective": "replace_mlm"},
    "all_tokens_mlm": {"objective": "all_tokens_mlm"},
    "mlm": {"objective": "mlm", "generator": EQUAL},
    "electric": {"objective": "electric", "noise": TOWERS},
    "electric_unigram": {
        "objective": "electric",
        "noise": NoiseConfig(source="unigram"),
        "generator": EQUAL,
    },
    "unigram": {"noise": NoiseConfig(source="unigram"), "generator": EQUAL},
    "uniform": {"noise": NoiseConfig(source="uniform"), "generator": EQUAL},
    "two_tower": {"noise": TOWERS},
    "two_stage": {"algorithm": "two_stage", "generator": EQUAL},
    "adversarial": {"algorithm": "adversarial"},
    "tokens": {"sharing": "tokens"},
    "none": {"sharing": "none"},
    "all": {"sharing": "all", "generator": EQUAL},
    "gdes": {"sharing": "gdes"},
    "source": {"label_rule": "source"},
    "sampler": {
        "noise": NoiseConfig(
            temperature=0.7, top_k=9, top_p=0.9, forbid_original=True, random_fraction=0.1
        ),
        "loss": LossConfig(
            label_smoothing=0.1, include_special=False, final_discriminator_weight=30.0
        ),
        "mask": MaskConfig(unit="ngram", frequency_power=0.5),
    },
}
MAIN = {"rtd_masked": "discriminator", "replace_mlm": "encoder", "all_tokens_mlm": "encoder"}
MAIN |= {"mlm": "encoder", "electric": "encoder", "electric_unigram": "encoder"}


def ignore(event: Event) -> None:
    """Show nothing."""


def short(config: PretrainConfig, **changes: Any) -> PretrainConfig:
    """A run of six steps, with a checkpoint after the third."""
    changes = {"budget": BudgetConfig(steps=6), **changes}
    checkpoint = replace(config.checkpoint, every_steps=3)
    evaluation = replace(config.evaluation, every_steps=6)
    return replace(config, checkpoint=checkpoint, evaluation=evaluation, **changes)


def final_weights(out: Path, step: int) -> dict[str, torch.Tensor]:
    """The weights of a checkpoint."""
    return load_file(out / "checkpoints" / f"step-{step}" / "model.safetensors")


def stop_after(config: PretrainConfig, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train up to a step, as if a signal had come then."""
    real = pretrain_module.train_step
    with monkeypatch.context() as patch:

        def once(run, batches, state, *, is_logged):
            metrics = real(run, batches, state, is_logged=is_logged)
            if state.step == step:
                raise KeyboardInterrupt
            return metrics

        patch.setattr(pretrain_module, "train_step", once)
        with pytest.raises(KeyboardInterrupt):
            pretrain(config, show=ignore)


@pytest.mark.parametrize("name", METHODS)
def test_a_run_learns_resumes_to_the_last_bit_and_is_read_again(
    tiny_run: PretrainConfig, name: str, monkeypatch: pytest.MonkeyPatch
):
    straight = short(tiny_run, **METHODS[name])
    summary = pretrain(straight, show=ignore)
    assert summary.steps == 6
    assert all(value == value for value in summary.after.values())

    cut = replace(straight, out=tiny_run.out.with_name("cut"))
    stop_after(cut, 4, monkeypatch)  # the checkpoint is of step 3
    pretrain(replace(cut, resume=True), show=ignore)
    one, other = final_weights(straight.out, 6), final_weights(cut.out, 6)
    assert one.keys() == other.keys()
    assert all(one[key].equal(other[key]) for key in one)

    opened = open_model(straight.out)
    assert opened.path.name == MAIN.get(name, "discriminator")
    again = evaluate_folder(EvaluateConfig(model=straight.out, data=straight.data))
    known = {key: value for key, value in summary.after.items() if key != "generator_reward"}
    assert again.metrics == pytest.approx(known, rel=1e-5, abs=1e-5)  # the baseline is not kept
    assert again.baselines.keys() <= again.metrics.keys()


def test_a_frozen_generator_does_not_change_and_is_written_beside(tiny_run: PretrainConfig):
    first = short(tiny_run, objective="mlm", generator=EQUAL)
    pretrain(first, show=ignore)
    noise = NoiseConfig(
        source="frozen", checkpoint=first.out, temperature=2.0, final_temperature=1.0
    )
    second = short(tiny_run, out=tiny_run.out.with_name("second"), noise=noise, generator=EQUAL)
    summary = pretrain(second, show=ignore)
    before, after = (
        load_file(folder / "model.safetensors")
        for folder in (first.out / "encoder", second.out / "generator")
    )
    assert before.keys() == after.keys()
    assert all(before[key].equal(after[key]) for key in before)
    assert summary.after["masked_lm_loss"] == pytest.approx(
        summary.before["masked_lm_loss"], rel=1e-6
    )
    again = evaluate_folder(EvaluateConfig(model=second.out, data=second.data))
    assert again.metrics == pytest.approx(summary.after, rel=1e-5, abs=1e-5)


def test_in_the_second_stage_the_generator_stands_still(tiny_run: PretrainConfig):
    config = short(tiny_run, algorithm="two_stage", generator=EQUAL, switch_fraction=0.4)
    pretrain(config, show=ignore)  # three steps of the generator, three of the discriminator
    middle, end = final_weights(config.out, 3), final_weights(config.out, 6)
    for key in middle:
        is_second = key.startswith(("generator.", "mlm_head."))
        assert middle[key].equal(end[key]) == is_second, key
    lines = (config.out / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line) for line in lines]
    has_main = {line["step"]: "disc_loss" in line for line in steps if line["kind"] == "train"}
    assert has_main == {1: False, 2: False, 3: False, 4: True, 5: True, 6: True}


CONTRADICTIONS = [
    ({"objective": "electric"}, "objective is electric, but noise.source is generator"),
    (
        {"objective": "electric", "noise": NoiseConfig(source="two_tower", top_k=5)},
        "objective is electric, but noise.top_k is 5",
    ),
    (
        {"algorithm": "adversarial", "objective": "replace_mlm"},
        "algorithm is adversarial, but objective is replace_mlm",
    ),
    (
        {"algorithm": "two_stage", "noise": TOWERS},
        "algorithm is two_stage, but noise.source is two_tower",
    ),
    ({"sharing": "all", "noise": TOWERS}, "sharing is all, but noise.source is two_tower"),
    ({"sharing": "all"}, "generator.depth_fraction has no effect while sharing is all"),
    ({"algorithm": "two_stage"}, "generator.depth_fraction has no effect while algorithm is"),
    ({"switch_fraction": 0.4}, "switch_fraction has no effect while algorithm is joint"),
    (
        {"objective": "mlm", "generator": EQUAL, "noise": NoiseConfig(temperature=2.0)},
        "noise.temperature has no effect while objective is mlm",
    ),
    (
        {"noise": NoiseConfig(source="uniform", temperature=2.0), "generator": EQUAL},
        "noise.temperature has no effect while noise.source is uniform",
    ),
    (
        {
            "noise": NoiseConfig(source="unigram"),
            "generator": EQUAL,
            "mask": MaskConfig(keep_fraction=0.0),
        },
        "mask.keep_fraction has no effect while noise.source is unigram",
    ),
    (
        {"objective": "replace_mlm", "label_rule": "source"},
        "label_rule has no effect while objective is replace_mlm",
    ),
    (
        {"objective": "rtd_masked", "loss": LossConfig(include_special=False)},
        "loss.include_special has no effect while objective is rtd_masked",
    ),
    (
        {"algorithm": "adversarial", "label_rule": "source"},
        "algorithm is adversarial, but label_rule is source",
    ),
    (
        {
            "noise": NoiseConfig(source="unigram"),
            "generator": EQUAL,
            "loss": LossConfig(discriminator_weight=0.0),
        },
        "nothing would be learned",
    ),
    ({"mask": MaskConfig(unit="word")}, "does not say where words begin"),
]


@pytest.mark.parametrize(("changes", "message"), CONTRADICTIONS)
def test_settings_that_do_not_go_together_are_refused_before_the_first_step(
    tiny_run: PretrainConfig, changes: dict[str, Any], message: str
):
    with pytest.raises(UserError, match=message):
        pretrain(short(tiny_run, **changes), show=ignore)
    assert not (tiny_run.out / "metrics.jsonl").exists()


INITIAL = ("rtd", "all_tokens_mlm", "electric", "gdes", "none", "all", "mlm", "two_tower")


@pytest.mark.parametrize("name", INITIAL)
def test_a_new_run_starts_with_the_weights_of_the_old_one(tiny_run: PretrainConfig, name: str):
    first = short(tiny_run, **METHODS[name])
    trained = pretrain(first, show=ignore).after
    second = replace(first, init=first.out, out=tiny_run.out.with_name("second"))
    assert pretrain(second, show=ignore).before == pytest.approx(trained, rel=1e-4, abs=1e-5)


def test_another_objective_starts_from_what_there_is(tiny_run: PretrainConfig):
    first = short(tiny_run)
    pretrain(first, show=ignore)
    notes: list[str] = []

    def note(event: Event) -> None:
        if event.kind == "warning":
            notes.append(event.text)

    changes = {**METHODS["electric_unigram"], "init": first.out}
    pretrain(short(tiny_run, out=tiny_run.out.with_name("second"), **changes), show=note)
    assert notes == [
        f"{first.out / 'discriminator'}: has no head for energies, it starts at random"
    ]


@pytest.mark.parametrize("body", ["modern", "bert"])
@pytest.mark.parametrize("name", ["rtd_masked", "all_tokens_mlm", "electric_unigram", "gdes"])
def test_transformers_reads_the_main_encoder_with_equal_scores(
    tiny_run: PretrainConfig, name: str, body: str
):
    segments = 2 if body == "bert" else 0
    shape = replace(tiny_run.model, body=body, type_vocab_size=segments)
    pretrain(short(tiny_run, model=shape, **METHODS[name]), show=ignore)
    opened = open_model(tiny_run.out)
    kind = AutoModelForMaskedLM
    if opened.rtd_head is not None:
        kind = AutoModelForPreTraining if body == "bert" else AutoModelForTokenClassification
    model, info = kind.from_pretrained(opened.path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids = torch.tensor([[2, 7, 9, 11, 30, 3]])
    with torch.no_grad():
        hidden = opened.encoder.eval()(ids)
        theirs = model.eval()(ids).logits
        if opened.rtd_head is not None:
            ours = opened.rtd_head(hidden)
            theirs = theirs if body == "bert" else theirs[..., 1] - theirs[..., 0]
        else:
            assert opened.vocabulary_head is not None
            ours = opened.vocabulary_head(hidden[0], opened.encoder.embeddings.table)[None]
    torch.testing.assert_close(theirs, ours, rtol=0.0, atol=1e-5)  # sums in another order


def test_the_card_says_how_transformers_fine_tunes_a_discriminator(tiny_run: PretrainConfig):
    pretrain(short(tiny_run), show=ignore)
    folder, kind = tiny_run.out / "discriminator", AutoModelForSequenceClassification
    with pytest.raises(RuntimeError, match="size"):
        kind.from_pretrained(folder, num_labels=3)
    flag = "ignore_mismatched_sizes"
    model, info = kind.from_pretrained(
        folder, num_labels=3, output_loading_info=True, **{flag: True}
    )
    assert {key[0] for key in info["mismatched_keys"]} == {"classifier.weight", "classifier.bias"}
    assert model.classifier.weight.shape[0] == 3
    assert f"`{flag}=True`" in (folder / "README.md").read_text()
    bert = replace(tiny_run.model, body="bert", type_vocab_size=2)
    pretrain(short(tiny_run, model=bert, out=tiny_run.out.with_name("bert")), show=ignore)
    kind.from_pretrained(tiny_run.out.with_name("bert") / "discriminator", num_labels=3)
    assert flag not in (tiny_run.out.with_name("bert") / "discriminator/README.md").read_text()


RANKS = ("rtd_masked", "all_tokens_mlm", "electric", "two_stage", "adversarial", "gdes", "all")


@pytest.mark.slow
@pytest.mark.parametrize("name", RANKS)
def test_two_ranks_train_what_one_trains(tiny_run: PretrainConfig, name: str):
    config = without_dropout(short(tiny_run, **METHODS[name]))
    one = replace(config, batch=BatchConfig(size=7, micro_size=2, length=32))
    two = replace(one, out=one.out.with_name("two"))
    pretrain(one, show=ignore)
    run_apart(two, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    left, right = final_weights(one.out, 6), final_weights(two.out, 6)
    assert left.keys() == right.keys()
    for key, weight in left.items():
        torch.testing.assert_close(right[key], weight, rtol=0.0, atol=1e-5)
