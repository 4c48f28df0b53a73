"""What a session of a bot on a sandbox exchange measures.

The figures of the market scenarios that need no shock, and a few of its own.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from msgspec import Struct

from agent_gym.evaluation.config import TradingTerms
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.scenarios.market_figures import COMMON, EXACT_BP
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance
from agent_gym.exchange.costs import BPS
from agent_gym.exchange.spot import SpotFloor

SHARED = (
    "net_return",
    "max_drawdown",
    "worst_bar",
    "turnover",
    "costs_paid",
    "gross_exposure",
    "cost_bp",
    "time_in_market",
    "ruin",
    "ledger_gap_bp",
)
SESSION: tuple[Metric, ...] = (
    *(metric for metric in COMMON if metric.name in SHARED),
    Metric(
        name="largest_exposure",
        unit="x equity",
        direction="down",
        meaning="largest position at a close",
        tolerance=Tolerance(rel=0.05, abs=0.01),
        floor=0.05,
    ),
    Metric(
        name="refused_orders",
        unit="orders",
        direction="down",
        meaning="orders that the exchange refused",
        tolerance=Tolerance(rel=0.1, abs=0.1),
        floor=1.0,
    ),
    Metric(
        name="silent_sessions",
        unit="sessions",
        direction="down",
        meaning="1 if the bot never traded",
        tolerance=Tolerance(rel=0.05, abs=0.01),
    ),
    Metric(
        name="fills",
        unit="fills",
        direction="up",
        meaning="trades: how the bot trades, not how well",
        gates=False,
    ),
)


class SessionPlayed(Struct, frozen=True):
    """A session of one account that is over, and the terms that it was played on."""

    floor: SpotFloor
    account: str
    results: BacktestResults
    terms: TradingTerms
    refused: int


def session_figures(played: SessionPlayed) -> dict[str, float | None]:
    """Return the figures of a session."""
    results, capital = played.results, played.terms.capital
    equity, fills, metrics = results.equity, results.fills, results.metrics
    traded = float((np.abs(fills["qty"]) * fills["price"]).sum())
    costs = metrics.fees + metrics.slippage
    lost = 1.0 - equity[1:] / equity[:-1]
    return {
        "net_return": float(equity[-1]) / capital - 1.0,
        "max_drawdown": metrics.max_drawdown,
        "worst_bar": float(max(0.0, lost.max())),
        "turnover": traded / capital,
        "costs_paid": costs / capital,
        "gross_exposure": metrics.exposure,
        "cost_bp": costs / traded / BPS if traded > 0.0 else None,
        "time_in_market": metrics.time_in_market,
        "ruin": float(equity.min() <= played.terms.backtest().account().ruin * capital),
        "ledger_gap_bp": _ledger_gap_bp(played),
        "largest_exposure": float(results.target.max()),
        "refused_orders": float(played.refused),
        "silent_sessions": float(len(fills) == 0),
        "fills": float(len(fills)),
    }


def session_hash(played: SessionPlayed) -> str:
    """Return one hash of all orders, fills and marks.

    The names that a client gives to its orders are left out: ccxt draws them.
    """
    digest = blake2b(digest_size=16)
    for ticket in played.floor.tickets.values():
        wish = ticket.wish
        said = (
            *(ticket.created_ns, wish.symbol, wish.kind.value, wish.qty, wish.price),
            *(wish.validity, wish.post_only, ticket.status.value),
            *((wish.trigger, wish.trail_bps, ticket.list_id) if wish.kind.waits else ()),
        )
        digest.update(repr(said).encode())
    results = played.results
    for part in (results.fills, results.position, results.equity):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _ledger_gap_bp(played: SessionPlayed) -> float:
    """Count the equity anew from fills and stated fees, and return how far the account is off."""
    results, terms = played.results, played.terms
    last = played.floor.marks[played.account][-1]
    cash, units = terms.capital, 0.0
    for fill in played.floor.fills:
        if fill.account == played.account and fill.bar <= last.bar:
            fee_bps = terms.maker_bps if fill.maker else terms.taker_bps
            cash -= fill.qty * fill.price + abs(fill.qty) * fill.price * fee_bps * BPS
            units += fill.qty
    worth = cash + units * float(results.bars.close[-1])
    gap = abs(worth - float(results.equity[-1])) / terms.capital / BPS
    return gap if gap > EXACT_BP else 0.0
