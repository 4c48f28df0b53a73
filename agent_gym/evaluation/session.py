"""What a bot did in a session on a spot floor, judged as a backtest is.

The ledger is the venue's own: equity, cash and positions at each close, and every fill. Figures,
baselines and the tear sheet come from the same code as those of a backtest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import DataError
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Ref
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.baselines import BASELINES, Comparison, label_of
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.funding import funding_facts
from agent_gym.evaluation.metrics import drawdown, exposures, measure
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.tearsheet import Sheet, sheet_of
from agent_gym.evaluation.tearsheet.sheet import Number
from agent_gym.exchange.round_trips import LOT, TRIP, RoundTrips, round_trips
from agent_gym.exchange.series import FILL, PAGE, SeriesResult
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Fill
from agent_gym.markets.bars import Bars
from agent_gym.markets.basket import basket
from agent_gym.markets.periods import YEAR_NS

FEWEST_DAYS = 30
RATIOS = ("sharpe", "sortino", "sharpe_lo", "psr")
TOTALS = ("fees", "slippage", "funding", "insurance", "realised", "equity")


@dataclass(frozen=True, slots=True)
class SessionOrigin:
    """What a session was made with, for its manifest.

    Attributes:
        config: Capital and costs, those of the baselines too.
        argv: The command.
        settings: What else decides the result.
        seed: Of the market.
        commit: Of the source.
    """

    config: BacktestConfig
    argv: Sequence[str] = ("agent-gym", "sandbox")
    settings: Mapping[str, Any] | None = None
    seed: int = 0
    commit: str | None = None


def judge_session(
    floor: SpotFloor, account: str, origin: SessionOrigin, beside: Sequence[Ref] = BASELINES
) -> Comparison:
    """Return the results of an account beside baselines with the same costs and timing."""
    main = session_results(floor, account, origin)
    engine = BacktestEngine(origin.config, command=origin.argv, commit=origin.commit)
    runs = {account: main}
    runs |= {label_of(ref): engine.run(main.bars, ref, origin.seed) for ref in beside}
    return Comparison(account, runs)


def score_so_far(floor: SpotFloor, account: str) -> dict[str, float | int]:
    """Return how an account stands at the close of the last bar that is over."""
    marks = floor.marks[account]
    equity, bar = np.array([mark.equity for mark in marks]), marks[-1].bar
    return {
        "bars_played": len(marks) - 1,
        "opening_equity": float(equity[0]),
        "equity": float(equity[-1]),
        "total_return": float(equity[-1] / equity[0] - 1.0),
        "max_drawdown": drawdown(equity)[0],
        "fills": sum(fill.account == account and fill.bar <= bar for fill in floor.fills),
        "fees": float(floor.venue.account(account).fees),
    }


def too_short(figures: Mapping[str, Any]) -> str | None:
    """Return why ratios of returns are not shown; None where there are days enough.

    They are those of whole days, so that of a few days can be below 0 beside a gain.

    Example:
        >>> too_short({"years": 0.5}) is None
        True
    """
    days = int(float(figures["years"]) * YEAR_NS / DAY_NS)
    if days >= FEWEST_DAYS:
        return None
    return f"No Sharpe ratio: it is one of whole days, and {days} are fewer than {FEWEST_DAYS}."


def session_sheet(comparison: Comparison) -> Sheet:
    """Return the tear sheet of a session."""
    main = comparison.main
    title = f"Sandbox session of {comparison.subject}"
    sheet = replace(
        sheet_of(main, comparison.baselines, label=comparison.subject, title=title),
        kind="Sandbox session",
    )
    short = too_short(main.metrics.as_dict())
    if short is not None:
        sheet = replace(
            sheet,
            figures={arm: without_ratios(found) for arm, found in sheet.figures.items()},
            intervals={k: v for k, v in sheet.intervals.items() if k not in RATIOS},
            notes=(*sheet.notes, short),
        )
    several = main.bars.provenance.details.get("basket")
    if not several:
        return sheet
    note = f"Candles show an index of {', '.join(several)}; fills are in fills.parquet."
    return replace(sheet, fills=None, trips=None, notes=(*sheet.notes, note))


def without_ratios(figures: Mapping[str, Number]) -> dict[str, Number]:
    """Return figures without those that a few days say nothing of."""
    return {name: None if name in RATIOS else value for name, value in figures.items()}


def session_results(floor: SpotFloor, account: str, origin: SessionOrigin) -> BacktestResults:
    """Return what an account did, up to the last bar that is over."""
    marks = floor.marks[account]
    if len(marks) < 2:
        raise DataError(
            "the session ended before a bar had passed",
            where=account,
            remedy="Let the clock go on, or step it",
        )
    fills = [fill for fill in floor.fills if fill.account == account and fill.bar <= marks[-1].bar]
    bars, held = _traded(floor, account, fills)
    equity = np.array([mark.equity for mark in marks])
    run = SeriesResult(
        equity, _pages(floor, account, held), _rows(fills, floor.first), _sums(floor, account)
    )
    trips = _trips(fills, floor.first)
    config = {"agent": {"use": account}, "backtest": origin.config.model_dump(mode="json")}
    return BacktestResults(
        agent=account,
        bars=bars,
        ts=bars.ts + bars.period_ns,
        equity=equity,
        position=run.position,
        cash=run.cash,
        target=exposures(run.position, bars.close, equity),
        fills=run.fills,
        trips=trips,
        metrics=measure(bars, run, trips),
        caps={},
        manifest=describe(
            argv=list(origin.argv),
            config=config | {"sandbox": dict(origin.settings or {})},
            data=bars.describe() | {"funding": funding_facts(bars, floor.venue.costs)},
            seeds=(origin.seed,),
            commit=origin.commit,
        ),
    )


def _traded(floor: SpotFloor, account: str, fills: Sequence[Fill]) -> tuple[Bars, FloatArray]:
    """Return the bars that an account is judged on, and how many units of them it held."""
    venue, marks = floor.venue, floor.marks[account]
    touched = {fill.symbol for fill in fills}
    chosen = [symbol for symbol in venue.symbols if symbol in touched] or list(venue.symbols)
    parts = [venue.tape(name).bars.rows(floor.first, marks[-1].bar + 1) for name in chosen]
    bars = basket(parts)
    places = [venue.symbols.index(name) for name in chosen]
    units = np.array([[mark.positions[place] for place in places] for mark in marks])
    if len(parts) == 1:
        return bars, units[:, 0]
    closes = np.stack([part.close for part in parts], axis=1)
    held: FloatArray = (units * closes).sum(axis=1) / bars.close
    return bars, held


def _pages(floor: SpotFloor, account: str, held: FloatArray) -> NDArray[Any]:
    marks = floor.marks[account]
    pages = np.empty(len(marks), dtype=PAGE)
    pages["bar"], pages["position"] = np.arange(len(marks)), held
    pages["cash"] = [mark.cash for mark in marks]
    return pages


def _rows(fills: Sequence[Fill], first: int) -> NDArray[Any]:
    rows = [(fill.bar - first, fill.qty, fill.price, fill.fee, False) for fill in fills]
    return np.array(rows, dtype=FILL)


def _sums(floor: SpotFloor, account: str) -> dict[str, float]:
    seen = floor.venue.account(account)
    return {name: float(getattr(seen, name)) for name in TOTALS}


def _trips(fills: Sequence[Fill], first: int) -> RoundTrips:
    """Return the round trips of each instrument, in the order in which they ended."""
    closed, lots = [np.empty(0, dtype=TRIP)], [np.empty(0, dtype=LOT)]
    for symbol in sorted({fill.symbol for fill in fills}):
        own = [fill for fill in fills if fill.symbol == symbol]
        own.sort(key=lambda fill: fill.bar)
        found = round_trips(
            [fill.bar - first for fill in own],
            [fill.ts for fill in own],
            [fill.qty for fill in own],
            [fill.price for fill in own],
            [fill.fee for fill in own],
        )
        closed.append(found.closed)
        lots.append(found.open_lots)
    ended = np.concatenate(closed)
    return RoundTrips(ended[np.argsort(ended["exit_bar"], kind="stable")], np.concatenate(lots))
