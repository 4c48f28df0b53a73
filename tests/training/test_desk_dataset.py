from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import (
    FilterConfig,
    Outcome,
    PnLSnapshot,
    RecentContext,
    Score,
    SignalFilter,
    signal_features,
)
from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk import PaperDesk, TrainingConfig, TrainingModule
from agent_gym.training.desk.dataset import uniqueness
from agent_gym.training.desk.planted import PlantedLaw, draw, planted_dataset
from agent_gym.training.desk.preparation import Preparation
from agent_gym.training.desk.splitting import forward_folds, purged_split
from tests.samples import random_bars
from tests.training.learning_samples import QUICK, START, busy_records, remembered, signal_at

DAY = 86_400.0
BARS = random_bars(700, 5)
TOLD = busy_records(300, 1)
MIDDLE = START + 15 * DAY + 1234.5


def same(a, b) -> bool:
    arrays = ("X", "y", "t", "t_end", "weight", "payoff", "groups", "counterfactual")
    return (
        a.hash == b.hash
        and a.feature_names == b.feature_names
        and a.excluded == b.excluded
        and all(np.array_equal(getattr(a, n), getattr(b, n), equal_nan=n == "X") for n in arrays)
    )


def test_rows_hold_what_was_known_and_what_came_of_it():
    data = TrainingModule(remembered(TOLD), BARS, QUICK).prepare_dataset()
    assert len(data) > 200
    assert (np.diff(data.t) >= 0.0).all()
    assert (data.t_end > data.t).all()
    assert ((data.payoff > 0.0) == (data.y == 1)).all()
    assert {"strategy=carry", "strategy=momentum", "spread_bp", "drawdown"} <= {*data.feature_names}
    flags = data.X[:, [n.startswith("strategy=") for n in data.feature_names]]
    assert (flags.sum(axis=1) == 1.0).all()
    assert 0 < data.counts["paper"] < len(data)
    alone = uniqueness(data.t, data.t_end, ["BTC/USDT"] * len(data))
    assert data.weight == pytest.approx(alone * np.where(data.counterfactual, 0.5, 1.0))
    assert alone.min() < 0.2
    assert data.excluded["immature"] > 0


@settings(max_examples=12, deadline=None)
@given(days=st.floats(4.0, 20.0))
def test_nothing_known_later_changes_the_table(days):
    as_of = START + days * DAY
    whole = TrainingModule(remembered(TOLD), BARS, QUICK).prepare_dataset(as_of)
    early = [item for item in TOLD if item[1] <= as_of]
    closed = int(np.searchsorted(BARS.ts + HOUR_NS, as_of * SECOND_NS, "right"))
    alone = TrainingModule(remembered(early), BARS.rows(0, closed), QUICK).prepare_dataset(as_of)
    assert same(whole, alone)


def test_poison_from_the_future_changes_nothing():
    clean = TrainingModule(remembered(TOLD), BARS, QUICK).prepare_dataset(MIDDLE)
    assert len(clean) > 100
    ctx = remembered(TOLD)
    after = MIDDLE + 1.0
    for row in range(50):
        name = f"s{row}"
        # Speaks of the past, became known later: the worst kind.
        ctx.store_outcome(
            Outcome(name, "win", 1.0, 1.0, pnl_horizon={"24h": 1e6}, closed_at=START), after
        )
        ctx.store_rejection(
            {"signal_id": name, "code": "risk.leverage", "strategy": "carry"}, after
        )
        ctx.store_signal(signal_at(START, f"poison{row}", strategy="carry"), after)
    close = np.where(BARS.ts + HOUR_NS > MIDDLE * SECOND_NS, 7.0 * BARS.close, BARS.close)
    high = np.where(close > BARS.close, 9.0 * BARS.high, BARS.high)
    poisoned = replace(BARS, close=close, high=high)
    assert same(clean, TrainingModule(ctx, poisoned, QUICK).prepare_dataset(MIDDLE))
    # The same poison in the past is seen: the test above can fail.
    seen = TrainingModule(ctx, poisoned, QUICK).prepare_dataset(MIDDLE + 30 * DAY)
    assert seen.payoff.max() > 1e3


def test_a_horizon_that_has_not_passed_is_no_label_even_if_a_barrier_was_touched():
    ctx = RecentContext()
    at = START + 100 * 3600.0
    ctx.store_signal(signal_at(at, "s"), at)
    wild = replace(BARS, high=BARS.high * np.where(np.arange(len(BARS)) == 101, 9.0, 1.0))
    training = TrainingModule(ctx, wild, QUICK)
    assert training.prepare_dataset(at + DAY - 1.0).excluded == {"immature": 1}
    found = training.prepare_dataset(at + DAY)
    assert len(found) == 1
    assert found.t_end[0] == at + 2 * 3600.0


def test_live_features_are_the_rows_of_the_table():
    told = [item for item in TOLD if item[0] == "signal"][:40]
    ctx, seen = RecentContext(), {}
    ctx.store_pnl(PnLSnapshot(START, 1e6, 1e6, 0.0, 0.02))
    prepared = Preparation(ctx, PaperDesk(BARS, QUICK.paper), QUICK)

    class Recorder:
        def score(self, features):
            seen[current.signal_id] = dict(features)
            return Score(1.0, 0.5, "recorder")

    desk = SignalFilter(FilterConfig(data_stale_s=1e6, max_spread_bp=1e4), Recorder())
    for _, at, current in told:
        current = replace_params(current)
        view = prepared.view(current, at, ctx.as_of(at))
        desk.check(current, view, ctx)
        ctx.store_signal(current, at)
    assert len(seen) > 20
    for _, at, signal in told:
        if signal.signal_id in seen:
            assert prepared.features(replace_params(signal), at) == seen[signal.signal_id]


def replace_params(signal):
    params = {
        "amount": 1.0,
        "price": None,
        "base": "BTC",
        "quote": "USDT",
        "side": signal.params.side,
    }
    return signal_at(signal.timestamp, signal.signal_id, strategy=signal.strategy, **params)


def test_too_little_is_said_with_counts():
    ctx = RecentContext()
    ctx.store_signal(
        {"signal_id": "signal1", "strategy": "m", "params": {"amount": 0.1}, "timestamp": 1.0}
    )
    training = TrainingModule(ctx)
    data = training.prepare_dataset()
    result = training.train_model(data)
    assert (data.status, result.status, result.model) == ("insufficient", "insufficient", None)
    assert "0 labelled signals, 200 are needed" in result.reason
    assert "1 immature" in result.reason
    assert training.prepare_dataset(as_of=1.0 + 2 * DAY).excluded == {"no_outcome": 1}


@pytest.mark.parametrize(("n", "share", "status"), [(199, 0.5, "insufficient"), (200, 0.5, "ok")])
def test_two_hundred_rows_are_needed(n, share, status):
    drawn = draw(PlantedLaw.null(share), n, Seeds(0))
    assert planted_dataset(drawn, TrainingConfig()).status == status


def test_thirty_of_a_class_are_needed():
    drawn = draw(PlantedLaw.null(0.5), 400, Seeds(0))
    payoff = np.where(np.arange(400) < 29, 1.0, -1.0)
    data = planted_dataset(replace(drawn, payoff=payoff))
    assert data.status == "insufficient"
    assert "29 wins and 371 losses, 30 of each are needed" in data.reason


def test_repeats_and_old_signals_are_counted_out():
    ctx = remembered(TOLD[:50])
    first = next(item for item in TOLD if item[0] == "signal")
    ctx.store_signal(first[2], first[1] + 60.0)
    data = TrainingModule(ctx, BARS, TrainingConfig(window_days=1.0)).prepare_dataset(MIDDLE)
    assert data.excluded["repeated_id"] == 1
    assert data.excluded["too_old"] > 10


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), min_size=1, max_size=12))
def test_uniqueness_is_the_mean_share_of_time(spans):
    t = np.array([float(a) for a, _ in spans])
    end = np.array([float(a + b) for a, b in spans])
    crowd = np.array([((t <= s) & (end > s)).sum() for s in range(50)])
    slow = [
        np.mean([1.0 / crowd[s] for s in range(int(a), int(b))])
        for a, b in zip(t, end, strict=True)
    ]
    assert uniqueness(t, end, ["A"] * len(spans)) == pytest.approx(slow)
    assert uniqueness(t, end, [str(i) for i in range(len(spans))]) == pytest.approx(1.0)


def test_no_label_looks_across_a_cut():
    data = planted_dataset(draw(PlantedLaw(), 400, Seeds(1)), QUICK)
    data = replace(data, t_end=data.t + 3 * 900.0)
    split = purged_split(data)
    assert split.fit.t_end.max() < split.calibrate.t.min()
    assert split.calibrate.t_end.max() < split.test.t.min()
    assert split.purged == 6
    assert [len(split.fit), len(split.calibrate), len(split.test)] == [237, 77, 80]
    for past, judged in forward_folds(data, 3):
        assert past.t_end.max() < judged.t.min()


def test_features_of_the_desk_are_finite():
    signal = signal_at(START, "s")
    ctx = RecentContext()
    view = Preparation(ctx, PaperDesk(None), QUICK).view(signal, START, ctx)
    assert np.isfinite(list(signal_features(signal, view, ctx).values())).all()
