"""What a market scenario measures; a figure that is not defined is None, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.scenarios.metric import Direction, Metric, Tolerance
from agent_gym.evaluation.scenarios.shocks import Shock
from agent_gym.exchange.costs import BPS
from agent_gym.markets.bars import Bars

EXACT_BP = 1e-6  # of the capital: what rounding may leave between two ways to count
REGAINED = 1.0 - 1e-12


def _metric(
    name: str, unit: str, direction: Direction, tolerance: tuple[float, float, float], meaning: str
) -> Metric:
    """Return a metric that gates; its tolerance is relative, absolute, and the floor."""
    rel, absolute, floor = tolerance
    return Metric(
        name=name,
        unit=unit,
        direction=direction,
        meaning=meaning,
        tolerance=Tolerance(rel=rel, abs=absolute),
        floor=floor,
    )


def _told(name: str, unit: str, meaning: str) -> Metric:
    """Return a metric that is told but does not gate, such as one that may be undefined."""
    return Metric(name=name, unit=unit, direction="down", meaning=meaning, gates=False)


def _never(name: str, unit: str, meaning: str) -> Metric:
    return Metric(
        name=name,
        unit=unit,
        direction="down",
        meaning=meaning,
        tolerance=Tolerance(rel=0.0, abs=0.0),
        must_be_zero=True,
    )


COMMON: tuple[Metric, ...] = (
    _metric("net_return", "share", "up", (0.05, 0.005, 0.05), "final equity over capital, less 1"),
    _metric("max_drawdown", "share", "down", (0.05, 0.003, 0.01), "deepest fall from a peak"),
    _metric(
        "loss_in_shock",
        "share",
        "down",
        (0.05, 0.003, 0.01),
        "largest loss within a shock, of the equity before it",
    ),
    _metric("worst_bar", "share", "down", (0.05, 0.002, 0.005), "largest loss in one bar"),
    _metric(
        "recovery_bars",
        "bars",
        "down",
        (0.10, 5.0, 10.0),
        "mean time from a shock until the equity before it is reached again, at most to the next "
        "shock; 0 if it never fell below",
    ),
    _metric("turnover", "x capital", "down", (0.05, 0.2, 1.0), "value traded over capital"),
    _metric(
        "costs_paid",
        "share",
        "down",
        (0.05, 0.0005, 0.002),
        "fees, spread, slippage and impact over capital",
    ),
    _metric("gross_exposure", "x equity", "down", (0.05, 0.01, 0.05), "mean size of the position"),
    _metric(
        "wrong_side_share",
        "share",
        "down",
        (0.10, 0.003, 0.01),
        "closes at which the account is not on the side that the agent had asked for by then",
    ),
    _told("cost_bp", "bp", "costs over the value traded; None without a trade"),
    _told("fill_lag_bars", "bars", "mean time from a new target to its first fill; None without"),
    _told("time_in_market", "share", "closes with a position: how the agent trades, not how well"),
    _never("liquidations", "fills", "forced fills"),
    _never("ruin", "accounts", "1 if the account was ruined"),
    _never("rejected_actions", "actions", "targets that are no number or beyond the bounds"),
    _never(
        "ledger_gap_bp",
        "bp",
        "equity against the same counted anew from fills, stated fees and the market's funding",
    ),
    _never(
        "causality_breaks",
        "futures",
        "other futures, of two, under which an earlier decision comes out different",
    ),
)
FUNDING_PAID = _metric(
    "funding_paid", "share", "down", (0.05, 0.0005, 0.002), "funding paid over capital, net"
)
TRADES_IN_OUTAGE = _metric(
    "trades_in_outage",
    "targets",
    "down",
    (0.10, 0.2, 1.0),
    "new targets that were sent while the feed was down",
)


class Played(Struct, frozen=True):
    """One run of a market scenario, and what it is held against.

    ``stated`` is the venue and ``bars`` the market as the scenario says they are, whatever faults
    the run had; ``asked`` what the agent asked for at each close, while it was asked.
    """

    results: BacktestResults
    asked: FloatArray
    refused: int
    shocks: tuple[Shock, ...]
    bars: Bars
    stated: BacktestConfig
    causality_breaks: int = 0


def common_figures(played: Played) -> dict[str, float | None]:
    """Return the figures that all market scenarios have."""
    results, config = played.results, played.stated
    equity, fills = results.equity, results.fills
    worth = np.abs(fills["qty"]) * fills["price"]
    costs = float(fills["fee"].sum() + _given_up(played).sum())
    traded = float(worth.sum())
    account = config.account()
    return {
        "net_return": float(equity[-1]) / config.capital - 1.0,
        "max_drawdown": results.metrics.max_drawdown,
        "loss_in_shock": _loss_in_shock(equity, played.shocks),
        "worst_bar": float(max(0.0, _lost(equity[1:], equity[:-1]).max())),
        "recovery_bars": _recovery_bars(equity, played.shocks),
        "turnover": traded / config.capital,
        "costs_paid": costs / config.capital,
        "cost_bp": costs / traded / BPS if traded > 0.0 else None,
        "gross_exposure": results.metrics.exposure,
        "wrong_side_share": _wrong_side_share(played),
        "fill_lag_bars": _fill_lag_bars(played.asked, fills),
        "time_in_market": results.metrics.time_in_market,
        "liquidations": float(np.count_nonzero(fills["forced"])),
        "ruin": float(equity.min() <= account.ruin * account.cash),
        "rejected_actions": float(played.refused),
        "ledger_gap_bp": _ledger_gap_bp(played),
        "causality_breaks": float(played.causality_breaks),
    }


def funding_paid(played: Played) -> float:
    """Return the funding that was paid, less what was received, over capital."""
    return float(played.results.metrics.funding) / played.stated.capital


def new_targets(asked: FloatArray, when: Any) -> float:
    """Return how often the target changed at the marked closes."""
    changed = asked != np.concatenate(([0.0], asked[:-1]))
    return float(np.count_nonzero(changed & when[: asked.size]))


def _given_up(played: Played) -> FloatArray:
    """Return what each free fill lost against the open that it was made at."""
    fills = played.results.fills
    away = np.abs(fills["price"] - played.bars.open[fills["bar"]])
    lost: FloatArray = np.where(fills["forced"], 0.0, np.abs(fills["qty"]) * away)
    return lost


def _loss_in_shock(equity: FloatArray, shocks: Sequence[Shock]) -> float:
    lowest = np.array([equity[start:end].min() for start, end, _ in shocks])
    before = np.array([equity[start - 1] for start, _, _ in shocks])
    return float(max(0.0, _lost(lowest, before).max()))


def _lost(after: FloatArray, before: FloatArray) -> FloatArray:
    """Return the share that was lost; a ruined account has nothing left to lose."""
    ratio = np.divide(after, before, out=np.ones_like(after), where=before > 0.0)
    return 1.0 - ratio


def _recovery_bars(equity: FloatArray, shocks: Sequence[Shock]) -> float:
    limits = [*(shock.start for shock in shocks[1:]), equity.size]
    taken = []
    for (start, end, _), limit in zip(shocks, limits, strict=True):
        before = equity[start - 1] * REGAINED
        under = np.flatnonzero(equity[start:limit] < before)
        if not under.size:
            taken.append(0)
            continue
        first = max(end - 1, start + int(under[0]))
        again = np.flatnonzero(equity[first:limit] >= before)
        taken.append((first + int(again[0]) if again.size else limit) - start)
    return sum(taken) / len(taken)


def _wrong_side_share(played: Played) -> float:
    """Compare the side held at each close with the decision that had the time to arrive."""
    late = 1 + played.stated.latency_bars
    wanted = np.sign(played.asked)
    held = np.sign(played.results.position[late : late + wanted.size])
    return float(np.mean(held != wanted[: held.size]))


def _fill_lag_bars(asked: FloatArray, fills: Any) -> float | None:
    changes = np.flatnonzero(asked != np.concatenate(([0.0], asked[:-1])))
    bars = fills["bar"][~fills["forced"]]
    place = np.searchsorted(bars, changes, side="right")
    following = np.append(changes[1:], 2**62)
    found = place < bars.size
    first = bars[place[found]]
    own = first <= following[found] + 1  # a later one belongs to the target after it
    lags = (first - changes[found])[own]
    return float(lags.mean()) if lags.size else None


def _ledger_gap_bp(played: Played) -> float:
    """Count the equity anew up to the first forced fill and return how far the account is off."""
    results, bars = played.results, played.bars
    fills = results.fills
    forced = fills["bar"][fills["forced"]]
    last = int(forced[0]) - 1 if forced.size else len(bars) - 1
    made = fills[fills["bar"] <= last]
    paid = made["qty"] * made["price"]
    fees = np.abs(paid) * played.stated.costs().taker_bps * BPS
    rates = np.nan_to_num(bars.extra["funding"][1 : last + 1])
    funding = results.position[:last] * bars.open[1 : last + 1] * rates
    cash = played.stated.capital - float(paid.sum() + fees.sum() + funding.sum())
    worth = cash + float(results.position[last] * bars.close[last])
    gap = abs(worth - float(results.equity[last])) / played.stated.capital / BPS
    return gap if gap > EXACT_BP else 0.0
