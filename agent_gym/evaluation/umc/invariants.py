"""Gate G: what must hold to the bit, whatever the market does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.core.registry import Ref, entry, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, EpisodeStart, FloatArray, Learner, SeriesAgent
from agent_gym.evaluation.audit.stream import Still, Stream, record, replay, target_of
from agent_gym.evaluation.audit.subject import market_world, weights_of
from agent_gym.evaluation.causality import MIDDLE, MILD, STRONG, drawn_cuts, with_future
from agent_gym.evaluation.leakage import weights_digest
from agent_gym.evaluation.umc.figure import GateFigure, counted
from agent_gym.evaluation.umc.plan import COST_BP, GatesPlan, Judged, Letter, agent_for
from agent_gym.markets.known import draw
from agent_gym.rollouts.jobs import Job

TRAIN_BARS, TEST_BARS = 1_500, 250
CUTS, TAIL_BARS = 8, 24
CURIOUS, BUDGET_BP = 0.46, 0.2
FIGURES = ("lambda", "prefix", "poison", "doors", "same_seed")


def fixed_lambda(value: float) -> dict[str, float]:
    """Return the settings of a lambda that never moves and may cost something."""
    return {
        "lambda_base": value,
        "lambda_min": value,
        "lambda_max": value,
        "regret_budget_bp": BUDGET_BP,
    }


class InvariantJob(Job):
    """One path of M1: the agent learns its beginning and decides the rest, over and over again."""

    agent: Ref
    seed: int = Field(ge=0)
    train_bars: int = Field(default=TRAIN_BARS, ge=300)
    test_bars: int = Field(default=TEST_BARS, ge=20)

    @override
    def run(self) -> dict[str, Any]:
        """Count what differs where nothing may."""
        stream = self._stream()
        agent, again = self._taught(stream), self._taught(stream)
        test = Stream(stream.start, stream.steps[self.train_bars :])
        row: dict[str, Any] = {
            "status": "ok",
            "seed": self.seed,
            "same_seed": int(_digest(agent) != _digest(again)),
            "digest": _digest(agent),
            "decisions": len(test.steps),
        }
        row |= self._curiosity(stream, test)
        if not isinstance(agent, SeriesAgent):
            return row | dict.fromkeys(("doors", "prefix", "poison", "noticed"), None)
        columns = test.columns(agent.needs)
        whole = agent.targets(stream.start, columns)
        twin = cast(SeriesAgent, again).targets(stream.start, columns)
        row["same_seed"] = max(row["same_seed"], int((twin != whole).any()))
        row["doors"] = int((_actions(again, test) != whole).sum())
        row["targets"] = sorted({round(float(value), 6) for value in whole})
        cuts = drawn_cuts(whole, CUTS, Seeds(self.seed).child("gates", "cuts").rng())
        ask = _Series(agent, stream.start, columns, cuts)
        row["prefix"], row["poison"] = ask.changed(None), ask.changed(*STRONG, *MIDDLE, *MILD)
        row["noticed"] = _Series(_Peek(agent), stream.start, columns, cuts).changed(*STRONG) > 0
        return row

    def _stream(self) -> Stream:
        count = self.train_bars + self.test_bars + 1
        drawn = draw(Ref(use="known/m1", params={"n_bars": count}), Seeds(self.seed))
        return record(market_world(drawn.bars), Still(), self.seed)

    def _taught(self, stream: Stream, **params: Any) -> Agent:
        own = agent_for(self.agent, COST_BP)
        agent = cast(Agent, make("agent", Ref(use=own.use, params=dict(own.params) | params)))
        if isinstance(agent, Learner):
            seen = stream.columns(agent.needs)
            past = {name: column[: self.train_bars] for name, column in seen.items()}
            agent.fit(stream.start, past)
        return agent

    def _curiosity(self, stream: Stream, test: Stream) -> dict[str, Any]:
        """Count the decisions that hang on lambda where nothing that is done is observed."""
        if "lam" not in entry("agent", self.agent.use).config.model_fields:
            return {"lambda": None}
        made = [
            _actions(self._taught(stream, lam=fixed_lambda(value)), test)
            for value in (0.0, CURIOUS)
        ]
        return {"lambda": int((made[0] != made[1]).sum())}


class _Series:
    """A series agent, asked again with other futures after each cut."""

    def __init__(
        self,
        agent: SeriesAgent,
        start: EpisodeStart,
        columns: Mapping[str, FloatArray],
        cuts: Sequence[int],
    ) -> None:
        self._agent, self._start, self._columns, self._cuts = agent, start, columns, cuts
        self._whole = agent.targets(start, columns)

    def changed(self, *factors: float | None) -> int:
        """Return how many targets before a cut change with what comes after it."""
        count = 0
        for cut in self._cuts:
            for factor in factors:
                other = with_future(self._columns, cut, factor, TAIL_BARS)
                past = self._agent.targets(self._start, other)[:cut]
                count += int((past != self._whole[:cut]).sum())
        return count


class _Peek:
    """The control: an agent that also looks at the next close; implements SeriesAgent."""

    def __init__(self, agent: SeriesAgent) -> None:
        self.needs, self._agent = agent.needs, agent

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return its targets, held on the side of the next move."""
        honest = self._agent.targets(start, columns)
        ahead = np.sign(np.diff(columns["close"], append=columns["close"][-1:]))
        peeking: FloatArray = np.where(honest == 0.0, 0.5, np.abs(honest)) * ahead
        return peeking


class Invariants:
    """Gate G."""

    letters: tuple[Letter, ...] = ("G",)

    def jobs(self, plan: GatesPlan) -> dict[str, Job]:
        """Return one path a seed."""
        return {
            f"invariants, seed {seed}": InvariantJob(agent=plan.agent, seed=seed)
            for seed in plan.numbers()
        }

    def judge(self, plan: GatesPlan, rows: Sequence[dict[str, Any]]) -> Judged:
        """Add up what differed; what an agent cannot be asked is left out."""
        figures: dict[str, GateFigure] = {}
        for name in FIGURES:
            seen = [row[name] for row in rows if row[name] is not None]
            if seen:
                figures[f"G.{name}"] = counted(f"G.{name}", sum(seen), len(seen))
        noticed = [row["noticed"] for row in rows if row["noticed"] is not None]
        if noticed:
            figures["G.control"] = counted("G.control", sum(noticed), len(noticed))
        return Judged(figures, {"invariants": [dict(row) for row in rows]})


def _actions(agent: Agent, stream: Stream) -> FloatArray:
    spec = stream.start.actions
    return np.array([target_of(made.action, spec) for made in replay(agent, stream)])


def _digest(agent: Agent) -> str:
    return weights_digest(weights_of(agent))
