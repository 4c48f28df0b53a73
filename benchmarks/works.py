"""The works: who takes part, how much each does, and what the goal is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.rollouts.vector import VectorRecorder
from benchmarks import bare, ours
from benchmarks.battle import battles
from benchmarks.contest import LIMIT, OURS, Entry, PeerEntry, ask, contest
from benchmarks.data import Series, sma_pairs
from benchmarks.first_view import first_views
from benchmarks.learning import learning
from benchmarks.peers import Fleet
from benchmarks.report import Goal, Row, rate_row

SERIES_BARS, SHORT_BARS = 1_000_000, 100_000
TERMS = (1.0, 0.001, ours.CASH)  # units, fee, cash
CENT = 0.01
LANES, CALLS = 1024, 128
SINGLE_STEPS = 5_000
MEMORY_CALLS, DISK_CALLS, RECORD_REPEATS = 512, 1024, 3
MEMORY_MB = 300.0


@dataclass(frozen=True)
class Ground:
    """What all works share: the long series, its first part, the peers and a scratch folder."""

    series: Series
    short: Series
    fleet: Fleet
    scratch: Path
    rounds: int


def _bare_series(series: Series) -> Callable[[], float]:
    equity = np.empty(len(series))
    windows = (ours.FAST, ours.SLOW)
    return lambda: bare.series(series.open, series.close, windows, TERMS, equity)


def series_backtest(ground: Ground) -> Iterator[Row]:
    """(a) The whole series at once, and whether everybody's money is the same."""
    limit, mine = _bare_series(ground.series), ours.SeriesRun(ground.series)
    own = {
        LIMIT: Entry(limit, SERIES_BARS, repeats=5),
        OURS: Entry(mine.run, SERIES_BARS, repeats=5),
        "ours, bars checked": Entry(mine.run_from_bars, SERIES_BARS, repeats=2),
    }
    peers = {
        "vectorbt": PeerEntry("series", SERIES_BARS, SHORT_BARS, repeats=2),
        "vectorbt-rust": PeerEntry("series", SERIES_BARS, SHORT_BARS, repeats=2),
        "hftbacktest": PeerEntry("series", SHORT_BARS, 1_000, repeats=3),
        "backtesting.py": PeerEntry("series", SHORT_BARS, 1_000),
        "nautilus_trader": PeerEntry("series", 20_000, 1_000),
    }
    standings = contest(own, peers, ground.fleet, ground.rounds)
    goal = Goal(to_limit=1 / 3, to_peers={"vectorbt": 25.0})
    yield rate_row(
        "series", "bars/s", standings, goal, "full ledger; peers that are slow: fewer bars"
    )
    yield _equality(ground)


def _equality(ground: Ground) -> Row:
    limit, mine = _bare_series(ground.short)(), ours.SeriesRun(ground.short).run()
    named = ("backtesting.py", "vectorbt", "vectorbt-rust")
    answers = {name: ask(ground.fleet, name, "series", SHORT_BARS) for name in named}
    found = {name: answer["equity"] for name, answer in answers.items() if answer is not None}
    equal = all(abs(mine - equity) < CENT / 2 for equity in (limit, *found.values()))
    complete = {"backtesting.py", "vectorbt"} <= found.keys()
    return Row(
        "series_equality",
        "final equity",
        mine,
        limit,
        "equal to the cent with backtesting.py and vectorbt",
        (True if complete else None) if equal else False,
        {name: mine / equity for name, equity in found.items()},
        {"differences": {name: mine - equity for name, equity in found.items()}},
        "100,000 bars, no spread, fills at the next open",
    )


def _coin_flips(name: str, shape: tuple[int, ...]) -> Any:
    return Seeds(3).child("benchmark", name).rng().integers(0, 2, shape)


def _stepper(step: Callable[[Any], Any], name: str, calls: int = CALLS, repeats: int = 8) -> Entry:
    actions = _coin_flips(name, (calls, LANES))

    def run() -> None:
        for chosen in actions:
            step(chosen)

    return Entry(run, calls * LANES, repeats)


def environments(ground: Ground) -> Iterator[Row]:
    """(b) Environment steps under coin-flip actions: 1,024 lanes, then one."""
    short = ground.short
    limit = bare.Batch(short.open, short.close, LANES, ours.EPISODE_BARS, seed=11)
    mine = ours.vector_env(short, LANES, seed=12)
    copying = ours.vector_env(short, LANES, seed=13, copy=True)
    own = {
        LIMIT: _stepper(limit.step, "limit"),
        OURS: _stepper(mine.step, "ours"),
        "ours, copies": _stepper(copying.step, "copies"),
    }
    peers = {
        "gym-anytrading": PeerEntry("steps", SINGLE_STEPS, 1_000, repeats=8),
        "gym-trading-env": PeerEntry("steps", SINGLE_STEPS // 4, 1_000, repeats=4),
    }
    standings = contest(own, peers, ground.fleet, ground.rounds)
    goal = Goal(to_limit=0.5, to_peers={"gym-anytrading": 100.0})
    width = mine.lanes.obs.shape[1]
    note = f"{LANES} lanes, one thread; observation of {width} float32, the limit's has 34"
    yield rate_row("vector_env", "steps/s", standings, goal, note)

    alone = bare.Batch(short.open, short.close, 1, ours.EPISODE_BARS, seed=14)
    flips = _coin_flips("alone", (SINGLE_STEPS, 1))

    def run_alone() -> None:
        for chosen in flips:
            alone.step(chosen)

    own = {
        LIMIT: Entry(run_alone, SINGLE_STEPS, repeats=8),
        OURS: Entry(ours.single_steps(short, SINGLE_STEPS, seed=15), SINGLE_STEPS, repeats=8),
    }
    standings = contest(own, peers, ground.fleet, ground.rounds)
    goal = Goal(to_peers={"gym-anytrading": 4.0})
    note = "one gymnasium.Env; the limit is the bare kernel called for one lane from Python"
    yield rate_row("single_env", "steps/s", standings, goal, note)
    equal = _probe("threads")["equal"]
    goal_text = "bit-equal with 1 and 2 threads"
    yield Row("vector_threads", "1 = equal", float(equal), 1.0, goal_text, bool(equal))


def sweep(ground: Ground) -> Iterator[Row]:
    """(c) 200 pairs of windows on 100,000 bars, and the memory that takes."""
    pairs = sma_pairs()
    windows, out = np.array(pairs), np.empty((len(pairs), 3))
    open_, close = ground.short.open, ground.short.close
    mine = ours.SweepRun(ground.short, pairs)
    own = {
        LIMIT: Entry(lambda: bare.sweep(open_, close, windows, TERMS, out), len(pairs), repeats=3),
        OURS: Entry(mine.run, len(pairs), repeats=3),
    }
    asked = PeerEntry("sweep", SHORT_BARS, 1_000, rounds=2)
    named = ("vectorbt", "vectorbt-rust")
    standings = contest(own, dict.fromkeys(named, asked), ground.fleet, ground.rounds)
    note = "one thread; we keep drawdown and costs too, the peers final equity and fills alone"
    row = rate_row("sweep", "pairs/s", standings, Goal(to_peers={"vectorbt": 50.0}), note)
    found = {n: standings[n].answers[-1]["equity"] for n in named if n in standings}
    equity = np.array(mine.run())
    gaps = {n: float(np.abs(equity - e).max()) for n, e in {LIMIT: out[:, 0], **found}.items()}
    row.measured["largest_difference_in_equity"] = gaps
    row.goal += ", every final equity equal to the cent"
    row.met = row.met if max(gaps.values()) < CENT / 2 else False
    yield row
    extra_mb = _probe("memory")["extra_mb"]
    theirs = {n: max(a["extra_mb"] for a in standings[n].answers) for n in found}
    yield Row(
        "sweep_memory",
        "MB, less is better",
        extra_mb,
        MEMORY_MB,
        f"less than {MEMORY_MB:g} MB above what was held before",
        extra_mb < MEMORY_MB,
        {name: extra_mb / other for name, other in theirs.items()},
        {"peers_mb": theirs},
    )


def playing(ground: Ground) -> Iterator[Row]:
    """(d) The step-by-step loop with the store on, and what recording a vector costs."""
    mine = ours.PlayRun(ground.short, ground.scratch / "play")
    own = {
        LIMIT: Entry(_bare_series(ground.short), SHORT_BARS, repeats=5),
        OURS: Entry(mine.run, SHORT_BARS, after=mine.clear),
        "ours, package's rule": Entry(mine.run_rule, SHORT_BARS, after=mine.clear),
        "ours, no store": Entry(mine.run_unrecorded, SHORT_BARS),
    }
    peers = {
        "backtesting.py": PeerEntry("series", SHORT_BARS, 1_000),
        "nautilus_trader": PeerEntry("series", 20_000, 1_000),
    }
    standings = contest(own, peers, ground.fleet, ground.rounds)
    goal = Goal(to_peers={"backtesting.py": 3.0, "nautilus_trader": 10.0})
    note = "an agent in plain Python, every step to a Parquet store, closing it included"
    yield rate_row("play", "bars/s", standings, goal, note)
    yield from _recording(ground)


def _recording(ground: Ground) -> Iterator[Row]:
    """Step with and without recording, as many calls each: short runs find quiet moments."""

    def plain(seed: int, calls: int) -> Entry:
        env = ours.vector_env(ground.short, LANES, seed)
        return _stepper(env.step, f"plain {seed}", calls, RECORD_REPEATS)

    def recorded(seed: int, calls: int, folder: Path | None, *, close: bool) -> Entry:
        env = ours.vector_env(ground.short, LANES, seed)
        actions = _coin_flips(f"recorded {seed}", (calls, LANES)).astype(np.int8)

        def run() -> VectorRecorder:
            recorder = ours.record_steps(env, actions, folder)
            if close:
                recorder.close()
            return recorder

        return Entry(run, calls * LANES, RECORD_REPEATS, after=VectorRecorder.close)

    own = {LIMIT: plain(21, MEMORY_CALLS), OURS: recorded(22, MEMORY_CALLS, None, close=True)}
    standings = contest(own, {}, ground.fleet, ground.rounds)
    note = "the limit is the same environment without recording; 6 columns, 22 bytes a step"
    yield rate_row("record_memory", "steps/s", standings, Goal(to_limit=0.75), note)

    own = {
        LIMIT: plain(23, DISK_CALLS),
        OURS: recorded(24, DISK_CALLS, ground.scratch / "vectors", close=True),
        "ours, before closing": recorded(25, DISK_CALLS, ground.scratch / "open", close=False),
    }
    standings = contest(own, {}, ground.fleet, ground.rounds)
    note += "; closing turns the spool into Parquet"
    row = rate_row("record_disk", "steps/s", standings, Goal(), note)
    row.goal = "measured and stated"
    yield row


def _probe(question: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.probe", question]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def learners(ground: Ground) -> Iterator[Row]:
    """(e) Training on LunarLander and on the market."""
    yield from learning(ground.short.close, ground.fleet, ground.rounds)


def fights(ground: Ground) -> Iterator[Row]:
    """(f) Battles of small teams."""
    yield from battles(ground.fleet, ground.rounds)


def looks(ground: Ground) -> Iterator[Row]:
    """(g) The first view of the dashboard."""
    yield from first_views(ground.scratch, ground.rounds)


WORKS: dict[str, Callable[[Ground], Iterator[Row]]] = {
    "series": series_backtest,
    "environments": environments,
    "sweep": sweep,
    "playing": playing,
    "learning": learners,
    "battle": fights,
    "dashboard": looks,
}
