"""From beliefs to positions: the planner, and beside it an actor that has to earn its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.named_arrays import under
from agent_gym.agents.umc.choice import begin_choice, worth_of
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.deciders import Learned, Planned, Policy, states_of
from agent_gym.agents.umc.keeper import ResumableFit, run_fit
from agent_gym.agents.umc.mind import Trace
from agent_gym.agents.umc.planner import Plan, plan_positions
from agent_gym.agents.umc.policy import Actor, Lessons
from agent_gym.agents.umc.tiers.selection import BATCHES, SURE, mean_and_error
from agent_gym.core.errors import AgentError, ConfigError, DataError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec

BASIS_POINT = 1e-4
WARM_BARS = 200
ACTOR = "umc/actor"


class ActorFitting(ResumableFit, Protocol):
    """A fit of an actor."""

    def model(self) -> dict[str, NDArray[Any]]: ...


class ActorLearner(Protocol):
    """What the registry has under ``umc/actor``: it needs torch, so it is loaded when asked for."""

    def start(
        self, lessons: Lessons, seeds: Seeds, start_from: Mapping[str, NDArray[Any]] | None
    ) -> ActorFitting: ...


class Plans:
    """Plans for the edges that were met in a past, one for each set of positions asked for."""

    def __init__(self, config: UMCConfig) -> None:
        self._config = config
        self._cost = config.cost_bp * BASIS_POINT
        self._edges, self._sigma = np.empty(0), np.empty(0)
        self._figures: dict[str, float] = {}
        self._actor: dict[str, NDArray[Any]] = {}
        self._start_from: dict[str, NDArray[Any]] = {}
        self._plans: dict[tuple[float, ...], Plan] = {}

    @property
    def learned(self) -> bool:
        """Say whether there is a past to plan by."""
        return self._edges.size > 0

    def succeed(self, earlier: Plans) -> None:
        """Let an actor begin from an earlier one."""
        self._start_from = dict(earlier._actor)

    def learn(
        self, trace: Trace, actions: ActionSpec, seeds: Seeds, *, same_model: bool = False
    ) -> None:
        """Take over a past; if there is an actor, train it and see who grew more.

        Args:
            trace: What was believed in the past.
            actions: What may be held.
            seeds: Where all randomness comes from.
            same_model: Whether an earlier actor saw the beliefs of the same model: then the new one
                begins from it.
        """
        warm = min(WARM_BARS, len(trace.series) // 4)
        self._edges, self._sigma = trace.edge[warm:].copy(), trace.series.sigma[warm:].copy()
        self._plans, self._actor = {}, {}
        scores = trace.told.score[np.isfinite(trace.told.score)]
        self._figures = {"surprise": -float(scores.mean())}
        if self._config.actor is not None:
            self._train(trace, actions, seeds, self._start_from if same_model else {})

    @property
    def decider(self) -> str:
        """Return who decides: planner or actor."""
        if not self._actor:
            return "planner"
        lead, error = self._figures["actor_lead"], self._figures["actor_lead_error"]
        return "actor" if lead > SURE * error else "planner"

    def policy(self, actions: ActionSpec) -> Policy:
        """Return who decides in a world with these actions."""
        levels = self._levels(actions)
        plan = self._plan(levels)
        if self.decider == "planner":
            return Planned(plan, self._cost)
        actor = Actor(self._actor)
        if tuple(actor.levels) != levels:
            raise AgentError(
                "the actor was trained for other positions than this world allows",
                where="umc",
                found=levels,
                expected=tuple(actor.levels),
                remedy="Let it learn under the bounds that it is to trade under",
            )
        return Learned(actor, plan, self._cost)

    def losses(self) -> dict[str, float]:
        """Return the figures of the last fit by name."""
        return dict(self._figures)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return all that plans are made from."""
        figures = {f"figure/{name}": np.array([value]) for name, value in self._figures.items()}
        actor = {f"actor/{name}": array for name, array in self._actor.items()}
        return {"plan/edges": self._edges, "plan/sigma": self._sigma, **figures, **actor}

    def restore(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take over what weights() returned."""
        self._edges, self._sigma = weights["plan/edges"].copy(), weights["plan/sigma"].copy()
        found = under("figure/", weights)
        self._figures = {name: float(value[0]) for name, value in found.items()}
        self._actor, self._plans = under("actor/", weights), {}

    def _train(
        self, trace: Trace, actions: ActionSpec, seeds: Seeds, start: dict[str, NDArray[Any]]
    ) -> None:
        """Train an actor, then let it and the planner trade bars that neither has learned from.

        As with models, the heavier one is taken only if it leads by twice its standard error.

        Nor was the actor stopped by them, and an actor that it began from ended before them. So the
        tail of the past is cut off first; of what is left the fit holds out a tail of its own.
        """
        assert self._config.actor is not None
        outlook = trace.outlook(self._config.lam.coherence_threshold)
        bars = len(trace.series)
        cut = int(bars * (1.0 - self._config.actor.held_out_share))
        if bars - 1 - cut < 2 * BATCHES:
            raise DataError(
                "too few held-out bars to judge an actor by",
                where="umc",
                found=max(bars - 1 - cut, 0),
                expected=f"at least {2 * BATCHES}",
                remedy="Give a longer past, hold out more of it, or leave the actor out",
            )
        plan = self._planned(self._levels(actions), cut - (bars - self._edges.size))
        learner = _actor_learner(self._config.actor.model_dump(mode="json"))
        seeds = seeds.child("actor")
        fit = learner.start(self._lessons(trace, plan, cut), seeds, start or None)
        run_fit(fit, seeds)
        self._actor = fit.model()
        rivals: dict[str, Policy] = {
            "actor": Learned(Actor(self._actor), plan, self._cost),
            "planner": Planned(plan, self._cost),
        }
        judged, grown = self._lessons(trace, plan, bars), {}
        for name, rival in rivals.items():
            places, _ = rival.choose(trace, outlook, begin_choice(plan.levels))
            grown[name] = judged.growth_of(plan.levels[places.astype(np.int64)])[cut:-1]
            self._figures[f"{name}_growth"] = float(grown[name].mean())
        lead = mean_and_error(grown["actor"] - grown["planner"])
        self._figures["actor_lead"], self._figures["actor_lead_error"] = lead

    def _lessons(self, trace: Trace, plan: Plan, stop: int) -> Lessons:
        """Return what can be learned from the bars before ``stop``, and from no return after."""
        outlook = trace.outlook(self._config.lam.coherence_threshold)
        return Lessons(
            states=states_of(trace)[:stop],
            worth=worth_of(plan, outlook, self._cost)[:stop],
            unit_cost=(self._cost / outlook.sigma)[:stop],
            returns_ahead=np.append(trace.series.returns[1:stop], np.nan),
            cost=self._cost,
            levels=plan.levels,
        )

    def _levels(self, actions: ActionSpec) -> tuple[float, ...]:
        if actions.n is not None and actions.levels is None:
            raise AgentError(
                "this world's actions are not target positions",
                where="umc",
                found=f"{actions.n} actions without levels",
                expected="a number between bounds, or levels",
            )
        inside = actions.levels or (actions.low, actions.high)
        low, high = min(inside), max(inside)
        return tuple(level for level in self._config.levels if low <= level <= high)

    def _plan(self, levels: tuple[float, ...]) -> Plan:
        if levels not in self._plans:
            self._plans[levels] = self._planned(levels, self._edges.size)
        return self._plans[levels]

    def _planned(self, levels: tuple[float, ...], bars: int) -> Plan:
        """Return the plan that the first bars of the past give."""
        edges, sigma = self._edges[:bars], self._sigma[:bars]
        aversion = 1.0 / self._config.kelly_fraction
        return plan_positions(edges, sigma, np.array(levels), self._cost, aversion)


def _actor_learner(params: dict[str, Any]) -> ActorLearner:
    made: Any = make("learner", Ref(use=ACTOR, params=params))
    if not hasattr(made, "start"):
        raise ConfigError("this learner trains no actors", where=ACTOR)
    learner: ActorLearner = made
    return learner
