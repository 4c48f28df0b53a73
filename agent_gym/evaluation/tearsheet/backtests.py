"""A sheet from backtests: one run, what stood beside it, and how far the path can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.funding import funding_words
from agent_gym.evaluation.metrics import risk_returns, sharpe
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.statistics import (
    Interval,
    bootstrap_interval,
    mean_interval,
    paired_interval,
)
from agent_gym.evaluation.tearsheet.sheet import Regime, Sheet, Versus
from agent_gym.markets.bars import source_words
from agent_gym.markets.quality import format_time

LEAST_RETURNS = 30  # an interval from fewer would pretend to know something
BPS, PERCENT = 1e4, 100.0
INTERVALS = (
    "Intervals resample the days of this one path in blocks (stationary bootstrap): they tell its "
    "noise, not how another path or market would go."
)


def sheet_of(
    results: BacktestResults,
    beside: Mapping[str, BacktestResults] | None = None,
    *,
    label: str | None = None,
    title: str | None = None,
    verdict: tuple[str, str] | None = None,
    regimes: Sequence[Regime] | None = None,
) -> Sheet:
    """Return the sheet of a backtest.

    Args:
        results: The run that the sheet is about.
        beside: Baselines by label, over the same bars.
        label: What the run is called; by default its agent.
        title: The headline; by default the label.
        verdict: Word and reason, where a protocol has found one.
        regimes: Known states of the market.
    """
    subject = label or results.agent
    runs = {subject: results} | dict(beside or {})
    returns, per_year = _returns(results)
    enough = returns.size >= LEAST_RETURNS
    return Sheet(
        title=title or f"Backtest of {subject}",
        subject=subject,
        ts=results.ts,
        equity={name: run.equity for name, run in runs.items()},
        figures={name: run.metrics.as_dict() for name, run in runs.items()},
        command=results.manifest.command,
        verdict=verdict,
        intervals=_intervals(returns, per_year) if enough else {},
        versus=_versus(results, dict(beside or {})) if enough else (),
        bars=results.bars,
        fills=results.fills,
        trips=results.trips.closed,
        position=results.position,
        regimes=regimes,
        caps=results.caps,
        provenance=_provenance(results),
        manifest=results.manifest.model_dump(mode="json"),
        notes=(INTERVALS,) if enough else (),
    )


def _returns(run: BacktestResults) -> tuple[FloatArray, float]:
    return risk_returns(run.bars.ts, run.bars.period_ns, run.equity)


def _intervals(returns: FloatArray, per_year: float) -> dict[str, Interval]:
    seeds = Seeds(0).child("tear sheet")
    found = {
        "growth_pct_per_year": _scaled(mean_interval(np.log1p(returns), seeds), PERCENT * per_year)
    }
    try:
        found["sharpe"] = bootstrap_interval(lambda part: sharpe(part, per_year), [returns], seeds)
    except DataError:
        # A run that hardly trades has resamples without any move, and so no interval.
        return found
    return found


def _versus(run: BacktestResults, beside: Mapping[str, BacktestResults]) -> tuple[Versus, ...]:
    own, _ = _returns(run)
    seeds = Seeds(0).child("tear sheet")
    unit = "bp a day" if run.bars.period_ns <= DAY_NS else "bp a bar"
    found = []
    for name, other in beside.items():
        theirs, _ = _returns(other)
        if theirs.size == own.size:  # a ruined baseline has no returns to compare with
            band = paired_interval(np.log1p(own), np.log1p(theirs), seeds)
            found.append(Versus(name, _scaled(band, BPS), f"{unit} of log growth"))
    return tuple(found)


def _scaled(band: Interval, factor: float) -> Interval:
    return Interval(band.estimate * factor, band.low * factor, band.high * factor, band.level)


def _provenance(run: BacktestResults) -> dict[str, str]:
    data, manifest = run.manifest.data, run.manifest
    return {
        "source": source_words(data),
        "instrument": f"{run.bars.instrument.symbol}, {run.bars.instrument.exchange}",
        "bars": f"{data['rows']:,} of {data['period']}",
        "first bar opens": format_time(data["first_ns"]),
        "last bar opens": format_time(data["last_ns"]),
        "funding": funding_words(data["funding"], data["rows"]),
        "repairs": ", ".join(f"{k}: {v:,}" for k, v in data["repairs"].items()) or "none",
        "data fingerprint": data["fingerprint"],
        "config hash": manifest.config_hash,
        "commit": manifest.commit or "not known",
        "seeds": ", ".join(map(str, manifest.seeds)),
        "equity hash": run.equity_hash,
    }
