import io

from rich.console import Console

from amber.cli import bar as module
from amber.cli.bar import Bar


def test_rate_and_time_left_by_hand(monkeypatch):
    times = iter([95.0, 100.0, 104.0, 104.0])  # made, begun, noted, asked
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times))
    bar = Bar(Console(file=io.StringIO()), "pairs")
    bar.note(0.0, 80)
    bar.note(20.0, 80)
    assert bar.words() == ["25%", "20 of 80 pairs", "5 pairs/s", "12s left"]


def test_without_a_total_there_is_no_share_and_no_time_left(monkeypatch):
    times = iter([100.0, 104.0, 104.0])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(times))
    bar = Bar(Console(file=io.StringIO()), "sentences")
    bar.note(2000.0, None)
    assert bar.words() == ["2,000 sentences", "500 sentences/s"]


def test_a_line_every_ten_seconds_where_there_is_no_terminal(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    out = io.StringIO()
    with Bar(Console(file=out), "pairs") as bar:
        for second in range(1, 26):
            now[0] = float(second)
            bar.note(float(second), 25)
    assert [line.split("  ")[1] for line in out.getvalue().splitlines()] == [
        "10 of 25 pairs",
        "20 of 25 pairs",
    ]


def test_the_live_bar_leaves_nothing_on_a_terminal_and_can_be_left_out():
    for is_live in (True, False):
        out = io.StringIO()
        with Bar(Console(file=out, force_terminal=True), "pairs", is_live=is_live) as bar:
            bar.note(1.0, 4)
            shown = bar.render()
        assert shown is not None
        assert bool(out.getvalue()) == is_live
