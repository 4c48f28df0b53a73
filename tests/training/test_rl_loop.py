from __future__ import annotations

from typing import Any

import pytest
from stable_baselines3.common.logger import Logger

from agent_gym.training.rl.seeding import rng_state, set_rng_state
from agent_gym.training.rl.setup import make_setup
from agent_gym.training.rl.snapshot import capture, state_hash
from tests.training.rl_samples import FOUR, OTHERS, begin, run_out, small_config


def stock_hash(config: Any, seed: int) -> str:
    model, env = make_setup(config, seed)
    model.set_logger(Logger(None, []))
    model.learn(config.steps)
    return state_hash(capture(model, env))


@pytest.mark.parametrize("algo", FOUR + OTHERS)
def test_loop_equals_stock_learn(algo: str) -> None:
    config = small_config(algo)
    setup, loop = begin(config, seed=4)
    run_out(loop)
    ours = state_hash(capture(*setup))
    assert ours == stock_hash(config, 4)
    assert setup.model.num_timesteps >= config.steps
    assert ours != stock_hash(config, 3)


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_loop_equals_stock_learn_on_the_market_without_normaliser(algo: str) -> None:
    config = small_config(algo, "market", normalize={})
    setup, loop = begin(config)
    run_out(loop)
    assert state_hash(capture(*setup)) == stock_hash(config, 5)


def test_losses_of_an_iteration_are_told_once() -> None:
    _, loop = begin(small_config("td3"))
    first = [loop.iterate() for _ in range(5)]
    assert first[0] == {}, "nothing is learnt before learning_starts"
    while "critic_loss" not in (losses := loop.iterate()):
        pass
    assert set(losses) >= {"critic_loss", "learning_rate", "n_updates"}
    following = [loop.iterate() for _ in range(4)]
    assert {"actor_loss" in losses for losses in following} == {True, False}


def test_episodes_of_training_are_noted_with_the_raw_reward() -> None:
    setup, loop = begin(small_config("ppo"))
    run_out(loop)
    ended = loop.recorder.take()
    noted = [(entry["r"], entry["l"]) for entry in setup.model.ep_info_buffer or ()]
    assert [(each.reward, each.length) for each in ended] == noted
    assert len(noted) > 0
    assert all(each.reward < -20 or each.reward > 20 for each in ended), "of a crash, not scaled"
    assert loop.recorder.take() == []


def test_capture_changes_nothing() -> None:
    setup, loop = begin(small_config("sac"))
    for _ in range(20):
        loop.iterate()
    once, rng = state_hash(capture(*setup)), rng_state()
    assert state_hash(capture(*setup)) == once
    set_rng_state(rng)
    assert state_hash(capture(*setup)) == once
