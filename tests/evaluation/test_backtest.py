from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import Ref
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation
from agent_gym.evaluation import stepwise
from agent_gym.markets import Bars
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.repair import RepairPolicy
from tests.evaluation.backtest_samples import (
    CROSS,
    DICE,
    HOLD,
    RULES,
    Puppet,
    Shy,
    Whole,
    assert_same,
    run,
)
from tests.samples import bars_of, flat_bars, random_bars


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kind", ["spot", "perpetual"])
def test_whole_series_and_step_by_step_agree_to_the_bit(name, kind):
    bars, ref = random_bars(300, kind=kind, funding=1e-4), Ref(use=name, params=RULES[name])
    assert_same(run(bars, ref, 7), run(bars, Shy(ref), 7))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["spot", "perpetual"]),
    st.sampled_from([CROSS, DICE, HOLD]),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([1.0, 3.0]),
    st.integers(0, 3),
    st.sampled_from([None, 0.02]),
)
def test_both_doors_agree_for_any_config(seed, kind, ref, size, leverage, latency, participation):
    bars = random_bars(120, seed, kind=kind, sigma=0.03, volume=300.0, funding=1e-3)
    fields = {
        "position_size": size,
        "max_leverage": leverage,
        "latency_bars": latency,
        "participation": participation,
    }
    assert_same(run(bars, ref, seed, **fields), run(bars, Shy(ref), seed, **fields))


def test_a_ruined_account_ends_the_same_way_in_both_doors():
    price = np.concatenate([np.full(10, 100.0), np.full(20, 40.0), np.linspace(41.0, 80.0, 20)])
    bars = bars_of(price, price, price, price, kind="perpetual")
    wish = np.array([1.0, 0.5] * 25)

    def played(t: int, obs: Observation) -> float:
        return float(wish[t])

    fields = {"max_leverage": 10.0, "position_size": 10.0, "participation": None}
    whole = run(bars, Whole(lambda close: wish[: close.size]), **fields)
    steps = run(bars, Puppet(played), **fields)
    assert_same(whole, steps)
    assert whole.metrics.liquidations == 1
    assert whole.equity[-1] == whole.equity[12] <= 1.0
    assert not whole.target[12:].any()


def test_round_trips_at_a_constant_price_lose_exactly_the_costs():
    wish = np.array([1.0, 0.0] * 6)
    fields = {"impact": 0.0, "participation": None, "slippage_bps": 2.0, "half_spread_bps": 1.0}
    result = run(flat_bars(12), Whole(lambda close: wish[: close.size]), **fields)
    value = np.sum(np.abs(result.fills["qty"]) * result.fills["price"])
    lost = 10_000.0 - result.equity[-1]
    assert result.metrics.trades == 11
    assert result.metrics.fees == pytest.approx(value * 1e-3, rel=1e-12)
    assert lost == pytest.approx(result.metrics.fees + result.metrics.slippage, abs=1e-9)
    assert result.metrics.slippage == pytest.approx(
        np.sum(np.abs(result.fills["qty"])) * 100.0 * 3e-4, rel=1e-12
    )


def test_nothing_is_filled_on_the_deciding_bar():
    wish = np.zeros(30)
    wish[10:] = 1.0
    result = run(random_bars(30), Whole(lambda close: wish[: close.size]))
    assert result.fills["bar"].tolist() == [11]
    assert (result.equity[:11] == 10_000.0).all()


def test_money_is_conserved():
    bars = random_bars(500, kind="perpetual", funding=5e-4)
    result = run(bars, DICE, max_leverage=3.0, position_size=3.0)
    worth = result.cash + result.position * bars.close
    assert result.equity == pytest.approx(worth, abs=1e-9)
    closed = result.trips.closed["net_pnl"].sum() + result.trips.open_pnl(float(bars.close[-1]))
    open_fees = result.trips.open_lots["fees"].sum()
    assert result.equity[-1] - 10_000.0 == pytest.approx(
        closed - open_fees - result.metrics.funding, abs=1e-6
    )


def test_targets_are_zero_until_the_agent_is_ready():
    result = run(random_bars(100), Ref(use="rules/sma-cross", params={"fast": 5, "slow": 40}))
    assert not result.target[:39].any()
    assert not result.position[:40].any()
    assert result.target[39:].any()


def sparse_leak(close, *, ahead=True):
    """Knows the next bar, and acts on it only if it moves much."""
    moves = close[1:] / close[:-1] - 1.0
    moves = np.append(moves, 0.0) if ahead else np.append(0.0, moves)
    return np.where((np.abs(moves) > 0.0132) & (np.abs(moves) < 0.2), np.sign(moves), 0.0)


@pytest.mark.parametrize("n_bars", [2, 3, 400, 3000])
def test_the_same_rule_on_the_last_bar_is_left_alone(n_bars):
    result = run(random_bars(n_bars), Whole(lambda close: sparse_leak(close, ahead=False)))
    assert result.target.any() == (n_bars >= 400)


@pytest.mark.parametrize("seed", range(8))
def test_a_sparse_leak_is_caught_in_a_long_series(seed):
    with pytest.raises(AgentError, match="come after it"):
        run(random_bars(20_000, seed, sigma=0.005), Whole(sparse_leak))


@pytest.mark.parametrize(
    "cheat",
    [
        lambda close: np.append(np.sign(np.diff(close)), 0.0),
        lambda close: np.where(close < close.mean(), 1.0, 0.0),
        lambda close: np.where(close < close[-1], 1.0, 0.0),
        sparse_leak,
    ],
    ids=["next bar", "mean of all", "last bar", "sparse"],
)
def test_an_agent_that_looks_ahead_is_caught(cheat):
    with pytest.raises(AgentError, match="come after it"):
        run(random_bars(400), Whole(cheat))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (lambda close: np.zeros(close.size - 1), "one target a bar"),
        (lambda close: np.where(close > close[0], np.nan, 0.0), "finite"),
        (lambda close: np.full(close.size, np.inf), "finite"),
    ],
    ids=["short", "nan", "infinite"],
)
def test_a_series_of_targets_must_be_whole(targets, message):
    with pytest.raises(AgentError, match=message):
        run(random_bars(60), Whole(targets))


def test_an_honest_series_agent_is_not_accused():
    bars = random_bars(400)
    result = run(bars, Whole(lambda close: np.where(np.diff(close, prepend=close[0]) < 0, 1.0, 0)))
    assert result.metrics.trades > 50


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1_000), st.integers(20, 110), st.sampled_from([{}, {"var_limit": 0.02}]))
def test_the_future_does_not_reach_the_past(seed, cut, fields):
    bars = random_bars(120, seed, kind="perpetual", funding=1e-3)
    poisoned = Bars(
        bars.instrument,
        bars.period_ns,
        bars.ts,
        *(
            np.where(np.arange(120) < cut, column, 1e9)
            for column in (bars.open, bars.high, bars.low, bars.close, bars.volume)
        ),
        {"funding": np.where(np.arange(120) < cut, bars.extra["funding"], 0.5)},
    )
    honest, other = run(bars, CROSS, **fields), run(poisoned, CROSS, **fields)
    assert np.array_equal(honest.equity[:cut], other.equity[:cut])
    assert np.array_equal(honest.target[:cut], other.target[:cut])
    short = run(bars.rows(0, cut), CROSS, **fields)
    assert np.array_equal(honest.equity[:cut], short.equity)


def test_an_agent_sees_one_bar_at_a_time():
    bars = random_bars(50, kind="perpetual")
    puppet = Puppet(lambda t, obs: 0.5)
    run(bars, puppet)
    close = puppet.start.column("close")
    assert [obs.features[close] for obs in puppet.seen] == bars.close[:-1].tolist()
    assert [obs.ts for obs in puppet.seen] == (bars.ts + bars.period_ns)[:-1].tolist()
    assert len(puppet.steps) == 49


def test_an_agent_is_told_what_was_really_done():
    puppet = Puppet(lambda t, obs: Decision(0.8, {"mood": 1.0}, "because"))
    result = run(random_bars(30), puppet, position_size=0.5)
    assert puppet.steps[0].decision == Decision(0.4, {"mood": 1.0}, "because")
    assert result.target.tolist() == [0.4] * 30


def test_actions_may_be_arrays_and_are_held_within_the_leverage():
    array = run(random_bars(40), Puppet(lambda t, obs: np.array([7.0])))
    number = run(random_bars(40), Puppet(lambda t, obs: 1))
    assert array.equity_hash == number.equity_hash
    assert array.target.max() == 1.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([np.nan])])
def test_an_action_that_is_not_a_number_stops_the_run(value):
    with pytest.raises(AgentError, match="finite"):
        run(random_bars(40), Puppet(lambda t, obs: value if t == 9 else 0.0))


def test_whatever_an_agent_raises_comes_out():
    def fail(t: int, obs: Observation) -> float:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(random_bars(40), Puppet(fail))


def test_a_ledger_that_differs_from_the_steps_is_an_error(monkeypatch):
    honest = stepwise.CappedTrader.act

    def forgetful(self: Any, obs: Observation) -> Decision:
        made = honest(self, obs)
        self.targets[-1] = 0.0  # the planted fault: what is kept is not what was traded
        return made

    monkeypatch.setattr(stepwise.CappedTrader, "act", forgetful)
    with pytest.raises(Exception, match="differ"):
        run(random_bars(40), Shy(HOLD))


def test_what_cannot_be_run_is_refused():
    with pytest.raises(DataError, match="fewer than two"):
        run(random_bars(1), HOLD)
    with pytest.raises(ConfigError, match="no agent is named"):
        run(random_bars(30), Ref(use="rules/nothing"))
    with pytest.raises(ConfigError, match="slow"):
        run(random_bars(30), Ref(use="rules/sma-cross", params={"slow": "many"}))


def test_a_series_agent_may_read_features():
    class Feature(Whole):
        needs = ("momentum_4",)

        def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
            return np.clip(columns[self.needs[0]], 0.0, 1.0)

    bars = random_bars(200)
    name = next(n for n in _shown(bars) if not n.endswith("_known") and n != "close")
    Feature.needs = (name,)
    whole = run(bars, Feature(None))
    at = _shown(bars).index(name)
    steps = run(bars, Puppet(lambda t, obs: min(max(obs.features[at], 0.0), 1.0)))
    assert whole.equity_hash == steps.equity_hash
    Feature.needs = ("nonsense",)
    with pytest.raises(AgentError, match="does not show"):
        run(bars, Feature(None))


def _shown(bars: Bars) -> tuple[str, ...]:
    puppet = Puppet(lambda t, obs: 0.0)
    run(bars.rows(0, 5), puppet)
    return tuple(name for name in puppet.start.feature_names if name not in ("open", "high", "low"))


def test_real_bars_with_holes_run_alike_in_both_doors():
    data = Path(__file__).resolve().parents[3] / "shared" / "data"
    file = data / "BTCUSDT_spot_1h_2018-2024.parquet"
    if not file.is_file():
        pytest.skip(f"no real bars at {file}")
    repair = RepairPolicy(gaps="keep", coverage="keep")
    bars = read_bars(file, request=ReadRequest(start="2018-02-01", end="2018-02-28", repair=repair))
    assert (np.diff(bars.ts) > bars.period_ns).any()
    cross = Ref(use="rules/sma-cross", params={"fast": 3, "slow": 8})
    assert_same(run(bars, cross), run(bars, Shy(cross)))
    held = run(bars, HOLD)
    market = bars.close[-1] / bars.open[1] - 1.0
    assert held.metrics.total_return == pytest.approx(market, abs=0.003)
    assert held.metrics.total_return < market
