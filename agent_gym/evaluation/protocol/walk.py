"""One agent through all folds: fitted or chosen on each training segment, traded on each test.

The legs are put together into a single agent that sits out until the first test and then lets each
fold's own agent decide. So the backtest engine trades it like any other, in one account, and every
check of the engine (a decision must not change when later bars are taken away) holds for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

import numpy as np

from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Learner,
    Nanos,
    Observation,
    SeriesAgent,
    Step,
    Successor,
    Tuned,
)
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.failures import placed
from agent_gym.evaluation.protocol.splits import Fold, Span
from agent_gym.evaluation.stepwise import TRADER
from agent_gym.markets.bars import Bars

Chooser: TypeAlias = Callable[[Sequence[Ref], Fold], Ref]
MEMORY_BARS = 1_000  # what an agent that decides bar by bar is shown before its own test begins


@dataclass(frozen=True, slots=True, eq=False)
class Leg:
    """An agent and the decisions that are its own: rows ``first`` up to, without, ``stop``."""

    agent: Agent
    first: int
    stop: int
    begin: int


class WalkedSteps:
    """Legs that decide bar by bar, as one agent; each looks on for a while before its turn."""

    def __init__(self, name: str, legs: Sequence[Leg]) -> None:
        self.name = name
        self._legs = list(legs)
        self._t = 0
        self._start: EpisodeStart | None = None

    def reset(self, start: EpisodeStart) -> None:
        """Begin the walk."""
        self._start, self._t = start, 0

    def act(self, obs: Observation) -> Decision:
        """Let every leg that is awake decide, and do what the one whose turn it is says."""
        t, made = self._t, Decision(0.0)
        for leg in self._awake(t):
            if t == leg.begin and self._start is not None:
                leg.agent.reset(self._start)
            decided = leg.agent.act(obs)
            if t >= leg.first:
                made = decided
        self._t = t + 1
        return made

    def observe(self, step: Step) -> None:
        """Tell every leg that was awake what was done and what came of it."""
        for leg in self._awake(self._t - 1):
            leg.agent.observe(step)

    def _awake(self, t: int) -> list[Leg]:
        return [leg for leg in self._legs if leg.begin <= t < leg.stop]


class WalkedSeries(WalkedSteps):
    """Legs that can also decide a whole series, as one agent that can.

    With risk parts a run goes bar by bar, and so do they.
    """

    def __init__(self, name: str, legs: Sequence[Leg]) -> None:
        super().__init__(name, legs)
        self.needs = cast(SeriesAgent, legs[0].agent).needs

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return each leg's own targets, 0 elsewhere; no leg is shown what comes after its end."""
        n = len(next(iter(columns.values())))
        wanted = np.zeros(n)
        for leg in self._legs:
            stop = min(leg.stop, n)
            if leg.first >= stop:
                continue
            seen = {name: column[:stop] for name, column in columns.items()}
            made = cast(SeriesAgent, leg.agent).targets(start, seen)
            wanted[leg.first : stop] = _sized(made, stop, self.name)[leg.first :]
        return wanted


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """What a walk is made on: bars, the folds over them, costs and a seed."""

    bars: Bars
    folds: Sequence[Fold]
    config: BacktestConfig
    seed: int

    @property
    def first(self) -> int:
        """Return the row whose close the first tested bar is decided at."""
        return self.folds[0].test.start - 1

    def agent(self, refs: Sequence[Ref], choose: Chooser) -> tuple[Agent, list[Ref]]:
        """Return the agent of a walk, and what was chosen for each fold."""
        learns = is_taught(refs)
        chosen = [refs[0] if len(refs) == 1 else choose(refs, fold) for fold in self.folds]
        legs = self._fitted(refs[0]) if learns else self._fixed(chosen)
        return walked(legs), chosen

    def _fixed(self, chosen: Sequence[Ref]) -> list[Leg]:
        """Return one leg for each run of folds with the same choice; it has seen all the past."""
        legs: list[Leg] = []
        held: Ref | None = None
        for fold, ref in zip(self.folds, chosen, strict=True):
            first, stop = fold.test.start - 1, fold.test.stop - 1
            if ref == held and legs[-1].stop == first:
                legs[-1] = replace(legs[-1], stop=stop)
            else:
                legs.append(Leg(cast(Agent, make("agent", ref)), first, stop, 0))
            held = ref
        return self._to_the_end(legs)

    def _fitted(self, ref: Ref) -> list[Leg]:
        """Return one leg a fold: a new agent each time, that has learned from its past alone.

        One that can succeed another begins from what the agent of the fold before had learned.
        """
        legs: list[Leg] = []
        for number, fold in enumerate(self.folds):
            agent = cast(Agent, make("agent", ref))
            if legs and isinstance(agent, Successor):
                agent.succeed(legs[-1].agent)
            try:
                self._teach(cast(Learner, agent), fold, Seeds(self.seed).child("fit", number))
            except AgentError as error:
                raise placed(error, f"fold {number + 1} of {len(self.folds)}") from error
            first = fold.test.start - 1
            legs.append(Leg(agent, first, fold.test.stop - 1, max(0, first - MEMORY_BARS)))
        return self._to_the_end(legs)

    def _teach(self, learner: Learner, fold: Fold, seeds: Seeds) -> None:
        """Let it learn from the training span, then choose by the validation span if it can."""
        learner.fit(*lesson(self.bars, fold.train, learner.needs, self.config, seeds))
        if fold.validate is not None and isinstance(learner, Tuned):
            tuning = seeds.child("tune")
            learner.tune(*lesson(self.bars, fold.validate, learner.needs, self.config, tuning))

    def _to_the_end(self, legs: list[Leg]) -> list[Leg]:
        """Let the last leg also decide at the last close, where nothing is traded any more."""
        return [*legs[:-1], replace(legs[-1], stop=len(self.bars))]


def is_taught(refs: Sequence[Ref]) -> bool:
    """Say whether an agent learns; a grid of such agents is a ConfigError."""
    learns = isinstance(make("agent", refs[0]), Learner)
    if learns and len(refs) > 1:
        raise ConfigError(
            "a grid is for agents that do not learn",
            where=refs[0].use,
            found=f"{len(refs)} configurations",
            expected="one",
        )
    return learns


def walked(legs: Sequence[Leg]) -> Agent:
    """Return the legs as one agent; it decides the whole series if all of them can."""
    name = legs[0].agent.name
    if all(isinstance(leg.agent, SeriesAgent) for leg in legs):
        return WalkedSeries(name, legs)
    return WalkedSteps(name, legs)


def lesson(
    bars: Bars, span: Span, needs: Sequence[str], config: BacktestConfig, seeds: Seeds
) -> tuple[EpisodeStart, Mapping[str, FloatArray]]:
    """Return what an agent is shown of a span; nothing is computed from bars after it."""
    columns = columns_for(bars.rows(0, span.stop), needs)
    seen = {name: column[span.rows] for name, column in columns.items()}
    spec, period = config.bounds(bars.instrument), Nanos(bars.period_ns)
    return EpisodeStart(TRADER, tuple(seen), spec, seeds, period), seen


def _sized(targets: FloatArray, n: int, name: str) -> FloatArray:
    made = np.asarray(targets, dtype=np.float64)
    if made.shape != (n,):
        raise AgentError(
            "an agent gives one target a bar", where=name, found=made.shape, expected=n
        )
    return made
