import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from amber.cli.method import noise_words
from amber.cli.output import duration, short_number
from amber.cli.pretrain import loading_lines, show_summary
from amber.cli.progress import Clock, Progress, event_line
from amber.electra.config import NoiseConfig
from amber.model.config import EncoderConfig
from amber.run.config import BudgetConfig, PretrainConfig
from amber.run.log import Event
from amber.run.results import Summary

CONFIG = PretrainConfig(
    data=Path("d"), out=Path("o"), model=EncoderConfig(), budget=BudgetConfig(steps=10)
)
METRICS = {
    "masked_lm_loss": 9.3456,
    "disc_loss": 0.69314,
    "replaced_fraction": 0.1449,
    "disc_auc": 0.8123,
    "disc_accuracy": 0.9,
    "majority_accuracy": 0.8551,
}
START = {
    "num_parameters": 303_000.0,
    "num_encoder_parameters": 210_000.0,
    "num_train_tokens": 96_000.0,
    "num_train_examples": 1000.0,
    "num_held_out_examples": 204.0,
    "padding": 32_000.0,
    "unigram_entropy": 5.3787,
}


def changed(**settings):
    """The settings of another method."""
    return replace(CONFIG, **settings)


def shown(*events, is_terminal=False, config=CONFIG):
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=is_terminal, highlight=False)
    with Progress(console, config) as progress:
        for event in events:
            progress.show(event)
    return file.getvalue()


def event(kind, step, progress, values=None, text=""):
    return Event(kind=kind, step=step, progress=progress, values=values or {}, text=text)


def test_time_left_follows_the_pace_and_counts_down():
    clock = Clock()
    assert clock.time_left(0.0) is None
    clock.note(0.2, 100.0)  # resumed at a fifth
    assert clock.time_left(100.0) is None
    clock.note(0.4, 110.0)  # 10 s for a fifth, three fifths to go
    assert clock.time_left(110.0) == pytest.approx(30.0)
    assert clock.time_left(112.0) == pytest.approx(28.0)
    assert clock.time_left(200.0) == 0.0


def test_the_start_names_sizes_data_padding_entropy_and_place():
    out = shown(event("start", 0, 0.0, START, text="cpu, bf16"))
    for words in (
        "6 layers x 192: 210k parameters, 303k with the heads and the generator",
        "96k tokens in 1,000 sequences of 128 (25.0% padding) and 204 held-out ones",
        "unigram entropy 5.379 nats",
        "cpu, bf16; 10 steps; 128 sequences a step; in o",
    ):
        assert words in out


def test_a_plain_line_has_a_fixed_order_and_at_most_120_columns():
    values = METRICS | {"tokens_per_second": 123_456.0}
    line = event_line(event("train", 99_999, 0.25, values), CONFIG, time_left=44_000.0)
    assert line == (
        "train     step 99,999  25.0%  mlm 9.346  rtd 0.6931  replaced 14.5%  auc 0.812  "
        "majority 85.5%  123k tok/s  12h13m left"
    )
    assert len(line) <= 120
    held_out = event_line(event("held_out", 1_000_000, 1.0, METRICS), CONFIG)
    assert held_out.startswith("held-out  step 1,000,000  100.0%  mlm 9.346  rtd 0.6931  ")
    assert held_out.endswith("auc 0.812  accuracy 90.0%  majority 85.5%")
    assert len(held_out) <= 120


def test_elsewhere_each_event_is_one_plain_line():
    out = shown(
        event("warning", 0, 0.0, text="step-3 is [cut off]"),
        event("train", 1, 0.1, METRICS),
        event("held_out", 1, 0.1, METRICS),
        event("checkpoint", 1, 0.1, text="o/checkpoints/step-1"),
        event("end", 1, 1.0),
    )
    assert [line.split()[0] for line in out.splitlines()] == [
        "warning",
        "train",
        "held-out",
        "saved",
    ]
    assert "step-3 is [cut off]" in out
    assert "\x1b" not in out


def test_on_a_terminal_held_out_results_stay_and_the_live_line_goes():
    out = shown(
        event("train", 1, 0.1, METRICS), event("held_out", 1, 0.1, METRICS), is_terminal=True
    )
    assert "held-out  step 1  10.0%" in out
    assert "train " not in out
    assert "10.0%  step 1" in out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59.6, "1m00s"), (200.0, "3m20s"), (7500.0, "2h05m")],
)
def test_times_are_written_for_people(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (999.0, "999"), (12_345.0, "12.3k"), (4.56e9, "4.56G")]
)
def test_counts_are_written_in_three_digits(value, text):
    assert short_number(value) == text


def summary(**changes):
    values = {
        "out": "o",
        "is_done": True,
        "signal_number": 0,
        "steps": 10,
        "tokens": 1000,
        "flops": 10**12,
        "seconds": 61.0,
        "objective": "rtd",
        "before": METRICS,
        "after": METRICS | {"disc_auc": 0.91},
        "unigram_entropy": 5.4,
        "models": ["o/generator", "o/discriminator"],
    }
    return Summary(**(values | changes))


@pytest.fixture
def closing(tmp_path):
    """What is printed at the end, where the data has two tokens of equal frequency."""
    np.save(tmp_path / "token_counts.npy", np.array([5, 5]))

    def closed(of, **settings):
        file = io.StringIO()
        config = changed(data=tmp_path, **settings)
        show_summary(of, config, Console(file=file, width=120))
        return file.getvalue()

    return closed


def test_the_end_compares_with_a_baseline_and_says_how_to_load_the_model(closing):
    out = closing(summary())
    rows = [line.split() for line in out.splitlines()]
    assert ["RTD", "AUC", "0.812", "0.910", "0.500"] in rows
    assert ["RTD", "accuracy", "90.0%", "90.0%", "85.5%"] in rows
    assert ["MLM", "loss,", "nats", "9.346", "9.346", "5.400"] in rows
    assert "done: 10 steps, 1k tokens, 1e+12 FLOPs, 1m01s" in out
    assert 'AutoModelForTokenClassification.from_pretrained("o/discriminator")' in out
    assert 'always saying "original"' in out


def test_the_end_of_two_stages_has_no_first_values_of_the_second(closing):
    out = closing(summary(before={"masked_lm_loss": 9.5}), algorithm="two_stage")
    rows = [line.split() for line in out.splitlines()]
    assert ["RTD", "AUC", "0.910", "0.500"] in rows
    assert ["MLM", "loss,", "nats", "9.500", "9.346", "5.400"] in rows


def test_the_end_of_an_encoder_that_names_tokens(closing):
    named = {
        "sampled_masked_lm_accuracy": 0.25,
        "encoder_lm_loss": 1.2,
        "encoder_lm_accuracy": 0.5,
        "replaced_fraction": 0.0,
    }
    copying = named | {"majority_accuracy": 0.9, "disc_auc": 0.6, "disc_accuracy": 0.95}
    settings = {"before": copying, "after": copying, "models": ["o/encoder"]}
    out = closing(summary(**settings), objective="all_tokens_mlm")
    rows = [line.split() for line in out.splitlines()]
    assert ["naming", "loss,", "nats", "1.200", "1.200", "0.000"] in rows  # nothing differs
    assert ["named", "right", "50.0%", "50.0%", "25.0%"] in rows  # copying names these
    assert "copying every token" in out
    assert "# transformers has no copy gate" in out
    settings |= {"before": named, "after": named}
    out = closing(summary(**settings), objective="replace_mlm")
    rows = [line.split() for line in out.splitlines()]
    assert ["naming", "loss,", "nats", "1.200", "1.200", "5.400"] in rows
    assert ["named", "right", "50.0%", "50.0%", "50.0%"] in rows  # the most frequent token


def test_the_end_of_electric_names_its_parts(closing):
    electric = {"objective": "electric", "noise": NoiseConfig(source="two_tower")}
    out = closing(summary(models=["o/towers", "o/encoder"]), **electric)
    assert "towers' loss, nats" in out
    assert "NCE AUC" in out
    assert 'always saying "data"' in out
    assert "model: o/towers (transformers has no class for it)" in out
    assert "# transformers has no class for energies" in out


def test_a_stopped_run_says_how_to_go_on(closing):
    out = closing(summary(is_done=False, after={}, signal_number=2))
    assert "to go on: amber pretrain --out o --resume" in out
    assert "done" not in out


def test_each_body_and_objective_is_loaded_with_its_class():
    bert = changed(model=EncoderConfig(body="bert", type_vocab_size=2))
    mlm = changed(objective="mlm")
    assert "AutoModelForPreTraining" in loading_lines("o/discriminator", bert)[0]
    assert "AutoModelForTokenClassification" in loading_lines("o/discriminator", CONFIG)[0]
    assert "AutoModelForMaskedLM" in loading_lines("o/encoder", mlm)[0]


def test_two_stages_say_which_one_it_is():
    config = changed(algorithm="two_stage")
    first = event_line(event("train", 1, 0.1, {"masked_lm_loss": 9.5}), config)
    assert first == "train     step 1  10.0%  stage 1 of 2  mlm 9.500"
    assert "stage 2 of 2  mlm 9.346  rtd" in event_line(event("train", 9, 0.9, METRICS), config)
    assert "stage" not in event_line(event("train", 9, 0.9, METRICS), CONFIG)


def test_lines_name_the_metrics_of_each_objective():
    electric = changed(objective="electric", noise=NoiseConfig(source="two_tower"))
    assert "towers 9.346  nce 0.6931" in event_line(event("train", 1, 0.1, METRICS), electric)
    naming = {"encoder_lm_loss": 1.25, "encoder_lm_accuracy": 0.5, "disc_auc": 0.75}
    copying = changed(objective="all_tokens_mlm")
    held_out = event_line(event("held_out", 1, 0.1, naming), copying)
    assert held_out.endswith("naming 1.250  named 50.0%  gate auc 0.750")
    assert "named" not in event_line(event("train", 1, 0.1, naming), copying)
    fooled = {"generator_reward": 0.7}
    adversarial = changed(algorithm="adversarial")
    assert event_line(event("train", 1, 0.1, fooled), adversarial).endswith("reward 0.700")


def test_the_majority_is_that_of_the_more_frequent_answer():
    line = event_line(event("held_out", 1, 0.1, {"majority_accuracy": 0.25}), CONFIG)
    assert line.endswith("majority 75.0%")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "replacements from a generator; both learn in every step"),
        ({"objective": "mlm"}, ""),
        ({"noise": NoiseConfig(source="unigram")}, "replacements from token frequencies"),
        (
            {"noise": NoiseConfig(temperature=0.7, top_k=5, top_p=0.9, forbid_original=True)},
            "replacements from a generator, temperature 0.7, top 5, top 90%, never the original; "
            "both learn in every step",
        ),
        (
            {
                "noise": NoiseConfig(
                    source="frozen", checkpoint=Path("m"), temperature=2.0, final_temperature=1.0
                )
            },
            "replacements from a frozen model (m), temperature 2 to 1",
        ),
        (
            {"algorithm": "two_stage", "switch_fraction": 0.25},
            "replacements from a generator; it learns for 25% of the budget, then the main encoder",
        ),
    ],
)
def test_the_noise_and_the_algorithm_are_told_in_words(settings, words):
    config = changed(**settings)
    assert noise_words(config) == words
    start = shown(event("start", 0, 0.0, START), config=config)
    assert (f"noise     {words}" in start) if words else ("noise" not in start)


def test_the_start_counts_the_networks_that_there_are():
    for source, words in (
        ("two_tower", "303k with the heads and the towers\n"),
        ("uniform", "303k with the heads\n"),
    ):
        config = changed(noise=NoiseConfig(source=source))
        assert words in shown(event("start", 0, 0.0, START), config=config)
