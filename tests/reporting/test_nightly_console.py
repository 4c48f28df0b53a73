"""Progress and tables at a terminal and where there is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agent_gym.core.clock import ManualClock
from agent_gym.reporting.nightly import (
    ConsoleProgress,
    comparison_table,
    run_view,
    summary_view,
)
from agent_gym.reporting.nightly.console import replay_lines
from tests.reporting.result_samples import bad_night, good_night


def shown(view, width=140):
    screen = io.StringIO()
    Console(file=screen, width=width).print(view)
    return screen.getvalue()


@pytest.fixture
def clock():
    return ManualClock()


def test_plain_lines_come_now_and_then(clock):
    screen = io.StringIO()
    with ConsoleProgress("nightly", 100, Console(file=screen), clock) as progress:
        progress.start("thin_book")
        for _ in range(100):
            clock.sleep_s(0.25)
            progress.advance("thin_book")
    lines = screen.getvalue().splitlines()
    assert lines[0] == "nightly: 100 seeds to play"
    assert lines[1] == "nightly: 20/100, 0 errors, 20 s left, thin_book"
    assert lines[-1] == "nightly: done, 100/100, 0 errors, 25 s"
    assert len(lines) == 7
    assert "\x1b" not in screen.getvalue()


def test_what_was_found_done_does_not_speed_up_the_guess(clock):
    progress = ConsoleProgress("nightly", 100, Console(file=io.StringIO()), clock)
    progress.start("thin_book", kept=50)
    clock.sleep_s(60.0)  # processes start
    progress.advance("thin_book", 1)
    assert progress.remaining_s is None
    clock.sleep_s(10.0)
    progress.advance("thin_book", 10)
    assert progress.remaining_s == pytest.approx(39.0)


def test_a_slow_start_is_forgotten(clock):
    progress = ConsoleProgress("nightly", 1_000, Console(file=io.StringIO()), clock)
    clock.sleep_s(100.0)
    for _ in range(200):
        clock.sleep_s(0.2)
        progress.advance("thin_book")
    assert progress.remaining_s == pytest.approx(800 * 0.2, rel=0.02)


def test_what_is_not_whole_is_not_called_done(clock):
    screen = io.StringIO()
    with ConsoleProgress("nightly", 2, Console(file=screen), clock) as progress:
        progress.advance("thin_book")
    assert "nightly: stopped, 1/2" in screen.getvalue()


def test_an_error_is_said_at_once_and_counted(clock):
    screen = io.StringIO()
    with ConsoleProgress("nightly", 2, Console(file=screen), clock) as progress:
        progress.advance("price_gap", error="VenueError: the book is empty")
        assert "price_gap: VenueError: the book is empty" in screen.getvalue()
        progress.advance("price_gap")
    assert progress.errors == 1
    assert "1 error," in screen.getvalue()


def test_a_stopped_run_is_not_called_done(clock):
    screen = io.StringIO()
    with (
        pytest.raises(KeyboardInterrupt),
        ConsoleProgress("nightly", 2, Console(file=screen), clock),
    ):
        raise KeyboardInterrupt
    assert "nightly: stopped, 0/2" in screen.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_question_that_is_refused_shows_no_progress(clock, terminal):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal)
    with pytest.raises(ValueError, match="no"), ConsoleProgress("nightly", 264, console, clock):
        raise ValueError("no")
    assert screen.getvalue() == ""


def test_a_terminal_sees_a_bar(clock):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with ConsoleProgress("nightly", 4, console, clock) as progress:
        clock.sleep_s(1.0)
        progress.advance("thin_book", 3)
    text = screen.getvalue()
    assert "3/4" in text
    assert "thin_book" in text
    assert "\x1b[" in text


def test_rows_of_an_executor_move_it(clock):
    progress = ConsoleProgress("nightly", 0, Console(file=io.StringIO()), clock)
    progress.start("a", kept=5)
    progress(1, 10, {"status": "ok", "scenario": "a"})
    progress(2, 10, {"status": "timeout", "scenario": "b", "error": "too slow"})
    assert (progress.done, progress.total, progress.errors) == (7, 15, 1)


def test_the_summary_says_what_broke_and_how_to_see_it_again():
    text = shown(summary_view(bad_night()))
    assert text.startswith("BAD: 4 regressions")
    assert "signal_throughput/latency_p95_ms" in text
    assert "+30." in text
    lines = replay_lines(bad_night())
    command = "  agent-gym replay n20261116-013000-4c1f signal_throughput"
    assert any(line.startswith(command) for line in lines)
    assert replay_lines(good_night()) == ()
    assert "latency_p50_ms" not in text  # nothing changed there
    assert shown(summary_view(good_night())).startswith("GOOD: Nothing got worse")


def test_a_comparison_marks_what_is_the_same():
    text = shown(comparison_table(bad_night().diff.findings))
    row = next(line for line in text.splitlines() if "latency_p50_ms" in line)
    assert " ~ " in row


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_comparison_keeps_its_figures_whole_at_any_width(width):
    text = shown(summary_view(bad_night()), width)
    assert all(word in text for word in ("+30.75 %", "[35.9, 36.8]", "<0.0001"))
    assert ("118.2" in text) == (width > 130)
    assert max(map(len, text.splitlines())) <= width


def test_the_table_of_a_run_has_every_metric():
    run = good_night().run
    text = shown(run_view(run))
    assert all(metric.name in text for each in run.samples.scenarios for metric in each.metrics)
