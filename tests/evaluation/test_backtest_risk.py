from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.types import Decision
from agent_gym.evaluation.backtest import BacktestConfig
from agent_gym.evaluation.funding import funding_words
from agent_gym.evaluation.risk_desk import MIN_RECORD, TrackRecord
from agent_gym.exchange.risk import TailConfig, tail_risk
from agent_gym.markets.readers import FundingRates, attach_funding
from tests.evaluation.backtest_samples import (
    CROSS,
    HOLD,
    Puppet,
    run,
)
from tests.samples import bars_of, random_bars, without_funding

FIELDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "capital": (20_000.0, {}),
    "taker_bps": (20.0, {}),
    "maker_bps": (2.0, {"maker_share": 0.5}),
    "maker_share": (0.5, {}),
    "slippage_bps": (3.0, {}),
    "half_spread_bps": (4.0, {}),
    "impact": (0.0, {}),
    "participation": (0.5, {}),
    "latency_bars": (2, {}),
    "max_leverage": (0.5, {}),
    "allow_short": (False, {}),
    "position_size": (0.5, {}),
    "kelly_fraction": (0.5, {"kelly_fraction": 0.01}),
    "var_limit": (0.02, {}),
    "es_limit": (0.02, {}),
    "max_drawdown": (0.1, {}),
}


@pytest.mark.parametrize("field", sorted(set(BacktestConfig.model_fields) - {"missing_funding"}))
def test_every_field_of_the_config_acts(field):
    value, base = FIELDS[field]
    # Seed 3 rises, so that the agent earns a track record for Kelly to bet on.
    bars = random_bars(400, 3, kind="perpetual", volume=300.0, sigma=0.02)
    agent = HOLD if field == "kelly_fraction" else CROSS
    plain = run(bars, agent, **base)
    changed = run(bars, agent, **base | {field: value})
    assert plain.metrics.trades > 0
    assert changed.equity_hash != plain.equity_hash
    assert changed.manifest.config_hash != plain.manifest.config_hash


@pytest.mark.parametrize("agent", [CROSS, Puppet(lambda t, obs: 0.5)])
def test_missing_funding_acts_in_both_doors(agent):
    bars = random_bars(60, funding=1e-3)
    bare = without_funding(bars)
    with pytest.raises(DataError, match="no funding column"):
        run(bare, agent)
    free = run(bare, agent, missing_funding="zero")
    assert free.metrics.funding == 0.0
    assert free.manifest.config["backtest"]["missing_funding"] == "zero"
    assert run(bars, agent).metrics.funding != 0.0


def test_the_manifest_says_which_funding_was_charged():
    bars = random_bars(60, funding=1e-3)
    rates = bars.extra["funding"].copy()
    rates[:5] = np.nan
    holes, bare = replace(bars, extra={"funding": rates}), without_funding(bars)

    def said(bars, missing_funding="refuse"):
        made = run(bars, HOLD, missing_funding=missing_funding)
        facts = made.payload()["provenance"]["funding"]
        assert facts == made.manifest.data["funding"]
        return facts, funding_words(facts, len(bars))

    refuse, zero = {"missing_funding": "refuse"}, {"missing_funding": "zero"}
    assert said(bars)[0] == {"due": True, "rates": "bars", "bars_as_zero": 0} | refuse
    assert said(bare, "zero")[0] == {"due": True, "rates": None, "bars_as_zero": 60} | zero
    facts, words = said(holes, "zero")
    assert facts == {"due": True, "rates": "bars", "bars_as_zero": 5} | zero
    assert words == "charged at the rates of the bars, and zero for 5 of 60 bars"
    assert said(random_bars(60, kind="spot")) == ({"due": False}, "none is due")
    due = FundingRates(bars.ts[::8], np.full(8, 1e-4), "rates.csv")
    assert said(attach_funding(bare, due))[1] == "charged at the rates of rates.csv"


@pytest.mark.parametrize("field", ["kelly_fraction", "var_limit", "es_limit", "max_drawdown"])
def test_a_risk_part_that_is_null_is_absent(field):
    bars = random_bars(400, kind="perpetual")
    assert run(bars, CROSS).caps == {}
    assert run(bars, CROSS, **{field: 0.05}).caps["decisions"] == 399
    assert len(run(bars, CROSS, **{field: 0.05}).caps["bound"]) == 1


def test_a_maker_fee_that_would_change_nothing_is_refused():
    with pytest.raises(ValidationError, match="maker_share"):
        BacktestConfig(maker_bps=1.0)
    again = BacktestConfig.model_validate(BacktestConfig().model_dump())
    assert again == BacktestConfig()


def test_all_volume_at_the_maker_fee_is_that_fee():
    bars = random_bars(200)
    made = run(bars, CROSS, maker_bps=3.0, maker_share=1.0)
    taken = run(bars, CROSS, taker_bps=3.0)
    assert made.equity_hash == taken.equity_hash


def test_the_drawdown_breaker_ends_a_steady_loss():
    price = 100.0 * 0.99 ** np.arange(120.0)
    bars = bars_of(price, price, price, price)
    free = run(bars, HOLD)
    held = run(bars, HOLD, max_drawdown=0.15)
    assert free.metrics.max_drawdown > 0.6
    assert held.metrics.max_drawdown <= 0.15 + 0.011
    assert held.caps["bound"]["drawdown"] > 50
    assert held.metrics.total_return < -0.04  # it was in the market at first


def test_the_breaker_stays_shut():
    price = np.concatenate([np.full(10, 100.0), np.full(10, 70.0), np.linspace(70.0, 300.0, 100)])
    bars = bars_of(price, price, price, price)
    result = run(bars, HOLD, max_drawdown=0.15)
    assert result.caps["breaker_tripped_ns"] == int(bars.ts[11])
    assert not result.position[12:].any()


def test_a_tail_cap_holds_every_target():
    bars = random_bars(800, kind="perpetual", sigma=0.02)
    free, capped = run(bars, HOLD), run(bars, HOLD, var_limit=0.01)
    assert free.target.max() == 1.0
    assert not capped.target[:24].any()  # no day of history yet: nothing is held
    assert 0.0 < capped.target.max() < 0.5
    assert capped.metrics.max_drawdown < 0.5 * free.metrics.max_drawdown
    tails = tail_risk(bars.close, 24, TailConfig())
    assert np.nanmax(capped.target[:-1] * tails.var_long[:-1]) <= 0.01 * (1.0 + 1e-12)
    looser = run(bars, HOLD, var_limit=0.02)
    assert (looser.target >= capped.target).all()
    assert capped.metrics.trades < 400  # a cap that loosens a little does not trade


def test_kelly_uses_the_forecast_of_the_agent():
    def decide(edge: float) -> Any:
        return lambda t, obs: Decision(1.0, {"expected_return": edge, "expected_return_se": 1e-6})

    bars = random_bars(300, sigma=0.02)
    some = run(bars, Puppet(decide(4e-4)), kelly_fraction=0.25)
    none = run(bars, Puppet(decide(-4e-4)), kelly_fraction=0.25)
    assert some.caps["forecasts"] == {"agent": 299}
    assert some.target[100:].mean() == pytest.approx(0.25 * 4e-4 / 4e-4, rel=0.3)
    assert not none.target.any()
    with pytest.raises(AgentError, match="standard error"):
        run(
            bars, Puppet(lambda t, obs: Decision(1.0, {"expected_return": 1.0})), kelly_fraction=1.0
        )


def test_kelly_without_a_forecast_asks_the_track_record():
    rising = 100.0 * np.exp(0.002 * np.arange(400.0))
    falling = rising[::-1].copy()
    good = run(bars_of(rising, rising, rising, rising), HOLD, kelly_fraction=0.25)
    bad = run(bars_of(falling, falling, falling, falling), HOLD, kelly_fraction=0.25)
    assert not good.target[:MIN_RECORD].any()
    assert good.target[-1] == 1.0
    assert good.caps["forecasts"] == {"track record": 399}
    assert not bad.target.any()


def test_a_track_record_is_mean_and_standard_error():
    record, values = TrackRecord(), np.sin(np.arange(50.0)) + 0.1
    for value in values:
        record.add(float(value))
    mean, error = record.forecast(1.0) or (0.0, 0.0)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(50))
    assert record.forecast(-0.5) == (pytest.approx(-mean), pytest.approx(error))
