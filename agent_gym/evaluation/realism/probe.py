"""Is there money in the market that its past gives away? Gradient boosting looks for it.

A generator whose returns can be predicted beyond the cost of a trade teaches agents to farm the
generator. The probe learns on some seeds and trades its strongest predictions on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.series import Series
from agent_gym.evaluation.realism.threads import one_thread
from agent_gym.markets.bars import Bars

ROUND_TRIP_BP = 10.0
SHARES = (0.1, 0.01)
MINUTE_HORIZONS = (1, 5, 15, 60)
HOUR_HORIZONS = (1, 4, 24)
_LOOKBACKS = (1, 2, 5, 15, 60)
_WARM_UP = 240
_MOST_ROWS = 400_000


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What the strongest predictions earned on bars that were never learned from."""

    horizon_bars: int
    share_traded: float
    trades: int
    gross_bp: float
    error_bp: float

    @property
    def net_bp(self) -> float:
        """Return what is left of a trade after the costs of a round trip."""
        return self.gross_bp - ROUND_TRIP_BP


def probe(learn: Sequence[Bars], test: Sequence[Bars]) -> tuple[ProbeRow, ...]:
    """Learn to predict on some series, trade others; the same series give the same rows."""
    if not learn or not test:
        raise ConfigError("the probe needs series to learn from and others to trade")
    rows = []
    horizons = MINUTE_HORIZONS if learn[0].period_ns < HOUR_NS else HOUR_HORIZONS
    known, unseen = [Series(bars) for bars in learn], [Series(bars) for bars in test]
    past = np.vstack([past_features(series) for series in known])
    stride = max(1, len(past) // _MOST_ROWS)
    fresh = np.vstack([past_features(series) for series in unseen])
    for horizon in horizons:
        target = np.concatenate([next_moves(series, horizon) for series in known])
        usable = np.flatnonzero(np.isfinite(target))[::stride]
        limit = np.quantile(
            np.abs(target[usable]), 0.999
        )  # a few crashes must not be all it learns
        model = HistGradientBoostingRegressor(
            max_iter=80, learning_rate=0.08, max_leaf_nodes=15, min_samples_leaf=200, random_state=0
        )
        with one_thread():
            model.fit(past[usable], np.clip(target[usable], -limit, limit))
            expected = model.predict(fresh)
        earned = np.concatenate([next_moves(series, horizon) for series in unseen])
        rows += [_traded(expected, earned, horizon, share) for share in SHARES]
    return tuple(rows)


def best_net_bp(rows: Sequence[ProbeRow]) -> float:
    """Return the best net result of a trade over all horizons and shares."""
    return max(row.net_bp for row in rows)


def past_features(series: Series) -> FloatArray:
    """Return what is known at each close: past moves, ranges, volume and takers, scaled."""
    r, n = series.returns, series.returns.size
    scale = _trailing(series.absolute, 60) + 1e-9
    steps = np.concatenate([[0.0], np.cumsum(r)])
    columns = []
    for back in _LOOKBACKS:
        moved = np.zeros(n)
        moved[back - 1 :] = steps[back:] - steps[:-back]
        columns.append(moved / (scale * np.sqrt(back)))
    bars = series.bars
    centre = (bars.high + bars.low)[1:] / 2.0
    columns += [
        np.log(scale),
        series.log_range - np.log(scale),
        (bars.close[1:] - centre) / series.span,
        series.log_volume - _trailing(series.log_volume, 60),
        np.log((_trailing(series.absolute, 5) + 1e-9) / scale),
        series.hour.astype(np.float64),
    ]
    if series.imbalance is not None:
        columns += [series.imbalance, _trailing(series.imbalance, 5)]
    return np.column_stack(columns)


def next_moves(series: Series, horizon: int) -> FloatArray:
    """Return the log move from each close to the one ``horizon`` bars on; NaN where unusable."""
    steps = np.concatenate([[0.0], np.cumsum(series.returns)])[1:]
    moves = np.full(steps.size, np.nan)
    moves[:-horizon] = steps[horizon:] - steps[:-horizon]
    moves[:_WARM_UP] = np.nan
    return moves


def _trailing(column: FloatArray, length: int) -> FloatArray:
    total = np.concatenate([[0.0], np.cumsum(column)])
    count = np.minimum(np.arange(1, column.size + 1), length)
    last = np.arange(1, column.size + 1)
    mean: FloatArray = (total[last] - total[last - count]) / count
    return mean


def _traded(expected: FloatArray, earned: FloatArray, horizon: int, share: float) -> ProbeRow:
    usable = np.isfinite(earned)
    expected, earned = expected[usable], earned[usable]
    strong = np.abs(expected) >= np.quantile(np.abs(expected), 1.0 - share)
    result = np.sign(expected[strong]) * earned[strong] * 1e4
    error = result.std() / np.sqrt(max(1.0, result.size / horizon))  # overlapping holds count once
    return ProbeRow(horizon, share, int(strong.sum()), float(result.mean()), float(error))
