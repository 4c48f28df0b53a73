"""The peers of the learning benchmark: what they are told, and what a fast row must also be."""

from __future__ import annotations

import gymnasium
import pytest
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

from agent_gym.training.rl.config import read_trainer_config
from agent_gym.training.rl.experiment_config import shipped_config
from agent_gym.training.rl.setup import make_setup
from benchmarks.learning import ZOO, same_ppo, with_returns
from benchmarks.report import Row

ALIKE = (
    "n_steps",
    "batch_size",
    "n_epochs",
    "gamma",
    "gae_lambda",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "normalize_advantage",
    "use_sde",
    "target_kl",
    "clip_range_vf",
    "policy_kwargs",
)


def test_the_strict_peer_has_every_setting_of_ours():
    config = read_trainer_config(shipped_config("market-ppo")).model_copy(update={"n_envs": 32})
    peer = same_ppo(config, lambda: gymnasium.make("CartPole-v1"))
    ours = make_setup(config, 0).model
    for name in ALIKE:
        assert getattr(peer, name) == getattr(ours, name), name
    for rate in (0.0, 0.5, 1.0):
        assert peer.lr_schedule(rate) == ours.lr_schedule(rate)
        assert peer.clip_range(rate) == ours.clip_range(rate)
    for model in (peer, ours):
        group = model.policy.optimizer.param_groups[0]
        assert (group["fused"], group["eps"]) == (True, 1e-5)
        assert any(isinstance(layer, nn.ReLU) for layer in model.policy.modules())
        env = model.get_env()
        assert isinstance(env, VecNormalize)
        assert (env.norm_obs, env.norm_reward, env.clip_obs, env.gamma) == (True, True, 10.0, 0.99)
    assert peer.n_envs == 32


@pytest.mark.parametrize(
    ("rate_met", "ours", "theirs", "met"),
    [
        (True, (100, 50.0), (100, 40.0), True),
        (True, (100, 40.0), (100, 40.0), True),
        (True, (100, 39.9), (100, 40.0), False),
        (True, (101, 50.0), (100, 40.0), False),
        (False, (100, 50.0), (100, 40.0), False),
        (None, (100, 50.0), (100, 40.0), None),
    ],
)
def test_speed_counts_only_at_an_equal_return(rate_met, ours, theirs, met):
    row = Row("ppo_lander", "steps/s", 3.0, 4.0, "at least 1.5x", rate_met)
    told = [{"steps": steps, "mean": mean} for steps, mean in (ours, theirs)]
    found = with_returns(row, *told)
    assert found.met is met
    assert found.measured["returns"][ZOO] == told[1]
    assert "equal or better return" in found.goal
    assert f"{ours[1]:.1f} and {theirs[1]:.1f}" in found.note
