"""Actor and planner in one agent: who decides, by which bars, and the same at every door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.choice import Outlook, begin_choice
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.deciders import Learned
from agent_gym.agents.umc.mind import Trace
from agent_gym.agents.umc.policy import Actor, Lessons
from agent_gym.agents.umc.policy.learner import ActorLearner
from agent_gym.agents.umc.policy.learning import ActorFit
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, FloatArray, Role
from tests.samples import random_bars
from tests.training.umc_samples import ACTOR

BARS, CUT = 500, 400
BOTH = ActionSpec(low=-1.0, high=1.0)
COLUMNS = {"close": random_bars(BARS, 8).close}


def taught(close: FloatArray = COLUMNS["close"], **actor: Any) -> UMCAgent:
    agent = UMCAgent(UMCConfig.model_validate({"actor": ACTOR | actor, "cost_bp": 1.0}))
    agent.fit(EpisodeStart(Role("trader"), ("close",), BOTH, Seeds(3)), {"close": close})
    return agent


@pytest.fixture(scope="module")
def agent() -> UMCAgent:
    return taught()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Lessons, Any]]:
    """Return the lessons of actors that are trained from now on, and what they begin from."""
    found: list[tuple[Lessons, Any]] = []
    start = ActorLearner.start

    def watched(self: ActorLearner, lessons: Lessons, seeds: Seeds, first: Any) -> ActorFit:
        found.append((lessons, first))
        return start(self, lessons, seeds, first)

    monkeypatch.setattr(ActorLearner, "start", watched)
    return found


def test_the_bars_that_judge_are_no_lesson(seen: list[tuple[Lessons, Any]]) -> None:
    taught()
    lessons, _ = seen[0]
    assert len(lessons) == CUT
    assert np.isnan(lessons.returns_ahead[-1])  # it would be the first return that judges


def rows(trace: Trace, outlook: Outlook, i: int, j: int) -> tuple[Any, ...]:
    told = trace.told
    part = type(told)(
        *(getattr(told, name)[i:j] for name in ("chance", "mean", "variance", "score", "belief"))
    )
    cut = Trace(trace.series.rows(i, j), part, trace.coherence[i:j], trace.regimes[i:j])
    return cut, Outlook(outlook.edge[i:j], outlook.sigma[i:j], outlook.cap[i:j])


@pytest.mark.parametrize("piece", [1, 7, 499])
def test_a_held_back_actor_decides_the_same_in_any_pieces(agent: UMCAgent, piece: int) -> None:
    weights = {
        name.removeprefix("actor/"): array
        for name, array in agent.plans.weights().items()
        if name.startswith("actor/")
    }
    trace = agent.trace(COLUMNS)
    free = trace.outlook(0.0)
    plan = agent.plans._plan((-1.0, -0.5, 0.0, 0.5, 1.0))
    # An actor that always wants to be somewhere, and a cap that often forbids it.
    weights["bias_1"] = weights["bias_1"] + np.array([0.5, 0.3, 0.0, 0.4, 0.6])
    policy = Learned(Actor(weights), plan, 1e-4)
    cap = np.where(np.arange(BARS) % 5 < 2, 0.7, np.inf)
    held = Outlook(free.edge, free.sigma, cap)
    whole, energies = policy.choose(trace, held, begin_choice(plan.levels))
    memory, places, told = begin_choice(plan.levels), [], []
    for i in range(0, BARS, piece):
        found = policy.choose(*rows(trace, held, i, i + piece), memory)
        places.append(found[0])
        told.append(found[1])
    assert np.array_equal(np.concatenate(places), whole)
    assert np.array_equal(np.concatenate(told), energies)
    positions = np.abs(plan.levels[whole.astype(np.int64)])
    assert (positions <= cap).all()
    unbound, _ = policy.choose(trace, free, begin_choice(plan.levels))
    assert (np.abs(plan.levels[unbound.astype(np.int64)]) > cap).any()  # the cap did hold it back


def test_an_actor_without_a_sure_lead_does_not_decide(agent: UMCAgent) -> None:
    figures = agent.losses()
    assert figures["actor_lead"] <= 2.0 * figures["actor_lead_error"]
    assert agent.plans.decider == "planner"
    agent.plans._figures["actor_lead"] = 3.0 * figures["actor_lead_error"]
    assert agent.plans.decider == "actor"
    assert isinstance(agent.plans.policy(BOTH), Learned)
    agent.plans._figures["actor_lead"] = figures["actor_lead"]


def test_an_actor_that_sees_another_model_begins_anew(seen: list[tuple[Lessons, Any]]) -> None:
    start = EpisodeStart(Role("trader"), ("close",), BOTH, Seeds(3))
    earlier = taught()
    for tier in (earlier.mind.model.report.chosen, "umc/none"):
        later = taught()
        later.succeed(earlier)
        later._earlier_tier = tier
        later.fit(start, COLUMNS)
        first = seen[-1][1]
        if tier == "umc/none":
            assert first is None
        else:
            assert np.array_equal(first["bias_1"], earlier.weights()["actor/bias_1"])


def test_too_few_bars_to_judge_by_are_refused() -> None:
    with pytest.raises(DataError, match="too few held-out bars to judge an actor by"):
        taught(held_out_share=0.05)
