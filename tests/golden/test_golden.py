"""Figures that must not move: a change here is a change of what a trade does.

Write the file anew with ``python -m tests.golden.test_golden`` and say in the changelog why.
"""

import json
from pathlib import Path

import pytest

from agent_gym.core import Ref, Seeds, make, names
from agent_gym.core.files import write_json
from agent_gym.core.types import ActionSpec, EpisodeStart, Role
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.markets import Instrument
from agent_gym.markets.readers import ReadRequest, read_bars

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "equity.json"
COSTS = Costs(impact=0.0, participation=0.002, latency_bars=1)


def figures():
    """Return exact figures of every rule, spot and perpetual, as hexadecimal floats."""
    found = {}
    for kind in ("spot", "perpetual"):
        instrument = Instrument(symbol="GOLD/USDT", exchange="golden", kind=kind)
        bars = read_bars(FOLDER / "bars.csv", request=ReadRequest(instrument=instrument))
        for name in (name for name in names("agent") if name.startswith("rules/")):
            agent = make("agent", Ref(use=name))
            start = EpisodeStart(Role("trader"), agent.needs, ActionSpec(), Seeds(7))
            targets = agent.targets(start, {need: getattr(bars, need) for need in agent.needs})
            result = run_series(bars, targets, COSTS, AccountRules(max_leverage=2.0))
            found[f"{kind} {name}"] = {
                "equity": float(result.equity[-1]).hex(),
                "fees": float(result.totals["fees"]).hex(),
                "slippage": float(result.totals["slippage"]).hex(),
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


@pytest.mark.parametrize("field", ["taker_bps", "slippage_bps"])
def test_a_changed_cost_would_be_seen(field, monkeypatch):
    other = COSTS.model_copy(update={field: 11.5})
    monkeypatch.setitem(figures.__globals__, "COSTS", other)
    assert figures() != json.loads(EXPECTED.read_text())


if __name__ == "__main__":
    write_json(EXPECTED, figures())
