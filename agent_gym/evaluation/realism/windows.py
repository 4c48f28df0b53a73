"""What a classifier sees of one window of bars (a day of minutes): a row of features.

Features come in three groups: those of closes alone, those of open, high and low beside them, and
those of volume, trades and takers. None of them holds the price level or the calendar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.series import Series
from agent_gym.markets.bars import Bars

Features = dict[str, FloatArray]

_TINY = 1e-30


@dataclass(frozen=True, slots=True)
class Windows:
    """Columns of a series cut into windows: one row a window."""

    tick: float
    before: FloatArray  # the close before each bar
    open: FloatArray
    high: FloatArray
    low: FloatArray
    close: FloatArray
    volume: FloatArray
    trades: FloatArray | None
    taker_buy: FloatArray | None

    @property
    def returns(self) -> FloatArray:
        """Return log close-to-close returns."""
        return np.log(self.close / self.before)

    @property
    def span(self) -> FloatArray:
        """Return high less low, at least one tick."""
        return np.maximum(self.high - self.low, self.tick)


def window_bars(period_ns: int) -> int:
    """Return how many bars a window holds: a day of minutes, ten days of hours."""
    return int(DAY_NS // period_ns) if period_ns < HOUR_NS else 240


def cut_windows(bars: Bars) -> Windows:
    """Cut a series into windows; those of less than a day must hold their day without gaps."""
    length = window_bars(bars.period_ns)
    starts = np.arange(0, len(bars) - length + 1, length)
    if bars.period_ns < HOUR_NS:
        starts = np.flatnonzero(bars.ts % DAY_NS == 0)
        starts = starts[starts + length <= len(bars)]
        starts = starts[bars.ts[starts + length - 1] - bars.ts[starts] == DAY_NS - bars.period_ns]
    if starts.size == 0:
        raise DataError("the series holds no whole window", found=len(bars), expected=length)
    places = starts[:, None] + np.arange(length)
    before = np.concatenate([bars.open[:1], bars.close[:-1]])
    extra = {name: bars.extra.get(name) for name in ("trades", "taker_buy")}
    return Windows(
        tick=Series(bars).tick,
        before=before[places],
        open=bars.open[places],
        high=bars.high[places],
        low=bars.low[places],
        close=bars.close[places],
        volume=bars.volume[places],
        trades=None if extra["trades"] is None else extra["trades"][places],
        taker_buy=None if extra["taker_buy"] is None else extra["taker_buy"][places],
    )


def close_features(windows: Windows) -> Features:
    """Return the features of closes alone."""
    r = windows.returns
    size = np.abs(r)
    spread = r.std(axis=1) + _TINY
    low, middle, high, top = np.quantile(size, [0.25, 0.5, 0.9, 0.99], axis=1)
    found = {
        "log_sd": np.log(spread),
        "mad_over_sd": np.log(size.mean(axis=1) / spread + _TINY),
        "q25_over_q50": low / (middle + _TINY),
        "q90_over_q50": high / (middle + _TINY),
        "q99_over_q90": top / (high + _TINY),
        "max_over_sd": np.log(size.max(axis=1) / spread + _TINY),
        "log_kurtosis": np.log(_moment(r, 4) + _TINY),
        "skew": _moment(r, 3),
        "zero_share": (r == 0.0).mean(axis=1),
        "net_move": np.abs(r.sum(axis=1)) / (spread * np.sqrt(r.shape[1])),
        "leverage_squared": _later(r, r**2, 10),
        "leverage_absolute": _later(r, size, 5),
    }
    found |= {f"acf_r{lag}": _lagged(r, lag) for lag in (1, 2, 5)}
    found |= {f"acf_abs{lag}": _lagged(size, lag) for lag in (1, 2, 5, 10, 30, 60)}
    for length in (5, 15, 60):
        blocks = r.reshape(r.shape[0], -1, length).sum(axis=2)
        found[f"vr{length}"] = np.log((blocks**2).sum(axis=1) / ((r**2).sum(axis=1) + _TINY))
    parts = np.log(size.reshape(r.shape[0], 24, -1).mean(axis=2) + 1e-9)
    found["part_sd"] = parts.std(axis=1)
    for name, chosen in (("early", slice(0, 4)), ("late", slice(13, 17))):
        found[f"{name}_level"] = parts[:, chosen].mean(axis=1) - parts.mean(axis=1)
    return found


def candle_features(windows: Windows) -> Features:
    """Return the features of open, high and low beside the close."""
    w, tick, r = windows, windows.tick, windows.returns
    log_range = np.log(w.span / w.open)
    ratio = np.log(w.high / w.low)
    body = np.abs(w.close - w.open) / w.span
    upper, lower = w.high - np.maximum(w.open, w.close), np.minimum(w.open, w.close) - w.low
    scale = w.span.mean(axis=1, keepdims=True)
    gap = np.abs(w.open - w.before)
    found = {
        "range_over_abs": ratio.mean(axis=1) / (np.abs(r).mean(axis=1) + _TINY),
        "body": body.mean(axis=1),
        "body_sd": body.std(axis=1),
        "no_upper": (upper < tick / 2).mean(axis=1),
        "no_lower": (lower < tick / 2).mean(axis=1),
        "upper_one_tick": ((upper > tick / 2) & (upper < 1.5 * tick)).mean(axis=1),
        "lower_one_tick": ((lower > tick / 2) & (lower < 1.5 * tick)).mean(axis=1),
        "wick_difference": (upper - lower).mean(axis=1) / scale[:, 0],
        "wick_correlation": _correlation(upper / scale, lower / scale),
        "wick_with_return": _correlation(upper - lower, r),
        "wick_then_return": _correlation(((upper - lower) / scale)[:, :-1], r[:, 1:]),
        "wick_memory": _lagged(1.0 - body, 1),
        "range_sd": log_range.std(axis=1),
        "range_skew": _moment(log_range, 3),
        "range_kurtosis": _moment(log_range, 4),
        "gap_share": (gap > tick / 2).mean(axis=1),
        "wide_gap_share": (gap > 1.5 * tick).mean(axis=1),
        "pinned_share": (w.span < 1.5 * tick).mean(axis=1),
        "narrow_share": (w.span < 5.5 * tick).mean(axis=1),
        "range_rank_abs": _correlation(_ranks(ratio), _ranks(np.abs(r))),
        "parkinson": np.log((ratio**2).mean(axis=1) / ((r**2).mean(axis=1) + _TINY) + _TINY),
    }
    return found | {f"acf_range{lag}": _lagged(log_range, lag) for lag in (1, 10, 60)}


def flow_features(windows: Windows) -> Features:
    """Return the features of volume, and of trades and takers where the series has them."""
    w, size = windows, np.abs(windows.returns)
    log_range = np.log(w.span / w.open)
    volume = np.log(np.maximum(w.volume, 1e-3))
    ranks = _ranks(volume)
    found = _shape("volume", volume) | {
        "volume_rank_range": _correlation(ranks, _ranks(log_range)),
        "volume_rank_abs": _correlation(ranks, _ranks(size)),
        "volume_over_range": volume.mean(axis=1) - log_range.mean(axis=1),
        "volume_leads": _correlation(volume[:, :-1], log_range[:, 1:])
        - _correlation(volume[:, 1:], log_range[:, :-1]),
    }
    if w.trades is not None:
        trades = np.log(np.maximum(w.trades, 1.0))
        found |= _shape("trades", trades) | _shape("size", volume - trades)
        ranks = _ranks(trades)
        found |= {
            "trades_with_volume": _correlation(trades, volume),
            "trades_with_size": _correlation(trades, volume - trades),
            "trades_rank_range": _correlation(ranks, _ranks(log_range)),
            "trades_rank_abs": _correlation(ranks, _ranks(size)),
        }
    return found | _taker_features(w, volume, log_range)


def _taker_features(w: Windows, volume: FloatArray, log_range: FloatArray) -> Features:
    if w.taker_buy is None:
        return {}
    r = w.returns
    traded = np.maximum(w.volume, 1e-9)
    tilt = np.where(w.volume > 0.0, 2.0 * w.taker_buy / traded - 1.0, 0.0)
    lean = np.abs(tilt)
    found = {
        "tilt_mean": tilt.mean(axis=1),
        "tilt_sd": tilt.std(axis=1),
        "tilt_kurtosis": _moment(tilt, 4),
        "tilt_rank_return": _correlation(_ranks(tilt), _ranks(r)),
        "tilt_then_return": _correlation(tilt[:, :-1], r[:, 1:]),
        "return_then_tilt": _correlation(r[:, :-1], tilt[:, 1:]),
        "lean_volume": _correlation(lean, volume),
        "lean_range": _correlation(lean, log_range),
        "lean_rank_abs": _correlation(_ranks(lean), _ranks(np.abs(r))),
    }
    return found | {f"acf_tilt{lag}": _lagged(tilt, lag) for lag in (1, 2, 5, 20)}


def _shape(name: str, x: FloatArray) -> Features:
    found = {
        f"{name}_mean": x.mean(axis=1),
        f"{name}_sd": x.std(axis=1),
        f"{name}_skew": _moment(x, 3),
        f"{name}_kurtosis": _moment(x, 4),
    }
    return found | {f"acf_{name}{lag}": _lagged(x, lag) for lag in (1, 10, 60)}


def _centred(x: FloatArray) -> FloatArray:
    centred: FloatArray = x - x.mean(axis=1, keepdims=True)
    return centred


def _moment(x: FloatArray, power: int) -> FloatArray:
    c = _centred(x)
    moment: FloatArray = (c**power).mean(axis=1) / ((c * c).mean(axis=1) ** (power / 2) + _TINY)
    return moment


def _lagged(x: FloatArray, lag: int) -> FloatArray:
    c = _centred(x)
    found: FloatArray = (c[:, :-lag] * c[:, lag:]).mean(axis=1) / ((c * c).mean(axis=1) + _TINY)
    return found


def _correlation(x: FloatArray, y: FloatArray) -> FloatArray:
    a, b = _centred(x), _centred(y)
    spread = np.sqrt((a * a).mean(axis=1) * (b * b).mean(axis=1))
    found: FloatArray = (a * b).mean(axis=1) / (spread + _TINY)
    return found


def _later(x: FloatArray, y: FloatArray, lags: int) -> FloatArray:
    found = [_correlation(x[:, :-lag], y[:, lag:]) for lag in range(1, lags + 1)]
    mean: FloatArray = np.mean(found, axis=0)
    return mean


def _ranks(x: FloatArray) -> FloatArray:
    ranks: FloatArray = rankdata(x, axis=1)
    return ranks
