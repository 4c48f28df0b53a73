"""The sanity ladder: a bandit, matrix games, a duel, a battle. Each rung has its control."""

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.training.marl import look_at, shipped_config, train_team
from agent_gym.training.marl.amal import amal_for
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.config import ReuseConfig
from agent_gym.training.marl.session import Session
from agent_gym.training.marl.worlds import battle_worlds
from tests.envs.battle_samples import run_script
from tests.training.marl_samples import BANDIT, CLIMBING, game, penalty

SEEDS = range(3)


def paid(folder, payoff, *, seeds=SEEDS, **how):
    """Return what greedy play is paid after a training, for each seed."""
    return [game(folder / f"{seed}", payoff, seed=seed, **how).final.mean_return for seed in seeds]


def test_a_bandit_is_solved(tmp_path):
    assert paid(tmp_path, BANDIT) == [1.0, 1.0, 1.0]


def test_a_bandit_that_pays_at_random_is_not(tmp_path):
    assert np.mean(paid(tmp_path, BANDIT, shuffled=True)) < 0.8


def test_the_penalty_game_is_solved(tmp_path):
    assert paid(tmp_path, penalty(-5.0)) == [10.0, 10.0, 10.0]


def test_the_penalty_game_that_pays_at_random_is_not(tmp_path):
    assert np.mean(paid(tmp_path, penalty(-5.0), shuffled=True)) < 8.0


def test_climbing_ends_in_the_best_plan_that_a_slip_does_not_ruin(tmp_path):
    """Its best plan (11) pays -30 as soon as one agent slips, so agents who explore leave it.

    They climb from 5 over 6 to 7, from where nobody alone can do better.
    """
    assert paid(tmp_path, CLIMBING, seeds=range(2), steps=16_000) == [7.0, 7.0]


AMAL = {"amal": AmalConfig(), "reuse": ReuseConfig(iterations=4, imitation=1.0)}


@pytest.mark.parametrize(("payoff", "most"), [(BANDIT, 1.0), (penalty(-5.0), 10.0)])
def test_amal_solves_the_same_games(tmp_path, payoff, most):
    assert paid(tmp_path, payoff, seeds=range(2), **AMAL) == [most, most]


def test_amal_does_not_solve_a_bandit_that_pays_at_random(tmp_path):
    assert np.mean(paid(tmp_path, BANDIT, shuffled=True, **AMAL)) < 0.8


def trained(folder, map_name, steps, algo="mappo"):
    """Return a look at a team after a training of seconds, and one at it before."""
    looks = {"every": steps, "episodes": 8, "final_episodes": 1_000}
    changes = {"world": {"map": map_name}, "env_steps": steps, "evaluation": looks}
    config = shipped_config(algo, changes)
    before = Session(config, battle_worlds, amal_for(config, battle_worlds)).learner.policy
    start = look_at(before, battle_worlds(config, 1_000), Seeds(0))
    return train_team(config, folder).final.interval, start.interval


@pytest.mark.parametrize("algo", ["mappo", "amal"])
def test_a_duel_is_learned_as_far_as_scripts_go(tmp_path, algo):
    """Beyond that it needs a plan that some trainings find after 50,000 steps or more."""
    after, before = trained(tmp_path, "1m_vs_1m", 16_000, algo)
    random, nearest = (run_script("1m_vs_1m", name, n=1_000).wins for name in ("random", "nearest"))
    assert after.low > 5 * max(before.high, random.high)
    assert after.high > nearest.low


def test_a_battle_is_learned_beyond_the_nearest_target(tmp_path):
    after, before = trained(tmp_path, "3m", 32_000)
    assert after.low > run_script("3m", "nearest", n=1_000).wins.high
    assert before.high < 0.1
