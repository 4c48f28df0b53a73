"""The backtest engine: one agent, one market, one ledger.

A SeriesAgent without risk parts decides the whole series at once; every other run goes step by step
through a ``MarketWorld``. In both cases the ledger is made by the same compiled door from the
targets, and a stepwise run is checked against it bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any, cast

import numpy as np

from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Ref, configure, entry, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, EpisodeStart, FloatArray, Nanos, SeriesAgent
from agent_gym.evaluation.causality import MIDDLE, MILD, drawn_cuts, even_cuts, with_future
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.funding import funding_facts
from agent_gym.evaluation.metrics import measure
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.stepwise import (
    EPISODE,
    TRADER,
    Decided,
    decide_stepwise,
    without_last,
)
from agent_gym.exchange.round_trips import RoundTrips, round_trips
from agent_gym.exchange.series import SeriesResult, run_series
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import PRICE_COLUMNS, Bars
from agent_gym.markets.features import compute_features

__all__ = ["BacktestConfig", "BacktestEngine", "BacktestResults", "columns_for"]

PARTS = 8  # the whole series is cut between so many parts
# Every cut decides all bars before it again. More of them, or later ones, would take longer than
# the rest of a backtest; the audit has the time.
NEAR_CUTS, REACH_BARS = 16, 2_048
TAIL_BARS = 8


class BacktestEngine:
    """Runs agents over bars under one config.

    Args:
        config: Capital, costs, limits and risk parts.
        command: The command that makes the result again, for its manifest.
        commit: The commit of the source, for its manifest.

    Example:
        >>> from agent_gym.markets import Bars, Instrument
        >>> prices = np.array([100.0, 100.0, 110.0, 121.0])
        >>> ts = np.arange(4) * 3_600 * 10**9
        >>> bars = Bars(Instrument(), 3_600 * 10**9, ts, prices, prices, prices, prices, prices)
        >>> config = BacktestConfig(taker_bps=0, slippage_bps=0, half_spread_bps=0, impact=0,
        ...                         participation=None, capital=50)
        >>> results = BacktestEngine(config).run(bars, Ref(use="rules/buy-hold"))
        >>> results.equity.round(6).tolist()
        [50.0, 50.0, 55.0, 60.5]
    """

    def __init__(
        self,
        config: BacktestConfig | None = None,
        *,
        command: Sequence[str] = (),
        commit: str | None = None,
    ) -> None:
        self.config = config or BacktestConfig()
        self._command, self._commit = list(command), commit
        self._laid_out: tuple[Tape, dict[str, Any]] | None = None

    def run(self, bars: Bars, agent: Agent | Ref, seed: int = 0) -> BacktestResults:
        """Run one agent over all bars; the same arguments give the same bits.

        The first decision is made at the close of the first bar and traded at the next open.
        """
        actor, named = _resolve(agent)
        tape, data = self._lay_out(bars)
        if isinstance(actor, SeriesAgent) and self.config.risk() is None:
            decided = Decided(self._whole_series(bars, actor, seed), np.empty(0), {})
        else:
            decided = decide_stepwise(bars, actor, self.config, seed)
        run, targets = self._trade(tape, decided.targets)
        _check_doors_agree(run, decided)
        trips = _trips(bars, run)
        return BacktestResults(
            agent=actor.name,
            bars=bars,
            ts=bars.ts + bars.period_ns,
            equity=run.equity,
            position=run.position,
            cash=run.cash,
            target=targets,
            fills=run.fills,
            trips=trips,
            metrics=measure(bars, run, trips),
            caps=decided.caps,
            manifest=describe(
                argv=self._command or ["agent-gym", "backtest", "--agent", actor.name],
                config={"agent": named, "backtest": self.config.model_dump(mode="json")},
                data=data,
                seeds=(seed,),
                commit=self._commit,
            ),
        )

    def _lay_out(self, bars: Bars) -> tuple[Tape, dict[str, Any]]:
        """Return tape and provenance; those of the last bars are kept for the next agent."""
        if self._laid_out is None or self._laid_out[0].bars is not bars:
            costs = self.config.costs()
            data = bars.describe() | {"funding": funding_facts(bars, costs)}
            self._laid_out = Tape.of(bars, costs), data
        return self._laid_out

    def _whole_series(self, bars: Bars, agent: SeriesAgent, seed: int) -> FloatArray:
        spec = self.config.bounds(bars.instrument)
        columns = columns_for(bars, agent.needs)
        # The very seeds that play() gives to the agent of a stepwise run.
        seeds = Seeds(seed).child(EPISODE, "agent", TRADER)
        start = EpisodeStart(TRADER, tuple(columns), spec, seeds, Nanos(bars.period_ns))
        targets = np.array(agent.targets(start, columns), dtype=np.float64)
        _check_targets(targets, len(bars))
        _check_causal(agent, start, columns, targets)
        targets = np.clip(targets * self.config.position_size, spec.low, spec.high)
        return without_last(targets)

    def _trade(self, tape: Tape, targets: FloatArray) -> tuple[SeriesResult, FloatArray]:
        """Make the ledger; once the account is ruined it asks for nothing more."""
        costs, rules = self.config.costs(), self.config.account()
        run = run_series(tape, targets, costs, rules)
        ruined = np.flatnonzero(run.equity <= rules.ruin * rules.cash)
        if ruined.size and targets[ruined[0] :].any():
            targets = targets.copy()
            targets[ruined[0] :] = 0.0
            run = run_series(tape, targets, costs, rules)
        return run, targets


def columns_for(bars: Bars, needs: Sequence[str]) -> dict[str, FloatArray]:
    """Return the named columns as a market world shows them: prices as they are, then features."""
    if set(needs) <= set(PRICE_COLUMNS):
        return {name: getattr(bars, name) for name in needs}
    shown = {name: getattr(bars, name) for name in PRICE_COLUMNS}
    names, rows = compute_features(bars).observations(np.float64)
    shown |= dict(zip(names, rows.T, strict=True))
    missing = sorted(set(needs) - set(shown))
    if missing:
        raise AgentError(
            "the market does not show what this agent reads",
            found=", ".join(shown),
            expected=", ".join(missing),
        )
    return {name: shown[name] for name in needs}


def _resolve(agent: Agent | Ref) -> tuple[Agent, dict[str, Any]]:
    """Return the agent, and how it is named in a manifest."""
    if not isinstance(agent, Ref):
        return agent, {"use": agent.name}
    config = configure(entry("agent", agent.use).config, agent.params, where=f"agent {agent.use}")
    params = config.model_dump(mode="json")
    return cast(Agent, make("agent", agent)), {"use": agent.use, "params": params}


def _check_targets(targets: FloatArray, n_bars: int) -> None:
    if targets.shape != (n_bars,):
        raise AgentError("an agent gives one target a bar", found=targets.shape, expected=n_bars)
    wrong = np.flatnonzero(~np.isfinite(targets))
    if wrong.size:
        raise AgentError(
            "a target is not a finite number", where=f"decision {wrong[0]}", found=targets[wrong[0]]
        )


def _check_causal(
    agent: SeriesAgent, start: EpisodeStart, columns: Mapping[str, FloatArray], whole: FloatArray
) -> None:
    """Raise if a target changes when the bars after it are taken away or changed.

    The bars are taken away at seven places of the whole series and changed a little at 16 places
    within the first 2,048 bars, half of them right behind a change of mind. That is as much as a
    backtest can afford; the audit looks closer.
    """
    for cut, factor in _futures(start, whole):
        if factor is None:
            other = {name: column[:cut] for name, column in columns.items()}
        else:
            other = with_future(columns, cut, factor, TAIL_BARS)
        past = np.asarray(agent.targets(start, other))[:cut]
        wrong = np.flatnonzero(past != whole[:cut])
        if wrong.size:
            row = int(wrong[0])
            raise AgentError(
                "an agent's decision depends on bars that come after it",
                where=f"decision {row}",
                found=f"{whole[row]} with the bars that follow, {past[row]} with others or none",
            )


def _futures(start: EpisodeStart, whole: FloatArray) -> Iterator[tuple[int, float | None]]:
    """Yield where the series is cut, and by what the bars after the cut are multiplied."""
    rng = start.seeds.child("causality").rng()
    for cut in even_cuts(whole, PARTS):
        yield cut, None
    cuts = drawn_cuts(whole[:REACH_BARS], NEAR_CUTS, rng)
    yield from zip(cuts, cycle((*MILD, *MIDDLE, None)), strict=False)


def _check_doors_agree(run: SeriesResult, decided: Decided) -> None:
    seen = decided.equity
    different = np.flatnonzero(run.equity[: seen.size] != seen)
    if different.size:
        row = int(different[0])
        raise VenueError(
            "the step-by-step account and the ledger differ",
            where=f"bar {row}",
            found=f"{seen[row]!r} and {run.equity[row]!r}",
        )


def _trips(bars: Bars, run: SeriesResult) -> RoundTrips:
    fills = run.fills
    return round_trips(
        fills["bar"], bars.ts[fills["bar"]], fills["qty"], fills["price"], fills["fee"]
    )
