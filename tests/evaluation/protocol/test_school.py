"""What is learned under a combination: its training rows, and not a trace of any other."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import registry as names
from agent_gym.core.registry import Entry, Ref
from agent_gym.core.types import Decision
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.pieces import Pieces
from agent_gym.evaluation.protocol.school import spliced
from agent_gym.evaluation.protocol.splits import Combinatorial
from tests.evaluation.protocol.protocol_samples import Nothing, Pupil
from tests.samples import random_bars

BARS = random_bars(600, kind="spot")
SPLIT = Combinatorial(groups=5, tested=2, purge=2, embargo=10)
GRID = tuple(
    Ref(use="rules/sma-cross", params={"fast": fast, "slow": slow})
    for fast in (2, 4, 9)
    for slow in (30, 80)
)
PRICES = ("open", "high", "low", "close")
NEEDS = ("close", "volume", "volatility_ratio")


class Scholar(Pupil):
    """Keeps everything it is shown, a feature with a long memory among it."""

    name = "test/scholar"
    needs = NEEDS

    def fit(self, start, columns):
        assert tuple(columns) == NEEDS
        self.fitted = [np.column_stack([columns[name] for name in NEEDS])]

    def targets(self, start, columns):
        return np.full(columns["close"].size, float(self.fitted[0][:, 0].std() > 1.0))


class Online:
    """Decides bar by bar and learns while it trades."""

    name = "test/online"
    needs = ("close",)
    made: ClassVar[list] = []

    def __init__(self, config):
        self.seen = 0
        Online.made.append(self)

    def fit(self, start, columns):
        self.rows = columns["close"].copy()

    def reset(self, start): ...

    def act(self, obs):
        return Decision(0.5)

    def observe(self, step):
        self.seen += 1


@pytest.fixture(autouse=True)
def known(monkeypatch):
    Pupil.made.clear()
    Online.made.clear()
    for made in (Scholar, Online):
        monkeypatch.setitem(names._entries, ("agent", made.name), Entry(Nothing, made))


def pieces(bars=BARS):
    return Pieces(bars, SPLIT, BacktestConfig(), 3)


def learned(bars, number):
    scholar = pieces(bars).lessons(number).fitted(Ref(use="test/scholar"))
    return scholar.fitted[0]


def poisoned(rows, seed=1):
    """Change prices and volumes of some rows beyond recognition."""
    rng = np.random.Generator(np.random.PCG64(seed))
    factor = np.ones(len(BARS))
    factor[rows] = np.exp(rng.normal(0.0, 0.5, len(rows)))
    columns = {name: getattr(BARS, name) * factor for name in (*PRICES, "volume")}
    return replace(BARS, **columns)


@pytest.mark.parametrize("number", range(10))
def test_tested_and_embargoed_rows_leave_no_trace_in_what_is_learned(number):
    combination = SPLIT.combination(len(BARS), SPLIT.choices()[number])
    others = np.setdiff1d(np.arange(len(BARS)), combination.train)
    assert others.size > combination.test.size  # embargoed rows are among them
    bad = poisoned(others)
    assert np.array_equal(learned(bad, number), learned(BARS, number))
    ours, theirs = pieces().lessons(number), pieces(bad).lessons(number)
    for ref in GRID:
        assert np.array_equal(ours._net(ref), theirs._net(ref))
    assert ours.best(GRID) == theirs.best(GRID)
    # The poison has teeth: features of the whole series carry it into the training rows, ...
    rows = combination.train
    clean, carried = (columns_for(bars, NEEDS)["volatility_ratio"][rows] for bars in (BARS, bad))
    assert np.array_equal(clean, carried) == (rows.max() < combination.test.min())
    # ... and a single training row that is changed is noticed.
    assert not np.array_equal(learned(poisoned(rows[5:6]), number), learned(BARS, number))


def test_what_is_learned_differs_between_combinations():
    best = {str(pieces().lessons(number).best(GRID)) for number in range(10)}
    assert len(best) > 1
    lengths = {learned(BARS, number).shape[0] for number in range(10)}
    assert len(lengths) > 1


def test_the_best_is_the_best_of_a_backtest_on_the_rows():
    lessons = pieces().lessons(4)
    from_engine = {}
    engine = Pieces(lessons.bars, SPLIT, BacktestConfig(), 3).ledger(4)
    for ref in GRID:
        equity = engine.past(ref).equity
        assert np.allclose(lessons._net(ref)[:-1], (np.diff(equity) / equity[:-1])[:-1])
        net = np.diff(equity) / equity[:-1]
        from_engine[str(ref)] = net.mean() / net.std()
    assert str(lessons.best(GRID)) == max(from_engine, key=from_engine.get)


@given(st.sets(st.integers(0, 99), min_size=3))
def test_joined_rows_keep_their_returns_and_never_jump(rows):
    bars = BARS.rows(0, 100)
    rows = np.array(sorted(rows))
    joined = spliced(bars, rows)
    assert np.array_equal(joined.ts, bars.ts[rows])
    inner = np.flatnonzero(np.diff(rows) == 1)
    ours, theirs = joined.close[inner + 1] / joined.close[inner], bars.close[rows]
    assert np.allclose(ours, theirs[inner + 1] / theirs[inner])
    seams = np.flatnonzero(np.diff(rows) > 1) + 1
    assert np.allclose(joined.open[seams], joined.close[seams - 1])
    assert np.allclose(joined.close * joined.volume, bars.close[rows] * bars.volume[rows])
    for name in PRICES:
        assert np.allclose(
            getattr(joined, name) / joined.open, (getattr(bars, name) / bars.open)[rows]
        )


def test_extra_columns_go_with_their_scale():
    extra = {"spread": BARS.close * 1e-4, "ofi": 3.0 / BARS.close, "obi": np.full(600, 0.25)}
    bars = replace(BARS, extra=extra)
    joined = spliced(bars, np.concatenate([np.arange(100), np.arange(300, 600)]))
    assert np.allclose(joined.extra["spread"], joined.close * 1e-4)
    assert np.allclose(joined.extra["ofi"] * joined.close, 3.0)
    assert set(joined.extra["obi"]) == {0.25}


def test_who_may_learn_while_trading_is_fitted_anew_for_every_stretch():
    arm = Arm(label="online", refs=(Ref(use="test/online"),))
    pieces().decide(arm, 4)
    taught = [each for each in Online.made if hasattr(each, "rows")]
    assert len(taught) == 2
    assert np.array_equal(taught[0].rows, taught[1].rows)
    assert all(each.seen > 0 for each in taught)
