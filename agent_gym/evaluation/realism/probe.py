"""Is there money in the market that its past gives away? Gradient boosting looks for it.

A generator whose returns can be predicted beyond the cost of a trade teaches agents to farm the
generator. The probe learns on some seeds and trades its strongest predictions on others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.edge import Ledger, ProbeRow
from agent_gym.evaluation.realism.series import Series
from agent_gym.evaluation.realism.threads import one_thread
from agent_gym.evaluation.realism.windows import window_bars
from agent_gym.markets.bars import Bars

SHARES = (0.1, 0.01)
MINUTE_HORIZONS = (1, 5, 15, 60)
HOUR_HORIZONS = (1, 4, 24)
_LOOKBACKS = (1, 2, 5, 15, 60)
_WARM_UP = 240
_MOST_ROWS = 400_000


def probe(learn: Sequence[Bars], test: Sequence[Bars]) -> tuple[ProbeRow, ...]:
    """Learn to predict on some series, trade others; the same series give the same rows."""
    if not learn or not test:
        raise ConfigError("the probe needs series to learn from and others to trade")
    search = Search(learn)
    for bars in test:
        search.trade(bars)
    return search.rows()


class Search:
    """Predictions learned from some series, and what they earn on others, one at a time."""

    def __init__(self, learn: Sequence[Bars]) -> None:
        known = [Series(bars) for bars in learn]
        period_ns = known[0].period_ns
        self._block = window_bars(period_ns)
        horizons = MINUTE_HORIZONS if period_ns < HOUR_NS else HOUR_HORIZONS
        past = np.vstack([past_features(series) for series in known])
        stride = max(1, len(past) // _MOST_ROWS)
        past = past[::stride]
        self._models: dict[int, HistGradientBoostingRegressor] = {}
        self._strong: dict[tuple[int, float], float] = {}
        for horizon in horizons:
            target = np.concatenate([next_moves(series, horizon) for series in known])[::stride]
            self._models[horizon] = model = _learned(past, target)
            with one_thread():
                size = np.abs(model.predict(past))
            for share in SHARES:
                self._strong[horizon, share] = float(np.quantile(size, 1.0 - share))
        self._ledgers = {key: Ledger() for key in self._strong}

    def trade(self, bars: Bars) -> None:
        """Trade the strongest predictions on a series that was not learned from.

        What counts as strong was settled on the series that were learned from.
        """
        series = Series(bars)
        fresh = past_features(series)
        block = np.arange(len(fresh)) // self._block
        for horizon, model in self._models.items():
            earned = next_moves(series, horizon)
            with one_thread():
                expected = model.predict(fresh)
            for share in SHARES:
                limit = self._strong[horizon, share]
                chosen = np.isfinite(earned) & (np.abs(expected) >= limit)
                result = np.sign(expected[chosen]) * earned[chosen] * 1e4
                self._ledgers[horizon, share].add(result, block[chosen], int(block[-1]) + 1)

    def rows(self) -> tuple[ProbeRow, ...]:
        """Return what was earned, one row a horizon and share."""
        return tuple(ledger.row(*key) for key, ledger in self._ledgers.items())


def _learned(past: FloatArray, target: FloatArray) -> HistGradientBoostingRegressor:
    usable = np.isfinite(target)
    moves = target[usable]
    limit = np.quantile(np.abs(moves), 0.999)  # a few crashes must not be all it learns
    model = HistGradientBoostingRegressor(
        max_iter=80, learning_rate=0.08, max_leaf_nodes=15, min_samples_leaf=200, random_state=0
    )
    with one_thread():
        model.fit(past[usable], np.clip(moves, -limit, limit))
    return model


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
