import io
from pathlib import Path

import pytest
from rich.console import Console

from amber.cli.output import duration, short_number
from amber.cli.pretrain import loading_lines, show_summary
from amber.cli.progress import Clock, Progress, event_line
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


def shown(*events, is_terminal=False):
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=is_terminal, highlight=False)
    with Progress(console, CONFIG) as progress:
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
    line = event_line(event("train", 99_999, 0.25, values), time_left=44_000.0)
    assert line == (
        "train     step 99,999  25.0%  mlm 9.346  rtd 0.6931  replaced 14.5%  auc 0.812  "
        "majority 85.5%  123k tok/s  12h13m left"
    )
    assert len(line) <= 120
    held_out = event_line(event("held_out", 1_000_000, 1.0, METRICS))
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


def closing(of):
    file = io.StringIO()
    show_summary(of, CONFIG, Console(file=file, width=120))
    return file.getvalue()


def test_the_end_compares_before_and_after_and_says_how_to_load_the_model():
    out = closing(summary())
    assert ["RTD", "AUC", "0.812", "0.910"] in [line.split() for line in out.splitlines()]
    assert "done: 10 steps, 1k tokens, 1e+12 FLOPs, 1m01s" in out
    assert 'AutoModelForTokenClassification.from_pretrained("o/discriminator")' in out


def test_a_stopped_run_says_how_to_go_on():
    out = closing(summary(is_done=False, after={}, signal_number=2))
    assert "to go on: amber pretrain --out o --resume" in out
    assert "done" not in out


def test_each_body_and_objective_is_loaded_with_its_class():
    bert = PretrainConfig(
        data=Path("d"), out=Path("o"), model=EncoderConfig(body="bert", type_vocab_size=2)
    )
    assert "AutoModelForPreTraining" in loading_lines("o/discriminator", bert)[0]
    assert "AutoModelForTokenClassification" in loading_lines("o/discriminator", CONFIG)[0]
    assert "AutoModelForMaskedLM" in loading_lines("o/encoder", CONFIG)[0]
