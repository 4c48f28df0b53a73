"""The compiled engine does what the slow one does, in every map."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.envs.battle import MAPS, BattleBatch, script
from tests.envs.battle_reference import Reference

COLUMNS = ("x", "y", "hp", "shield", "cooldown", "unhit", "target", "attacker")
EXACT = 1e-12


def largest_gap(battle, play, seed, steps=70):
    """Play both engines side by side; return how far apart they ever are, and what happened."""
    batch = BattleBatch(battle, 1, auto_reset=False)
    batch.reset(Seeds(seed))
    slow = Reference(battle, batch.capture(0))
    decide, dice = script(play, Seeds(seed)), Seeds(seed).child("dice").rng()
    gap, seen_gap = 0.0, 0.0
    for _ in range(steps):
        actions = decide(batch)
        if dice.random() < 0.1:  # what is not legal, too
            actions = dice.integers(0, len(batch.contract.actions), actions.shape)
        rewards, ended, won = batch.step(actions)
        reward, over, victory = slow.step(actions[0].tolist())
        assert (bool(ended[0]), bool(won[0])) == (over, victory)
        gap = max(gap, abs(reward - rewards[0]))
        for name in COLUMNS:
            theirs = np.array([getattr(body, name) for body in slow.bodies])
            gap = max(gap, np.abs(theirs - batch.units[name][0]).max())
        for i in range(batch.n_agents):
            seen_gap = max(
                seen_gap,
                np.abs(np.array(slow.observation(i)) - batch.senses.observations[0, i]).max(),
            )
            assert np.flatnonzero(batch.senses.legal[0, i]).tolist() == slow.legal(i)
        if over:
            break
    return gap, seen_gap, batch


@pytest.mark.parametrize("play", ["random", "nearest", "hand-over"])
@pytest.mark.parametrize("name", MAPS)
def test_both_engines_agree(name, play):
    gap, seen_gap, batch = largest_gap(MAPS[name], play, seed=3)
    assert gap < EXACT
    assert seen_gap < 1e-6  # observations are single precision
    assert batch.clocks["steps"][0] > 5
    if play != "random":
        full = batch.facts["max_hp"] + batch.facts["max_shield"]
        assert (batch.units["hp"] + batch.units["shield"] < full).any()


@pytest.mark.parametrize("reward", ["sparse", "kills"])
def test_both_engines_agree_on_other_rules(reward):
    battle = replace(MAPS["2s3z"], targeting="sticky", start_jitter=2.0).paying(reward)
    assert largest_gap(battle, "focus", seed=4)[0] < EXACT


def test_another_rule_would_be_noticed():
    one, other = MAPS["2s_vs_1sc"], replace(MAPS["2s_vs_1sc"], targeting="sticky")
    batches = [largest_gap(battle, "hand-over", seed=3)[2] for battle in (one, other)]
    assert batches[0].units["hp"].tolist() != batches[1].units["hp"].tolist()
