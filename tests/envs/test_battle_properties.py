"""What is true of every battle, whatever is done in it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core import Seeds
from agent_gym.envs.battle import MAPS, BattleBatch, script
from agent_gym.envs.battle.batch import Snapshot

PLAYS = ("random", "nearest", "stand", "focus", "hand-over", "anything")
SWAPPED = {2: 3, 3: 2}


def actions_of(batch, play, dice):
    if play != "anything":
        return script(play, Seeds(int(dice.integers(1000))))(batch)
    return dice.integers(0, len(batch.contract.actions), batch.actions.shape)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(MAPS)),
    reward=st.sampled_from(["dense", "sparse", "kills"]),
    seed=st.integers(0, 2**32),
    plays=st.lists(st.sampled_from(PLAYS), min_size=1, max_size=40),
)
def test_a_battle_stays_sane(name, reward, seed, plays):
    battle = MAPS[name].paying(reward)
    batch, dice = BattleBatch(battle, 4), Seeds(seed).child("dice").rng()
    batch.reset(Seeds(seed))
    for play in plays:
        before = batch.units["hp"].copy(), batch.clocks["episode"].copy()
        batch.step(actions_of(batch, play, dice))
        check_units(batch)
        check_senses(batch)
        check_results(batch, *before)


def check_units(batch):
    units, facts, battle = batch.units, batch.facts, batch.map
    for name in ("x", "y", "hp", "shield", "cooldown", "unhit"):
        assert np.isfinite(units[name]).all()
    assert ((units["hp"] >= 0) & (units["hp"] <= facts["max_hp"])).all()
    assert ((units["shield"] >= 0) & (units["shield"] <= facts["max_shield"])).all()
    assert (units["shield"][units["hp"] == 0] == 0).all()
    for name, most in (("x", battle.width), ("y", battle.height)):
        assert (units[name] >= battle.margin).all()
        assert (units[name] <= most - battle.margin).all()
    still = facts["stride"] == 0
    assert (units["x"][:, still] == facts["start_x"][still]).all()


def check_senses(batch):
    (seen, state, legal), units, n = batch.senses, batch.units, batch.n_agents
    assert (np.abs(seen) <= 1).all()
    assert (np.abs(state) <= 1).all()
    alive = units["hp"] > 0
    assert (legal[:, :, 0] == ~alive[:, :n]).all()
    assert (legal[:, :, 1] == alive[:, :n]).all()
    dx, dy = (units[c][:, :n, None] - units[c][:, None, n:] for c in ("x", "y"))
    near = dx * dx + dy * dy <= 36.0
    assert (legal[:, :, 6:] == near & alive[:, :n, None] & alive[:, None, n:]).all()
    assert not legal[:, :, 2:6][~alive[:, :n]].any()
    assert not seen[~alive[:, :n]].any()
    assert (seen[:, :, :4] == legal[:, :, 2:6]).all()
    shootable = seen[:, :, [batch.contract.observation.index(f"enemy_{j}_shootable")
                            for j in range(legal.shape[2] - 6)]]  # fmt: skip
    assert (shootable == legal[:, :, 6:]).all()


def check_results(batch, hp, episode):
    rewards, ended, won = batch.results
    assert np.isfinite(rewards).all()
    assert not (won & ~ended).any()
    assert (batch.clocks["episode"] == episode + ended).all()
    if batch.map.reward.kind == "sparse":
        assert (rewards == np.where(won, 1.0, np.where(ended, -1.0, 0.0))).all()
    else:
        assert (rewards >= 0).all()
    grown = np.where(ended[:, None], 0.0, batch.units["hp"] - hp)
    assert (grown <= batch.facts["heal"] * batch.map.time.ticks_per_step + 1e-9).all()


def mirrored(battle):
    """Return the same map upside down."""

    def flip(side):
        return tuple(replace(placed, y=battle.height - placed.y) for placed in side)

    return replace(battle, agents=flip(battle.agents), enemies=flip(battle.enemies))


def mirror_gap(name, play, swapped):
    """Play a battle and its mirror image; return how far apart they ever are."""
    battle, other = MAPS[name], mirrored(MAPS[name])
    plain, flipped = (BattleBatch(one, 1, auto_reset=False) for one in (battle, other))
    plain.reset(Seeds(8))
    kept = plain.capture(0)
    kept.units["y"] = battle.height - kept.units["y"]
    flipped.restore(0, Snapshot(other.content_hash, *kept[1:]))
    decide, gap = script(play, Seeds(0)), 0.0
    while not plain.results.ended[0]:
        actions = decide(plain)
        plain.step(actions)
        flipped.step(np.vectorize(lambda a: swapped.get(a, a))(actions))
        upright = flipped.units.copy()
        upright["y"] = battle.height - upright["y"]
        gaps = [np.abs(upright[c] - plain.units[c]).max() for c in plain.units.dtype.names]
        gap = max(gap, *gaps, np.abs(flipped.results.rewards - plain.results.rewards).max())
    return gap


@pytest.mark.parametrize("play", ["nearest", "focus", "random"])
@pytest.mark.parametrize("name", ["3m", "2s_vs_1sc", "3s_vs_5z"])
def test_a_battle_upside_down_is_the_same_battle(name, play):
    assert mirror_gap(name, play, SWAPPED) < 1e-6


def test_north_is_not_south():
    assert mirror_gap("3m", "random", {}) > 0.1
