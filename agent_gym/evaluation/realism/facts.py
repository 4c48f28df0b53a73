"""The stylised facts of crypto bars: each has a name, a unit and one way to be computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_gym.core.clock import HOUR_NS, MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism import sums
from agent_gym.evaluation.realism.series import Series
from agent_gym.evaluation.realism.sums import DaySums
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

LEVERAGE_LAGS = range(1, 11)
DECAY_LAGS = (1, 2, 5, 10, 20, 60, 120, 240, 480, 720, 1440)
SHORTEST = 4  # a series must hold this many times the longest lag, else the fact is unscored


@dataclass(frozen=True, slots=True)
class Fact:
    """One measurable property; None means that the series cannot say it, never zero.

    Attributes:
        name: What reports call it.
        unit: What the number counts.
        sums: The day sums of a series, or None where a column is missing.
        horizon: The longest lag or block in bars.
    """

    name: str
    unit: str
    sums: Callable[[Series], DaySums | None]
    horizon: int = 1

    def day_sums(self, series: Series) -> DaySums | None:
        """Return the sums of each day, or None where the series is too short or lacks a column."""
        return self.sums(series) if series.returns.size >= SHORTEST * self.horizon else None

    def compute(self, bars: Bars) -> float | None:
        """Return the fact of a series."""
        found = self.day_sums(Series(bars))
        return None if found is None else found.total()


def facts_of(period_ns: int) -> tuple[Fact, ...]:
    """Return the facts that are known for a bar period: one minute or one hour."""
    if period_ns == MINUTE_NS:
        return (*_prices((10, 60, 240, 1440), DECAY_LAGS, (60, 1440)), *_flow(), *_takers())
    if period_ns == HOUR_NS:
        return (*_prices((10, 60, 240), DECAY_LAGS[:-1], (24,)), *_flow())
    raise ConfigError(
        "no facts are known for this bar period",
        found=format_period(period_ns),
        expected="1m or 1h",
        remedy="Resample the file with agent-gym data import --resample 1h",
    )


def _prices(
    lags: tuple[int, ...], decay: tuple[int, ...], blocks: tuple[int, ...]
) -> tuple[Fact, ...]:
    return (
        Fact("std_bp", "bp", lambda s: sums.deviation(s, s.returns, 1e4)),
        Fact("hill1%", "index", lambda s: sums.tail_index(s, s.absolute), 100),
        Fact("acf_r1", "correlation", lambda s: sums.autocorrelation(s, s.returns, 1)),
        *(_memory("acf_abs", _absolute, lag) for lag in (1, *lags)),
        Fact("beta", "exponent", lambda s: sums.decay(s, s.absolute, decay), decay[-1]),
        Fact(
            "lev1_10",
            "correlation",
            lambda s: sums.cross_lags(s, s.returns, s.squared, LEVERAGE_LAGS),
            LEVERAGE_LAGS[-1],
        ),
        Fact("zero_ret", "share", lambda s: sums.mean(s, (s.returns == 0.0) * 1.0)),
        *(_kurtosis(length) for length in blocks),
        *(_variance_ratio(length) for length in (5, 60)),
        Fact("hour_ratio", "ratio", sums.hour_ratio, 24),
        Fact("rg_over_absr", "ratio", lambda s: sums.ratio(s, s.range, s.absolute)),
        *(_memory("acf_lr", _log_range, lag) for lag in (1, 10, 240)),
        Fact("no_upwick", "share", lambda s: sums.mean(s, s.no_upper_wick)),
        Fact("body_frac", "share", lambda s: sums.mean(s, s.body)),
    )


def _flow() -> tuple[Fact, ...]:
    return (
        Fact(
            "sp_vol_absr",
            "rank correlation",
            lambda s: sums.rank_correlation(s, s.volume, s.absolute),
        ),
        Fact(
            "sp_vol_range",
            "rank correlation",
            lambda s: sums.rank_correlation(s, s.volume, s.range),
        ),
        *(_memory("acf_lv", _log_volume, lag) for lag in (1, 60)),
    )


def _takers() -> tuple[Fact, ...]:
    return (
        Fact("lv_sd", "log units", lambda s: sums.deviation(s, s.log_volume)),
        Fact("ln_sd", "log units", lambda s: _if(s.log_trades, lambda x: sums.deviation(s, x))),
        Fact(
            "corr_ln_lv",
            "correlation",
            lambda s: _if(s.log_trades, lambda x: sums.correlation(s, x, s.log_volume)),
        ),
        *(_memory("acf_ln", _log_trades, lag) for lag in (1, 60)),
        Fact("imb_sd", "share", lambda s: _if(s.imbalance, lambda x: sums.deviation(s, x))),
        _memory("imb_acf", _imbalance, 1),
        Fact(
            "imb_sp_r",
            "rank correlation",
            lambda s: _if(s.imbalance, lambda x: sums.rank_correlation(s, x, s.returns)),
        ),
    )


def _memory(name: str, column: Callable[[Series], FloatArray | None], lag: int) -> Fact:
    return Fact(
        f"{name}{lag}",
        "correlation",
        lambda s: _if(column(s), lambda x: sums.autocorrelation(s, x, lag)),
        lag,
    )


def _kurtosis(length: int) -> Fact:
    return Fact(
        f"kurt{length}", "excess kurtosis", lambda s: sums.block_kurtosis(s, length), length
    )


def _variance_ratio(length: int) -> Fact:
    return Fact(f"VR{length}", "ratio", lambda s: sums.variance_ratio(s, length), length)


def _if(column: FloatArray | None, build: Callable[[FloatArray], DaySums]) -> DaySums | None:
    return None if column is None else build(column)


def _absolute(series: Series) -> FloatArray | None:
    return series.absolute


def _log_range(series: Series) -> FloatArray | None:
    return series.log_range


def _log_volume(series: Series) -> FloatArray | None:
    return series.log_volume


def _log_trades(series: Series) -> FloatArray | None:
    return series.log_trades


def _imbalance(series: Series) -> FloatArray | None:
    return series.imbalance
