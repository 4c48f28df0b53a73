"""What a run was worth: figures from mark-to-market equity, fills and round trips, net of cost.

A figure that is not defined is None, never 0. Risk figures use daily returns where bars are shorter
than a day (marks at UTC midnight), else the bars themselves. Yearly figures always come from the
bar period.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import lo_factor, moments, psr
from agent_gym.exchange.risk import TailConfig, christoffersen, exceedances, kupiec_pof, tail_risk
from agent_gym.exchange.round_trips import RoundTrips
from agent_gym.exchange.series import SeriesResult
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import YEAR_NS, bars_per_year

# Returns that differ by rounding alone have no spread to divide by.
ROUNDING = 1e-12
# The VaR whose exceedances are counted: the same estimate that the risk parts use.
VAR = TailConfig()


@dataclass(frozen=True, slots=True)
class Metrics:
    """The figures of one run; money is in quote units, shares and returns are fractions.

    Attributes:
        bars: Bars of the run, the first of which is only looked at.
        years: The same in years of 365 days.
        final_equity: Cash and position at the last close.
        total_return: Final equity over opening cash, less 1.
        growth_bps_per_bar: Log growth of equity a bar, in basis points.
        growth_pct_per_year: Log growth of equity a year, in percent.
        volatility: Standard deviation of returns, a year.
        sharpe: Mean over standard deviation of returns, a year.
        sortino: Mean over downside deviation about 0 (over all returns), a year.
        max_drawdown: Deepest fall from a peak, as a fraction of the peak.
        max_drawdown_days: From that peak until it was reached again, or to the end.
        calmar: Compound yearly return over the deepest drawdown.
        turnover_per_bar: Value traded over equity, a bar.
        exposure: Mean size of the position as a fraction of equity.
        time_in_market: Share of closes with a position.
        fees: Fees paid.
        slippage: What spread, slippage and impact took.
        funding: Funding paid; below 0 it was received.
        cost_share: All costs over the profit before costs; None if that was not above 0.
        trades: Fills, forced ones included.
        liquidations: Forced fills.
        round_trips: Closed trips, first in first out.
        hit_rate: Share of closed trips that earned money after fees.
        profit_factor: Won over lost in closed trips; None if none lost.
        sharpe_lo: The Sharpe ratio corrected for autocorrelation (Lo 2002).
        psr: Probability that the true Sharpe ratio is above 0.
        var_days: Days whose loss was held against the one-day VaR known before; None if too few.
        var_exceedances: Days that lost more than that VaR.
        kupiec_p: P-value that exceedances are as frequent as the VaR says.
        christoffersen_p: P-value that exceedances do not follow each other; None without any.
        share_of_attainable: Growth over that of the known optimum; None where none is known.
    """

    bars: int
    years: float
    final_equity: float
    total_return: float
    growth_bps_per_bar: float | None
    growth_pct_per_year: float | None
    volatility: float | None
    sharpe: float | None
    sortino: float | None
    max_drawdown: float
    max_drawdown_days: float
    calmar: float | None
    turnover_per_bar: float | None
    exposure: float
    time_in_market: float
    fees: float
    slippage: float
    funding: float
    cost_share: float | None
    trades: int
    liquidations: int
    round_trips: int
    hit_rate: float | None
    profit_factor: float | None
    sharpe_lo: float | None
    psr: float | None
    var_days: int | None
    var_exceedances: int | None
    kupiec_p: float | None
    christoffersen_p: float | None
    share_of_attainable: float | None

    def as_dict(self) -> dict[str, int | float | None]:
        """Return the figures by name."""
        return asdict(self)


def measure(
    bars: Bars,
    run: SeriesResult,
    trips: RoundTrips,
    *,
    attainable_bps_per_bar: float | None = None,
) -> Metrics:
    """Return the figures of a run over bars.

    Args:
        bars: What was traded.
        run: What the venue left behind.
        trips: Its round trips.
        attainable_bps_per_bar: Net log growth of the known optimum on the same bars, if there is
            one.
    """
    equity, n, opening = run.equity, len(bars), float(run.equity[0])
    years = (n - 1) / bars_per_year(bars.period_ns)
    returns, per_year = risk_returns(bars.ts, bars.period_ns, equity)
    depth, length = drawdown(equity)
    growth = log_growth(equity)
    growth_bps_per_bar = None if growth is None else 1e4 * growth / (n - 1)
    hits = var_hits(returns)
    held = exposures(run.position, bars.close, equity)
    fees, slippage, funding = (run.totals[name] for name in ("fees", "slippage", "funding"))
    return Metrics(
        bars=n,
        years=years,
        final_equity=float(equity[-1]),
        total_return=float(equity[-1]) / opening - 1.0,
        growth_bps_per_bar=growth_bps_per_bar,
        growth_pct_per_year=None if growth is None else 1e2 * growth / years,
        volatility=volatility(returns, per_year),
        sharpe=sharpe(returns, per_year),
        sortino=sortino(returns, per_year),
        max_drawdown=depth,
        max_drawdown_days=length * bars.period_ns / DAY_NS,
        calmar=calmar(growth, years, depth),
        turnover_per_bar=turnover(run, n),
        exposure=float(held.mean()),
        time_in_market=float(np.mean(run.position != 0.0)),
        fees=fees,
        slippage=slippage,
        funding=funding,
        cost_share=cost_share(run, opening),
        trades=len(run.fills),
        liquidations=int(run.fills["forced"].sum()),
        round_trips=len(trips.closed),
        hit_rate=trips.hit_rate,
        profit_factor=trips.profit_factor,
        sharpe_lo=sharpe_lo(returns, per_year),
        psr=probability_of_skill(returns),
        var_days=None if hits is None else hits.size,
        var_exceedances=None if hits is None else int(hits.sum()),
        kupiec_p=kupiec_p(hits),
        christoffersen_p=christoffersen_p(hits),
        share_of_attainable=share_of_attainable(growth_bps_per_bar, attainable_bps_per_bar),
    )


def risk_returns(
    ts: NDArray[np.int64], period_ns: int, equity: FloatArray
) -> tuple[FloatArray, float]:
    """Return the returns that risk is measured on, and how many of them a year holds.

    ``ts`` are open times; equity is marked at the closes and was ``equity[0]`` from the first open
    on. Days that are not covered from midnight to midnight are left out.
    """
    marks, per_year = risk_marks(ts, period_ns, equity)
    return simple_returns(marks), per_year


def risk_marks(
    ts: NDArray[np.int64], period_ns: int, equity: FloatArray
) -> tuple[FloatArray, float]:
    """Return the equity between which risk is measured, and how many such steps a year holds."""
    if period_ns >= DAY_NS:
        return equity, YEAR_NS / period_ns
    times = np.concatenate([ts[:1], ts + period_ns])
    marks = np.concatenate([equity[:1], equity])
    first, last = -(-int(times[0]) // DAY_NS), int(times[-1]) // DAY_NS
    midnights = np.arange(first, last + 1, dtype=np.int64) * DAY_NS
    at = np.searchsorted(times, midnights, side="right") - 1
    return marks[at], YEAR_NS / DAY_NS


def simple_returns(equity: FloatArray) -> FloatArray:
    """Return the relative changes; none at all if the equity was ever gone, as no ratio is left."""
    if equity.size < 2 or not (equity > 0.0).all():
        return np.empty(0)
    changes: FloatArray = np.diff(equity) / equity[:-1]
    return changes


def log_growth(equity: FloatArray) -> float | None:
    """Return log(last / first), None if nothing is left."""
    return math.log(equity[-1] / equity[0]) if equity[-1] > 0.0 else None


def volatility(returns: FloatArray, per_year: float) -> float | None:
    """Return the standard deviation a year; None with fewer than two returns."""
    if returns.size < 2:
        return None
    return float(returns.std(ddof=1)) * math.sqrt(per_year)


def sharpe(returns: FloatArray, per_year: float) -> float | None:
    """Return mean over standard deviation, a year; None where the returns do not vary.

    Example:
        >>> round(sharpe(np.array([0.01, -0.01, 0.03]), 365.0), 6)
        9.552487
    """
    if returns.size < 2:
        return None
    return _ratio(float(returns.mean()), float(returns.std(ddof=1)), returns, per_year)


def sortino(returns: FloatArray, per_year: float) -> float | None:
    """Return mean over downside deviation about 0, a year; None if no return fell below 0."""
    if returns.size < 2:
        return None
    below = float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2)))
    return _ratio(float(returns.mean()), below, returns, per_year)


def sharpe_lo(returns: FloatArray, per_year: float) -> float | None:
    """Return the Sharpe ratio a year where returns depend on each other (Lo 2002)."""
    found, factor = moments(returns), lo_factor(returns, per_year)
    return None if found is None or factor is None else found.sharpe * factor


def probability_of_skill(returns: FloatArray) -> float | None:
    """Return the probability that the true Sharpe ratio is above 0 (PSR)."""
    found = moments(returns)
    return None if found is None else psr(found)


def var_hits(returns: FloatArray) -> NDArray[np.bool_] | None:
    """Return for each day whether it lost more than the one-day VaR known before; None if too few.

    The VaR is that of the account itself: the estimate that caps positions, made from the marks of
    equity until then. Days on which equity did not move say nothing about risk and are left out,
    and nothing is judged before the estimate has replaced its prior.
    """
    moves = returns[returns != 0.0]
    if moves.size <= VAR.prior_days:
        return None
    marks = np.concatenate([[1.0], np.cumprod(1.0 + moves)])
    known = tail_risk(marks, 1, VAR).var_long.copy()
    known[: VAR.prior_days] = np.nan
    return exceedances(marks, known, 1)


def kupiec_p(hits: NDArray[np.bool_] | None) -> float | None:
    """Return the p-value that the VaR is exceeded as often as it says."""
    return None if hits is None else kupiec_pof(hits, 1.0 - VAR.level).p_value


def christoffersen_p(hits: NDArray[np.bool_] | None) -> float | None:
    """Return the p-value that an exceedance says nothing about the next day; None without any."""
    return None if hits is None or not hits[:-1].any() else christoffersen(hits).p_value


def share_of_attainable(growth: float | None, attainable: float | None) -> float | None:
    """Return growth over that of the optimum on the same bars; None unless that is above 0.

    Example:
        >>> share_of_attainable(1.5, 2.0), share_of_attainable(1.5, 0.0)
        (0.75, None)
    """
    if growth is None or attainable is None or not attainable > 0.0:
        return None
    return growth / attainable


def _ratio(mean: float, spread: float, returns: FloatArray, per_year: float) -> float | None:
    if spread <= ROUNDING * float(np.abs(returns).max()):
        return None
    return mean / spread * math.sqrt(per_year)


def drawdown(equity: FloatArray) -> tuple[float, int]:
    """Return the deepest fall from a peak and the bars from that peak to its recovery or the end.

    Example:
        >>> drawdown(np.array([100.0, 120.0, 90.0, 110.0, 130.0, 125.0]))
        (0.25, 3)
    """
    falls = drawdowns(equity)
    deepest = int(np.argmax(falls))
    if falls[deepest] == 0.0:
        return 0.0, 0
    peak = int(np.argmax(equity[: deepest + 1]))
    back = np.flatnonzero(equity[deepest:] >= equity[peak])
    end = deepest + int(back[0]) if back.size else equity.size - 1
    return float(falls[deepest]), end - peak


def drawdowns(equity: FloatArray) -> FloatArray:
    """Return the fall from the highest equity so far, one value a bar."""
    peaks = np.maximum.accumulate(equity)
    falls: FloatArray = 1.0 - equity / peaks
    return falls


def calmar(growth: float | None, years: float, depth: float) -> float | None:
    """Return the compound yearly return over the deepest drawdown; None without a drawdown."""
    if growth is None or depth <= 0.0:
        return None
    yearly = growth / years
    # A run of a few bars can compound to a number that no float holds.
    return math.expm1(yearly) / depth if yearly < math.log(np.finfo(np.float64).max) else None


def exposures(position: FloatArray, close: FloatArray, equity: FloatArray) -> FloatArray:
    """Return the size of the position as a fraction of equity; 0 where no equity is left."""
    value = np.abs(position) * close
    return np.divide(value, equity, out=np.zeros_like(value), where=equity > 0.0)


def turnover(run: SeriesResult, n_bars: int) -> float | None:
    """Return the value traded over the equity before it, a bar; None if equity was ever gone."""
    fills = run.fills
    before = run.equity[fills["bar"] - 1]
    if not (before > 0.0).all():
        return None
    return float(np.sum(np.abs(fills["qty"]) * fills["price"] / before)) / (n_bars - 1)


def cost_share(run: SeriesResult, opening: float) -> float | None:
    """Return costs over the profit before costs; None unless there was such a profit."""
    totals = run.totals
    costs = totals["fees"] + totals["slippage"] + totals["funding"]
    gross = totals["equity"] - opening + costs - totals["insurance"]
    return costs / gross if gross > ROUNDING * opening else None
