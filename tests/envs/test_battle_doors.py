"""One engine, three doors: the batch, the world and PettingZoo play the same battles."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from agent_gym.core import AgentError, Seeds, StoreError, VenueError
from agent_gym.core.types import Role
from agent_gym.envs.battle import (
    MAPS,
    BattleBatch,
    BattleConfig,
    BattleParallelEnv,
    BattleWorld,
    ScriptedTeam,
    script,
)
from agent_gym.envs.exact import ExactEnv
from agent_gym.rollouts import MemorySink, check_world, play

STEPS = 150


def trace(battle, n_envs, seed, *, keep=None, steps=STEPS):
    """Return the bytes of all that happened in the first environments, and the batch."""
    batch, dice = BattleBatch(battle, n_envs), Seeds(9).child("dice").rng()
    batch.reset(Seeds(seed))
    choices = len(batch.contract.actions)
    acts = dice.integers(0, choices, (steps, 128, batch.n_agents))[:, :n_envs]
    if battle.name == "3m":  # fights too, not chance alone
        acts[::2] = -1
    told = []
    for chosen in acts:
        if chosen.min() < 0:
            chosen = script("nearest", Seeds(0))(batch)
        batch.step(chosen)
        parts = (*batch.senses, *batch.results, batch.units, batch.clocks)
        told.append(b"".join(part[:keep].tobytes() for part in parts))
    return told, batch


@pytest.mark.parametrize("name", MAPS)
def test_a_battle_does_not_depend_on_how_many_there_are(name):
    few, batch = trace(MAPS[name], 64, 1)
    many, _ = trace(MAPS[name], 128, 1, keep=64)
    assert few == many
    assert batch.clocks["episode"].max() > 1 or name == "2s_vs_1sc"


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    one, again, other = (trace(MAPS["3m"], 8, seed)[0] for seed in (5, 5, 6))
    assert one == again
    assert one[0] != other[0]


def test_environments_and_episodes_differ():
    _, batch = trace(MAPS["3m"], 64, 2, steps=1)
    assert len(np.unique(batch.units["x"][:, 0])) == 64
    batch.reset(Seeds(2))
    starts = batch.units["x"].copy()
    while batch.clocks["episode"].min() == 1:
        batch.step(script("nearest", Seeds(0))(batch))
    assert batch.results.rewards.shape == (64,)
    assert not np.isin(batch.units["x"][batch.clocks["steps"] == 0], starts).any()


def test_a_new_episode_begins_in_the_step_that_ends_one():
    batch = BattleBatch(MAPS["1m_vs_1m"], 4)
    batch.reset(Seeds(3))
    decide = script("nearest", Seeds(0))
    while not batch.step(decide(batch)).ended.any():
        assert (batch.clocks["episode"] == 1).all()
    over = batch.results.ended
    assert (batch.clocks["episode"] == 1 + over).all()
    assert (batch.clocks["steps"][over] == 0).all()
    assert (batch.units["hp"][over] == 45).all()
    assert not batch.senses.state[over, 7:].any()  # nobody did anything yet
    kept = over.copy()
    batch.step(decide(batch))
    assert not (batch.results.ended & kept).any()


@pytest.mark.parametrize("name", ["3m", "2s3z"])
def test_a_snapshot_is_played_on_to_the_bit(name):
    batch, decide = BattleBatch(MAPS[name], 3), script("nearest", Seeds(0))
    batch.reset(Seeds(4))
    for _ in range(12):
        batch.step(decide(batch))
    kept = batch.capture(1)
    first = []
    for _ in range(20):
        batch.step(decide(batch))
        first.append(batch.digest(1))
    other = BattleBatch(MAPS[name], 5)
    other.restore(4, kept)
    other.restore(0, kept)
    assert other.digest(4) == kept.digest() != first[0]
    for expected in first:
        other.step(decide(other))
        assert other.digest(4) == other.digest(0) == expected
    assert len(set(first)) == 20


def test_a_digest_covers_every_field():
    batch = BattleBatch(MAPS["3m"], 1)
    batch.reset(Seeds(0))
    kept = batch.capture(0)
    digests = {kept.digest()}
    for part in ("units", "clock"):
        for name in getattr(kept, part).dtype.names:
            changed = batch.capture(0)
            getattr(changed, part)[name][-1] += 1
            digests.add(changed.digest())
    changed = batch.capture(0)
    changed.actions[0] = 1
    digests |= {changed.digest(), kept._replace(map_hash="other").digest()}
    assert len(digests) == 8 + 7 + 1 + 1 + 1


def test_a_snapshot_of_another_map_is_refused():
    one, other = BattleBatch(MAPS["3m"], 1), BattleBatch(MAPS["3m"].paying("sparse"), 1)
    one.reset(Seeds(0))
    with pytest.raises(StoreError, match="another map"):
        other.restore(0, one.capture(0))
    with pytest.raises(StoreError, match="another batch"):
        other.set_state(one.get_state())


def test_a_whole_batch_goes_on_where_another_stood():
    batch, other = (BattleBatch(MAPS["2s3z"], 6) for _ in range(2))
    assert isinstance(batch, ExactEnv)
    batch.reset(Seeds(7))
    decide = script("nearest", Seeds(0))
    for _ in range(30):
        batch.step(decide(batch))
    other.set_state(batch.get_state())
    assert all(a.tobytes() == b.tobytes() for a, b in zip(batch.senses, other.senses, strict=True))
    for _ in range(60):
        batch.step(decide(batch))
        other.step(decide(other))
    assert [batch.digest(e) for e in range(6)] == [other.digest(e) for e in range(6)]


@pytest.mark.parametrize("name", MAPS)
def test_the_world_keeps_the_contract(name):
    check_world(lambda: BattleWorld(BattleConfig(map=name)), max_steps=80)


@pytest.mark.parametrize("name", ["1m_vs_1m", "3m", "2s_vs_1sc"])
def test_the_loop_plays_what_the_batch_plays(name):
    world, sink = BattleWorld(BattleConfig(map=name)), MemorySink()
    result = play(world, ScriptedTeam(world, "nearest"), "e", Seeds(11), [sink])
    batch = BattleBatch(MAPS[name], 1, auto_reset=False)
    batch.reset(Seeds(11).child("e", "world", "battle"))
    total, decide = 0.0, script("nearest", Seeds(0))
    for t in range(result.steps):
        rows = sink.steps[t * len(world.roles) : (t + 1) * len(world.roles)]
        for i, row in enumerate(rows):
            assert row.agent == "battle/nearest"
            assert row.before.features.tolist() == batch.senses.observations[0, i].tolist()
            assert row.before.legal.tolist() == batch.senses.legal[0, i].tolist()
        total += batch.step(decide(batch)).rewards[0]
    assert batch.results.ended[0]
    assert result.total_reward == dict.fromkeys(world.roles, total)
    last = sink.steps[-1].after
    assert last.info == {"won": bool(batch.results.won[0])}
    assert last.observation.ts == result.steps * 357_142_857  # 8 of 22.4 ticks
    assert world.state().tolist() == batch.senses.state[0].tolist()


def test_the_world_refuses_what_it_does_not_know():
    world = BattleWorld(BattleConfig())
    one, two, three = world.roles
    with pytest.raises(VenueError, match="over"):
        world.step(dict.fromkeys(world.roles, 1))
    world.reset(Seeds(0))
    for wrong in ({one: 1, two: 1}, {one: 1, two: 1, three: 9}, {one: 1, two: 1, three: 1.0}):
        with pytest.raises(AgentError):
            world.step(wrong)
    with pytest.raises(AgentError, match="no such role"):
        world.start(Role("agent_3"), Seeds(0))


@pytest.mark.parametrize("name", ["1m_vs_1m", "3m", "2s3z"])
def test_pettingzoo_finds_no_fault(name):
    parallel_api_test(BattleParallelEnv(BattleConfig(map=name)), num_cycles=200)
    parallel_seed_test(lambda: BattleParallelEnv(BattleConfig(map=name)))


def test_pettingzoo_gets_masks_state_and_the_verdict():
    env = BattleParallelEnv()
    seen, infos = env.reset(seed=3)
    world = env.world
    while env.agents:
        actions = script("nearest", Seeds(0))(world.batch)[0]
        for name, action in zip(env.possible_agents, actions, strict=True):
            assert infos[name]["action_mask"][action] == 1
            assert env.observation_space(name).contains(seen[name])
        assert env.state_space.contains(env.state())
        chosen = dict(zip(env.possible_agents, actions.tolist(), strict=True))
        seen, rewards, over, cut, infos = env.step(chosen)
        assert len(set(rewards.values())) == 1
    assert set(over.values()) == {True}
    assert set(cut.values()) == {False}
    assert all(info["won"] == bool(world.batch.results.won[0]) for info in infos.values())
