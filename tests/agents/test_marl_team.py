"""The team through the loop: registered, repeatable, legal, and refusing other worlds."""

import numpy as np
import pytest

from agent_gym.agents.marl import NetworkConfig, PolicyTeam, TeamContract, TeamPolicy
from agent_gym.core import AgentError, Ref, Seeds, make
from agent_gym.core.types import Inspectable, Saveable
from agent_gym.envs.battle import BattleConfig, BattleWorld
from agent_gym.rollouts import MemorySink, play, trajectory_hash
from agent_gym.rollouts.contracts import check_action

SMALL = NetworkConfig(hidden=16)


def policy_for(map_name="3m", shape=SMALL, seed=0):
    world = BattleWorld(BattleConfig(map=map_name))
    contract = TeamContract(
        map=map_name,
        agents=len(world.roles),
        observation=world.batch.contract.observation,
        actions=world.batch.contract.actions,
    )
    return TeamPolicy.create(shape, contract, Seeds(seed))


def steps_of(team, map_name="3m", seed=0):
    sink = MemorySink()
    play(BattleWorld(BattleConfig(map=map_name)), team, "one", Seeds(seed), (sink,))
    return sink.steps


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_the_registered_team_plays_a_battle_twice_alike(tmp_path, recurrent, deterministic):
    policy = policy_for(shape=NetworkConfig(hidden=16, recurrent=recurrent))
    policy.save(tmp_path / "p")
    params = {"model": str(tmp_path / "p"), "deterministic": deterministic}
    team = make("team", Ref(use="marl/team", params=params))
    steps = steps_of(team)
    assert trajectory_hash(steps) == trajectory_hash(steps_of(team))
    assert trajectory_hash(steps) == trajectory_hash(
        steps_of(PolicyTeam(policy, deterministic=deterministic))
    )
    spec = BattleWorld(BattleConfig()).start("agent_0", Seeds(0)).actions
    for step in steps:
        check_action(step.decision.action, spec, step.before.legal)
        assert ("log_prob" in step.decision.signals) is not deterministic
    assert {step.agent for step in steps} == {"marl/team"}


def test_a_drawing_team_depends_on_its_seed_and_a_greedy_one_does_not():
    def actions(deterministic, dice):
        team, world = (
            PolicyTeam(policy_for(), deterministic=deterministic),
            BattleWorld(BattleConfig()),
        )
        seen = world.reset(Seeds(0))
        team.reset({role: world.start(role, Seeds(dice).child(role)) for role in world.roles})
        found = []
        for _ in range(20):
            made = {role: each.action for role, each in team.act(seen).items()}
            found.append(tuple(made.values()))
            seen = {role: out.observation for role, out in world.step(made).items()}
        return found

    assert actions(True, 1) == actions(True, 2)
    assert actions(False, 1) != actions(False, 2)


def test_a_map_of_one_agent_is_played_too():
    assert len(steps_of(PolicyTeam(policy_for("1m_vs_1m")), "1m_vs_1m")) > 5


def test_a_team_is_refused_where_it_does_not_belong():
    team = PolicyTeam(policy_for("3m"))
    with pytest.raises(AgentError, match="another size"):
        steps_of(team, "2s_vs_1sc")
    with pytest.raises(AgentError, match="not what the team was made for"):
        steps_of(team, "3s_vs_5z")


def test_it_can_be_looked_at_and_saved(tmp_path):
    team, other = PolicyTeam(policy_for(seed=1)), PolicyTeam(policy_for(seed=2))
    assert isinstance(team, Inspectable)
    assert isinstance(team, Saveable)
    team.save(tmp_path / "p")
    assert trajectory_hash(steps_of(team)) != trajectory_hash(steps_of(other))
    other.load(tmp_path / "p")
    assert team.version == other.version
    assert trajectory_hash(steps_of(team)) == trajectory_hash(steps_of(other))
    assert all(np.array_equal(a, other.weights()[n]) for n, a in team.weights().items())
