"""The algorithms that can be named, and how Stable-Baselines3 is told what a config says."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from sb3_contrib import QRDQN, TQC
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from agent_gym.agents.sb3.config import (
    A2CConfig,
    AgentConfig,
    DQNConfig,
    NoisyConfig,
    PPOConfig,
    QRDQNConfig,
    Rate,
    SACConfig,
    TD3Config,
    TQCConfig,
    parse_rate,
)
from agent_gym.agents.sb3.spaces import check_observations
from agent_gym.core.errors import ConfigError

Actions: TypeAlias = Literal["discrete", "continuous", "any"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "elu": nn.ELU,
    "silu": nn.SiLU,
}
RATES = ("clip_range", "clip_range_vf")
ADAM_EPS = 1e-5  # what the library takes for PPO unless it is told something about Adam
FITTING = {
    "discrete": "an environment with discrete actions, such as LunarLander-v3",
    "continuous": "an environment with continuous actions, such as LunarLanderContinuous-v3",
}


class Algorithm(NamedTuple):
    """One way to learn: its settings, its class in the library, what it can act in."""

    name: str
    config: type[AgentConfig]
    model: type[BaseAlgorithm]
    actions: Actions


ALGORITHMS: dict[str, Algorithm] = {
    each.name: each
    for each in (
        Algorithm("ppo", PPOConfig, PPO, "any"),
        Algorithm("a2c", A2CConfig, A2C, "any"),
        Algorithm("sac", SACConfig, SAC, "continuous"),
        Algorithm("td3", TD3Config, TD3, "continuous"),
        Algorithm("tqc", TQCConfig, TQC, "continuous"),
        Algorithm("dqn", DQNConfig, DQN, "discrete"),
        Algorithm("qrdqn", QRDQNConfig, QRDQN, "discrete"),
    )
}


def build_model(config: AgentConfig, env: VecEnv, seed: int) -> BaseAlgorithm:
    """Return an untrained model of the library, on the CPU; every field of the config reaches it.

    It seeds the three global generators (python, numpy, torch), as the library always does.
    """
    algorithm = ALGORITHMS[config.algo]
    check_observations(env.observation_space)
    check_actions(config, env.action_space)
    kwargs = {name: _told(name, value) for name, value in config.model_kwargs().items()}
    if isinstance(config, NoisyConfig):
        kwargs["action_noise"] = action_noise(config.action_noise, env.action_space)
    return algorithm.model(
        "MlpPolicy",
        env,
        learning_rate=schedule(config.learning_rate),
        policy_kwargs=policy_kwargs(config),
        device="cpu",
        seed=seed,
        **kwargs,
    )


def policy_kwargs(config: AgentConfig) -> dict[str, Any]:
    """Return what the networks are made of, as the library wants it."""
    told: dict[str, Any] = {
        "net_arch": list(config.net_arch),
        "activation_fn": ACTIVATIONS[config.activation],
    }
    if isinstance(config, PPOConfig) and config.fused_adam:
        told["optimizer_kwargs"] = {"fused": True, "eps": ADAM_EPS}
    return told


def schedule(rate: Rate) -> float | LinearSchedule:
    """Return a rate as the library wants it: a number, or a line over the whole training.

    Example:
        >>> falling = schedule("linear_0.5_0.25")
        >>> falling(1.0), falling(0.5), falling(0.0), schedule(0.5)
        (0.5, 0.375, 0.25, 0.5)
    """
    if not isinstance(rate, str):
        return rate
    start, end = parse_rate(rate)
    return LinearSchedule(start, end, 1.0)


def check_actions(config: AgentConfig, space: spaces.Space[Any]) -> None:
    """Refuse an algorithm that cannot act in a space, with the fix in words."""
    algo, fits = config.algo, ALGORITHMS[config.algo].actions
    found = "continuous" if isinstance(space, spaces.Box) else "discrete"
    if fits not in ("any", found):
        raise ConfigError(
            f"{algo} needs {fits} actions",
            where=f"agent ({algo})",
            found=space,
            expected=FITTING[fits],
            remedy=f"Name {FITTING[fits]}, or say continuous: auto, or take another algorithm",
        )
    if getattr(config, "use_sde", False) and found == "discrete":
        raise ConfigError(
            "state-dependent exploration needs continuous actions",
            where=f"agent ({algo}): use_sde",
            found=space,
            remedy="Leave use_sde out",
        )


def _told(name: str, value: Any) -> Any:
    return schedule(value) if name in RATES and value is not None else value


def action_noise(deviation: float, space: spaces.Space[Any]) -> NormalActionNoise | None:
    """Return the noise that is added to actions while it learns; none for a deviation of 0."""
    if deviation == 0.0:
        return None
    shape = space.shape or ()
    return NormalActionNoise(mean=np.zeros(shape), sigma=np.full(shape, deviation))
