"""One agent on the venue of a market scenario, with the faults that were planted there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import EpisodeStart, FloatArray, Nanos
from agent_gym.evaluation.backtest import BacktestEngine, columns_for
from agent_gym.evaluation.causality import STRONG
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.scenarios.market_line import Flags, Line, SeriesLine, Wiring, lay_line
from agent_gym.evaluation.scenarios.market_school import School
from agent_gym.evaluation.scenarios.plants_market import tampering_of
from agent_gym.evaluation.stepwise import EPISODE, TRADER, decide_stepwise
from agent_gym.markets.bars import Bars

TAIL_BARS = 2  # bars of another future that an agent gets to see: one would do


class MarketRun:
    """One agent on one venue, faults included; it can be run over other bars again."""

    def __init__(
        self, school: School, plant: str | None, seeds: Seeds, down: Flags, wiring: Wiring
    ) -> None:
        faults = tampering_of(plant)
        self._engine = BacktestEngine(faults.venue(school.venue))
        self._settle: Callable[[Bars], Bars] = faults.market
        self._wiring = faults.line(wiring)
        self._school = school
        self._seed = seeds.child("agent").as_int()
        self._cuts = seeds.child("cuts").rng()
        self._down = down

    def trade(self, bars: Bars) -> tuple[BacktestResults, Line]:
        """Let a fresh agent trade; a backtest clips, fills, charges and settles."""
        line = self._line(bars)
        try:
            return self._engine.run(self._settle(bars), line, self._seed), line
        except AgentError as error:
            raise self._school.explained(error) from error

    def _line(self, bars: Bars) -> Line:
        return lay_line(self._school.pupil(), bars, self._down[: len(bars)], self._wiring)

    def causality_breaks(self, bars: Bars, asked: FloatArray) -> int:
        """Return under how many of two other futures a decision before them comes out different.

        An agent that decides differently under the very same bars, too, shows no break by that.
        """
        if asked.size < len(bars) - 1:
            return 0  # the account was ruined: there is nobody left to ask
        cut = int(self._cuts.integers(len(bars) // 2, len(bars) - TAIL_BARS))
        known = asked[:cut].tolist()
        broken = sum(self._asked_before(bars, cut, factor) != known for factor in STRONG)
        steady = broken == 0 or self._asked_before(bars, cut, 1.0) == known
        return broken if steady else 0

    def _asked_before(self, bars: Bars, cut: int, factor: float) -> list[float]:
        """Return what a fresh agent asks for before the cut; no ledger is needed for that."""
        other = _with_future(bars, cut, factor)
        line, config = self._line(other), self._engine.config
        settled = self._settle(other)
        if isinstance(line, SeriesLine) and config.risk() is None:
            columns = columns_for(settled, line.needs)
            seeds = Seeds(self._seed).child(EPISODE, "agent", TRADER)
            spec, period = config.bounds(bars.instrument), Nanos(bars.period_ns)
            line.targets(EpisodeStart(TRADER, tuple(columns), spec, seeds, period), columns)
        else:
            decide_stepwise(settled, line, config, self._seed)
        return line.asked[:cut]


def _with_future(bars: Bars, cut: int, factor: float) -> Bars:
    """Return the bars up to the cut and a few that cost a multiple of what they did."""
    other = bars.rows(0, cut + TAIL_BARS)
    columns: dict[str, Any] = {"instrument": other.instrument, "period_ns": other.period_ns}
    for name in ("open", "high", "low", "close"):
        column = getattr(other, name).copy()
        column[cut:] *= factor
        columns[name] = column
    return Bars(ts=other.ts, volume=other.volume, extra=other.extra, **columns)
