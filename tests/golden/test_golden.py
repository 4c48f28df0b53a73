"""Figures that must not move: a change here is a change of what a trade does.

Write the file anew with ``python -m tests.golden.test_golden`` and say in the changelog why.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from agent_gym.core import Ref, Seeds, make, names
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.files import write_json
from agent_gym.core.types import ActionSpec, EpisodeStart, Nanos, Role
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.markets import Instrument
from agent_gym.markets.readers import FundingRates, ReadRequest, attach_funding, read_bars

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "equity.json"
RATE = 1e-6
COSTS = Costs(impact=0.0, participation=0.002, latency_bars=1)


def rates_of(bars):
    """Return a rate every eight hours that goes up and down; each is a whole part of 1e-6."""
    due = bars.ts[bars.ts % (8 * HOUR_NS) == 0]
    waves = np.arange(due.size) * 37 % 101 - 40
    return FundingRates(due, RATE * waves, "golden")


def figures():
    """Return exact figures of every rule, spot and perpetual, as hexadecimal floats."""
    found = {}
    for kind in ("spot", "perpetual"):
        instrument = Instrument(symbol="GOLD/USDT", exchange="golden", kind=kind)
        bars = read_bars(FOLDER / "bars.csv", request=ReadRequest(instrument=instrument))
        if kind == "perpetual":
            bars = attach_funding(bars, rates_of(bars))
        for name in (name for name in names("agent") if name.startswith("rules/")):
            agent = make("agent", Ref(use=name))
            seeds, period_ns = Seeds(7), Nanos(bars.period_ns)
            start = EpisodeStart(Role("trader"), agent.needs, ActionSpec(), seeds, period_ns)
            targets = agent.targets(start, {need: getattr(bars, need) for need in agent.needs})
            result = run_series(bars, targets, COSTS, AccountRules(max_leverage=2.0))
            found[f"{kind} {name}"] = {
                "equity": float(result.equity[-1]).hex(),
                "fees": float(result.totals["fees"]).hex(),
                "slippage": float(result.totals["slippage"]).hex(),
                "funding": float(result.totals["funding"]).hex(),
                "fills": len(result.fills),
            }
    return found


def test_figures_have_not_moved():
    assert figures() == json.loads(EXPECTED.read_text())


def test_the_golden_run_trades():
    expected = json.loads(EXPECTED.read_text())
    busy = [name for name, row in expected.items() if row["fills"] > 0]
    assert len(busy) >= 14
    assert len({row["equity"] for row in expected.values()}) >= 8
    paid = [name for name, row in expected.items() if float.fromhex(row["funding"]) != 0.0]
    assert len(paid) == 8
    assert all(name.startswith("perpetual ") for name in paid)


@pytest.mark.parametrize("field", ["taker_bps", "slippage_bps"])
def test_a_changed_cost_would_be_seen(field, monkeypatch):
    other = COSTS.model_copy(update={field: 11.5})
    monkeypatch.setitem(figures.__globals__, "COSTS", other)
    assert figures() != json.loads(EXPECTED.read_text())


def test_a_changed_funding_rate_would_be_seen(monkeypatch):
    monkeypatch.setitem(figures.__globals__, "RATE", 1.0000001e-6)
    assert figures() != json.loads(EXPECTED.read_text())


if __name__ == "__main__":
    write_json(EXPECTED, figures())
