"""Tiny models of every algorithm, trained for a moment, and the environments they fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from agent_gym.agents.sb3.algorithms import ALGORITHMS, build_model
from agent_gym.agents.sb3.artifact import save_model
from agent_gym.agents.sb3.config import CONFIGS, AgentConfig
from agent_gym.envs import ContinuousTargets, DiscreteTargets, MarketConfig
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.envs.vector_env import MarketVectorEnv
from tests.samples import random_bars

ALGOS = tuple(ALGORITHMS)
FEATURES = ("return_z", "momentum_4")
LEVELS = (-1.0, 0.0, 0.5)

torch.set_num_threads(1)


def tiny_config(algo: str, **more: Any) -> AgentConfig:
    """Return settings that train in a blink."""
    fields: dict[str, Any] = {
        "net_arch": (8, 8),
        "learning_rate": 0.01,
        "activation": "tanh",
    }
    if CONFIGS[algo].on_policy:
        fields |= {"n_steps": 8} | ({"batch_size": 8, "n_epochs": 1} if algo == "ppo" else {})
    else:
        fields |= {"buffer_size": 200, "learning_starts": 8, "batch_size": 8}
    return CONFIGS[algo](**(fields | more))


def is_discrete(algo: str) -> bool:
    """Return whether the small samples let an algorithm pick from a list."""
    return ALGORITHMS[algo].actions != "continuous"


def gym_env(env_id: str, n: int = 2, *, normalize: bool = True) -> VecEnv:
    """Return a game as the library wants it."""
    env = DummyVecEnv([lambda: gym.make(env_id)] * n)
    return VecNormalize(env) if normalize else env


def market_config(algo: str, **more: Any) -> MarketConfig:
    """Return a small market with actions that the algorithm knows."""
    actions = DiscreteTargets(levels=LEVELS) if is_discrete(algo) else ContinuousTargets()
    fields: dict[str, Any] = {
        "actions": actions,
        "episode_bars": 50,
        "random_start": False,
        "warmup_bars": 0,
        "features": FEATURES,
    }
    return MarketConfig(**(fields | more))


def market_vec(algo: str, *, normalize: bool = True) -> VecEnv:
    """Return a market as the library wants it."""
    env = SB3VecEnv(MarketVectorEnv(4, bars=random_bars(300, 5), config=market_config(algo)))
    return VecNormalize(env) if normalize else env


def market_words(algo: str) -> dict[str, Any]:
    """Return what a card says of that market."""
    env = MarketVectorEnv(1, bars=random_bars(300, 5), config=market_config(algo))
    levels = list(LEVELS) if is_discrete(algo) else None
    return {"id": "market", "feature_names": list(env.stage.slim_names), "levels": levels}


def trained(config: AgentConfig, env: VecEnv, *, shaken: bool = True) -> BaseAlgorithm:
    """Return a model that has learned a little, shaken so that it does not do the same always.

    With tanh inside and small biases it does nearly the opposite where it sees the opposite.
    """
    model = build_model(config, env, 3)
    model.learn(64)
    if not shaken:
        return model
    dice = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weights in model.policy.parameters():
            size = 1.0 if weights.dim() > 1 else 0.05
            weights.copy_(size * torch.randn(weights.shape, generator=dice))
    return model


def market_model(algo: str, folder: Path, *, normalize: bool = True) -> BaseAlgorithm:
    """Put a tiny model of the market into a folder."""
    config = tiny_config(algo)
    model = trained(config, market_vec(algo, normalize=normalize))
    save_model(model, folder, config=config, env=market_words(algo), step=64, losses={"loss": 0.5})
    return model
