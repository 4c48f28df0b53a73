import numpy as np
import pytest

from agent_gym.agents.rules.baselines import BuyHoldConfig, FlatConfig, buy_hold, flat
from agent_gym.agents.team import Independent
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    ActionSpec,
    Decision,
    EpisodeStart,
    Nanos,
    Observation,
    Outcome,
    Role,
    Step,
)

A, B = Role("a"), Role("b")


class Diary:
    name = "diary"

    def __init__(self):
        self.seen = []

    def reset(self, start):
        self.seen = [start.role]

    def act(self, obs):
        return Decision(float(obs.features[0]))

    def observe(self, step):
        self.seen.append(step.t)


def begun(role):
    return EpisodeStart(role, ("close",), ActionSpec(), Seeds(0))


def sight(value):
    return Observation(Nanos(0), np.array([value]))


@pytest.mark.parametrize("roles", [(A,), (A, B)])
def test_each_agent_gets_its_own_role(roles):
    agents = {role: Diary() for role in roles}
    team = Independent(agents)
    team.reset({role: begun(role) for role in roles})
    seen = {role: sight(float(i)) for i, role in enumerate(roles)}
    decisions = team.act(seen)
    assert {role: made.action for role, made in decisions.items()} == {
        role: float(i) for i, role in enumerate(roles)
    }
    steps = {
        role: Step("e", i, role, "diary", seen[role], decisions[role], Outcome(seen[role], 0.0))
        for i, role in enumerate(roles)
    }
    team.observe(steps)
    assert [agent.seen for agent in agents.values()] == [[r, i] for i, r in enumerate(roles)]


def test_a_role_that_has_gone_is_not_asked():
    team = Independent({A: flat(FlatConfig()), B: buy_hold(BuyHoldConfig())})
    team.reset({A: begun(A), B: begun(B)})
    assert list(team.act({B: sight(1.0)})) == [B]


@pytest.mark.parametrize("roles", [(A,), (B,), (A, B, Role("c"))])
def test_roles_and_agents_must_fit(roles):
    team = Independent({A: flat(FlatConfig()), B: flat(FlatConfig())})
    with pytest.raises(AgentError, match="does not fit the roles"):
        team.reset({role: begun(role) for role in roles})


def test_nobody_is_no_team():
    with pytest.raises(AgentError):
        Independent({})


def test_the_registry_builds_a_team():
    agents = {"a": {"use": "rules/flat"}, "b": {"use": "rules/buy-hold", "params": {"size": 0.5}}}
    team = make("team", Ref(use="independent", params={"agents": agents}))
    assert isinstance(team, Independent)
    assert team.names == {"a": "rules/flat", "b": "rules/buy-hold"}
    with pytest.raises(ConfigError):
        make("team", Ref(use="independent", params={"agents": {"a": {"use": "rules/fltt"}}}))
