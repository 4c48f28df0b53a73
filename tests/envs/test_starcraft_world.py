"""The adapter against a stand-in for SMAC that plays recorded battles back, never the game."""

import ast
import json

import numpy as np
import pytest

from agent_gym.agents.marl.network import NetworkConfig
from agent_gym.agents.marl.policy import TeamContract, TeamPolicy
from agent_gym.agents.marl.team import PolicyTeam
from agent_gym.core import AgentError, ConfigError, Ref, Seeds, VenueError, make, names
from agent_gym.core.types import Role
from agent_gym.envs.battle import MAPS, BattleConfig, BattleWorld, contract_of
from agent_gym.envs.starcraft import worker
from agent_gym.envs.starcraft.examination import MAP_NAMES
from agent_gym.envs.starcraft.link import WORKER
from agent_gym.rollouts import MemorySink, check_world, play, trajectory_hash
from tests.envs.starcraft_samples import Machine, battles, record_battle, seed_of

SIZES = {
    "3m": (30, 48, 9),
    "8m": (80, 168, 14),
    "2s_vs_1sc": (17, 27, 7),
    "2s3z": (80, 120, 11),
    "3s_vs_5z": (48, 68, 11),
}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def play_back(world, episode, seeds):
    """Do what was done in a recorded battle; return what was seen and what came of it."""
    shown, outcomes = [world.reset(seeds)], []
    for actions in episode["actions"]:
        outcomes.append(world.step(dict(zip(world.roles, actions, strict=True))))
        shown.append({role: each.observation for role, each in outcomes[-1].items()})
    return shown, outcomes


def test_the_maps_are_those_of_our_own_engine_that_smac_has():
    assert set(MAP_NAMES) == set(MAPS) - {"1m_vs_1m"} == set(SIZES)
    assert all(contract_of(MAPS[name]).widths == SIZES[name] for name in MAP_NAMES)


@pytest.mark.parametrize("name", ["3m", "2s3z"])
def test_what_the_game_shows_arrives_as_our_engine_shows_it(machine, name):
    episodes = machine.plays(name)
    world, own = machine.world(map=name), BattleWorld(BattleConfig(map=name))
    for k, recorded in enumerate(episodes):
        shown, outcomes = play_back(world, recorded, seed_of(k))
        expected, expected_outcomes = play_back(own, recorded, Seeds(recorded["seed"]))
        for ours, theirs in zip(shown, expected, strict=True):
            for role in own.roles:
                assert ours[role].features.tolist() == theirs[role].features.tolist()
                assert ours[role].legal.tolist() == theirs[role].legal.tolist()
                assert ours[role].ts == theirs[role].ts
        assert world.state().tolist() == own.state().tolist()
        last, first = outcomes[-1][world.roles[0]], expected_outcomes[-1][own.roles[0]]
        assert (last.reward, last.terminated, last.truncated) == (first.reward, True, False)
        assert last.info == {"won": recorded["won"], "episode_limit": False}
        assert all(each[world.roles[0]].info is None for each in outcomes[:-1])
        units = recorded["frames"][-1]["units"][: len(world.roles)]
        assert world.alive().tolist() == [unit["health"] > 0.0 for unit in units]
    world.close()


def test_kinds_of_enemies_are_named_rightly(machine):
    """SMAC shows enemy zealots first and its own stalkers first; the names must not lie."""
    raw = battles("2s3z")["episodes"][0]["frames"][0]["state"]
    machine.plays("2s3z")
    world = machine.world(map="2s3z")
    world.reset(seed_of(0))
    shown = dict(zip(world.contract.state, world.state(), strict=True))
    kinds = [shown[f"{unit}_is_stalker"] for unit in ("agent_0", "agent_4", "enemy_0", "enemy_4")]
    assert kinds == [1.0, 0.0, 1.0, 0.0]
    column = world.contract.state.index("enemy_0_is_stalker")
    assert raw[column] == 0.0  # what comes over the pipe is the other way round
    world.close()


def test_a_policy_plays_the_game_as_it_plays_our_engine(machine):
    """The very folder of a policy decides the same on both, whichever world shows it."""
    contract = contract_of(MAPS["3m"])
    made_for = TeamContract(
        map="3m", agents=3, observation=contract.observation, actions=contract.actions
    )
    policy = TeamPolicy.create(NetworkConfig(), made_for, Seeds(1))
    sink, own = MemorySink(), BattleWorld(BattleConfig())
    play(own, PolicyTeam(policy), "e", Seeds(5), [sink])
    acts = [
        [s.decision.action for s in sink.steps[t : t + 3]] for t in range(0, len(sink.steps), 3)
    ]
    turns = iter(acts)
    recorded = record_battle(
        "3m",
        Seeds(5).child("e", "world"),
        lambda world, seen: dict(zip(world.roles, next(turns), strict=True)),
    )
    machine.plays(episodes=[recorded])
    other, world = MemorySink(), machine.world()
    result = play(world, PolicyTeam(policy), "e", Seeds(5), [other])
    assert trajectory_hash(other.steps) == trajectory_hash(sink.steps)
    assert result.steps == len(acts) > 5
    kept = world.save_replay(machine.game / "kept", checkpoint=PolicyTeam(policy).version)
    assert json.loads(kept.metadata.read_text())["checkpoint"] == policy.version
    world.close()


def test_running_out_of_time_is_a_defeat_and_is_told(machine):
    (recorded,) = machine.plays("2s_vs_1sc", "wait")
    assert len(recorded["actions"]) == 300
    world = machine.world(map="2s_vs_1sc", reward="sparse")
    _, outcomes = play_back(world, recorded, Seeds(0))
    last = outcomes[-1][Role("agent_1")]
    assert last.terminated
    assert not last.truncated
    assert last.info == {"won": False, "episode_limit": True}
    assert last.reward == -1.0
    assert {each[Role("agent_0")].reward for each in outcomes[:-1]} == {0.0}
    world.close()


def test_sparse_reward_is_one_for_a_win(machine):
    episodes = machine.plays()
    world = machine.world(reward="sparse")
    for k, end in enumerate((1.0, -1.0)):
        _, outcomes = play_back(world, episodes[k], seed_of(k))
        assert [each[Role("agent_0")].reward for each in outcomes[-2:]] == [0.0, end]
    world.close()


def test_what_is_not_legal_is_played_as_stop_and_by_the_dead_as_nothing(machine):
    episodes = machine.plays()
    world = machine.world()
    world.reset(seed_of(1))
    died = False
    for recorded in episodes[1]["actions"]:
        world.step(dict.fromkeys(world.roles, 8))
        legal = [frame["legal"] for frame in episodes[1]["frames"]][len(world.trace.actions) - 1]
        expected = [8 if row[8] else 0 if row[0] else 1 for row in legal]
        assert world.trace.actions[-1] == expected
        died |= 0 in expected
        assert len(recorded) == 3
    assert died
    world.close()


def test_the_world_keeps_the_contract(machine):
    machine.plays()
    worlds = []

    def made():
        worlds.append(machine.world())
        return worlds[-1]

    check_world(made)
    assert len(machine.clients) == 3  # a fresh one for every episode
    for world in worlds:
        world.close()


def test_the_world_is_registered_and_its_config_is_checked(machine):
    assert "starcraft" in names("world")
    params = {"map": "2s_vs_1sc", "python": str(machine.python), "game": str(machine.game)}
    world = make("world", Ref(use="starcraft", params=params))
    assert world.roles == ("agent_0", "agent_1")
    start = world.start(Role("agent_1"), Seeds(0))
    own = BattleWorld(BattleConfig(map="2s_vs_1sc")).start(Role("agent_1"), Seeds(0))
    assert start == own
    for wrong in ({"map": "1m_vs_1m"}, {"difficulty": "B"}, {"step_timeout_s": 0.0}, {"seed": 1}):
        with pytest.raises(ConfigError):
            make("world", Ref(use="starcraft", params=params | wrong))


def test_every_setting_reaches_the_game(machine):
    machine.plays()
    world = machine.world(difficulty="A", game_version="4.10")
    world.reset(seed_of(0))
    told = json.loads((machine.game / "settings.json").read_text())
    assert told == {
        "map_name": "3m",
        "seed": seed_of(0).child("battle").as_int(),
        "difficulty": "A",
        "game_version": "4.10",
        "step_mul": 8,
        "move_amount": 2.0,
        "continuing_episode": True,
    }
    world.close()


def test_the_worker_sees_nothing_of_this_interpreter(machine, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/this/interpreter")
    monkeypatch.setenv("A_SECRET", "word")
    machine.plays()
    world = machine.world()
    world.reset(seed_of(0))
    paths, folder = json.loads((machine.game / "paths.json").read_text())
    assert "/of/this/interpreter" not in paths
    assert str(WORKER.parent) not in paths  # its own folder must not hide other modules
    world.close()
    assert not machine.game.joinpath(folder).exists()


def test_a_client_can_be_kept_for_several_episodes(machine):
    episodes = machine.plays()
    world = machine.world(fresh_client=False)
    for _ in range(2):
        play_back(world, episodes[0], seed_of(0))
    assert len(machine.clients) == 1
    world.reset(seed_of(0))
    world.reset(seed_of(0))  # not played out: SMAC would leave a client behind
    assert len(machine.clients) == 2
    world.close()


def test_the_world_refuses_what_it_does_not_know(machine):
    machine.plays()
    world = machine.world()
    with pytest.raises(VenueError, match="over"):
        world.step(dict.fromkeys(world.roles, 1))
    with pytest.raises(VenueError, match="begun"):
        world.state()
    world.reset(seed_of(0))
    one, two, three = world.roles
    for wrong in ({one: 1, two: 1}, {one: 1, two: 1, three: 9}, {one: 1, two: 1, three: True}):
        with pytest.raises(AgentError):
            world.step(wrong)
    with pytest.raises(AgentError, match="no such role"):
        world.start(Role("agent_3"), Seeds(0))
    world.step({one: np.int64(1), two: 1, three: 1})
    world.close()


def test_the_worker_runs_on_an_old_interpreter():
    tree = ast.parse(WORKER.read_text(), feature_version=(3, 8))
    roots = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert "agent_gym" not in roots
    assert "smac" not in roots


@pytest.mark.parametrize(
    "line",
    [
        "no json",
        "[1]",
        '{"ask": "probe"}',
        '{"id": 1, "ask": "dance"}',
        '{"id": 1, "ask": "step", "actions": [1]}',
        '{"id": 1, "ask": "open", "protocol": 2}',
        '{"id": 1, "ask": "open", "protocol": true}',
    ],
)
def test_the_worker_checks_what_it_is_asked(line):
    answer = json.loads(worker.respond(worker.Game(), line))
    assert answer["failed"]["kind"] == "request"
    assert answer["id"] == (1 if '"id"' in line else -1)
