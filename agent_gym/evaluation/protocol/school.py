"""What is learned from rows on both sides of a test, and nothing else.

The training rows of a combination lie in several segments. They are joined to one series that
holds no other row: whatever an agent learns, and every feature it is shown, is computed from that
series alone. So not even a feature with an endless memory can carry something over from a tested or
an embargoed row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, FloatArray, Learner, SeriesAgent
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.pnl import ratio
from agent_gym.evaluation.protocol.splits import Span
from agent_gym.evaluation.protocol.walk import lesson
from agent_gym.exchange.series import run_series
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars

PRICES = ("open", "high", "low", "close")
IN_PRICE, IN_UNITS = ("spread",), ("taker_buy", "ofi")  # extra columns that go with a price's scale


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """The joined training rows, and what can be learned from them."""

    bars: Bars
    config: BacktestConfig
    seeds: Seeds

    def fitted(self, ref: Ref) -> Agent:
        """Return a new agent that has learned from the rows."""
        learner = cast(Learner, make("agent", ref))
        learner.fit(*lesson(self.bars, self._all, learner.needs, self.config, self.seeds))
        return cast(Agent, learner)

    def best(self, refs: Sequence[Ref]) -> Ref:
        """Return the configuration with the highest Sharpe ratio over the rows."""
        return max(refs, key=lambda ref: ratio(self._net(ref)))

    @property
    def _all(self) -> Span:
        return Span(0, len(self.bars))

    def _net(self, ref: Ref) -> FloatArray:
        """Return what each bar brought; a configuration is checked where it is tested itself."""
        agent = make("agent", ref)
        if self.config.risk() is not None or not isinstance(agent, SeriesAgent):
            equity = BacktestEngine(self.config).run(self.bars, ref, self.seeds.root).equity
        else:
            start, columns = lesson(self.bars, self._all, agent.needs, self.config, self.seeds)
            wanted = np.asarray(agent.targets(start, columns)) * self.config.position_size
            targets = np.clip(wanted, start.actions.low, start.actions.high)
            tape = Tape.of(self.bars, self.config.costs())
            equity = run_series(tape, targets, tape.costs, self.config.account()).equity
        before = equity[:-1]
        return np.divide(np.diff(equity), before, out=np.zeros_like(before), where=before > 0.0)


def spliced(bars: Bars, rows: NDArray[np.int64]) -> Bars:
    """Return the given rows as one series in which no price jumps where rows were left out.

    Behind a gap prices go on from the last close before it: all of them are multiplied by one
    factor, volumes divided by it, so that returns and the money that was traded stay what they
    were. Times are the true ones.

    Example:
        >>> from agent_gym.markets import Instrument
        >>> price = np.array([10.0, 20.0, 40.0, 44.0])
        >>> bars = Bars(Instrument(), 1, np.arange(4), price, price, price, price, price)
        >>> spliced(bars, np.array([0, 2, 3])).close.tolist()
        [10.0, 10.0, 11.0]
    """
    factor = np.ones(rows.size)
    for seam in (np.flatnonzero(np.diff(rows) > 1) + 1).tolist():
        last, first = rows[seam - 1], rows[seam]
        factor[seam:] = factor[seam - 1] * bars.close[last] / bars.open[first]
    scales = dict.fromkeys((*PRICES, *IN_PRICE), factor)
    scales |= dict.fromkeys(("volume", *IN_UNITS), 1.0 / factor)
    columns: dict[str, Any] = {
        name: column[rows] * scales[name] if name in scales else column[rows]
        for name, column in bars.columns().items()
    }
    prices = {name: columns.pop(name) for name in (*PRICES, "volume")}
    return replace(bars, ts=bars.ts[rows], extra=columns, **prices)
