"""The same algorithms in SBX (JAX), which learns several times as fast on a processor.

A model that was trained there is kept as the network of Stable-Baselines3 with the same weights,
so that nobody who uses it needs JAX, or can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv
from torch import Tensor

from agent_gym.agents.sb3.algorithms import action_noise, check_actions, schedule
from agent_gym.agents.sb3.config import AgentConfig, NoisyConfig, SACConfig, TD3Config
from agent_gym.agents.sb3.spaces import check_observations
from agent_gym.core.errors import ConfigError

CLASSES: dict[type[AgentConfig], str] = {SACConfig: "SAC", TD3Config: "TD3"}
UNTOLD = ("target_update_interval", "use_sde")  # fields that SBX has no ear for, or hears otherwise


def build_jax_model(config: AgentConfig, env: VecEnv, seed: int) -> BaseAlgorithm:
    """Return an untrained model of SBX; a setting that it would not obey is refused."""
    check_jax(config)
    check_observations(env.observation_space)
    check_actions(config, env.action_space)
    sbx, linen = _library("sbx"), _library("flax.linen")
    kwargs = {key: value for key, value in config.model_kwargs().items() if key not in UNTOLD}
    if isinstance(config, NoisyConfig):
        kwargs["action_noise"] = action_noise(config.action_noise, env.action_space)
    model: BaseAlgorithm = getattr(sbx, CLASSES[type(config)])(
        "MlpPolicy",
        env,
        learning_rate=schedule(config.learning_rate),
        policy_kwargs={
            "net_arch": list(config.net_arch),
            "activation_fn": getattr(linen, config.activation),
        },
        seed=seed,
        **kwargs,
    )
    return model


def check_jax(config: AgentConfig) -> None:
    """Refuse an algorithm or a setting that SBX does not know, and SBX where it is absent."""
    if type(config) not in CLASSES:
        raise ConfigError(
            "this algorithm is not learned in JAX",
            where="learner",
            found=config.algo,
            expected=", ".join(kind.algo for kind in CLASSES),
            remedy="Leave learner out, or say learner: sb3",
        )
    for field in UNTOLD:
        default = type(config).model_fields[field].default if hasattr(config, field) else None
        if getattr(config, field, None) != default:
            raise ConfigError(
                "SBX does not know this setting", where=f"agent ({config.algo}): {field}"
            )
    if find_spec("sbx") is None:  # looked for, not imported: JAX and forks do not get along
        raise _absent("sbx")


def is_jax(model: BaseAlgorithm) -> bool:
    """Return whether a model is one of SBX."""
    return type(model).__module__.partition(".")[0] == "sbx"


def torch_weights(model: Any) -> dict[str, Tensor]:
    """Return the weights of a model of SBX under the names of its twin in Stable-Baselines3."""
    actor, critics = model.policy.actor_state, model.policy.qf_state
    named = [*_critics("critic", critics.params), *_critics("critic_target", critics.target_params)]
    if hasattr(actor, "target_params"):  # TD3 follows its actor slowly; SAC has none to follow
        named += _certain_actor("actor", actor.params)
        named += _certain_actor("actor_target", actor.target_params)
    else:
        named += _drawing_actor("actor", actor.params)
    return dict(named)


def _certain_actor(name: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for i, layer in enumerate(_dense(params["params"])):
        yield from _linear(f"{name}.mu.{2 * i}", layer)


def _drawing_actor(name: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    *hidden, mean, log_std = _dense(params["params"])
    for i, layer in enumerate(hidden):
        yield from _linear(f"{name}.latent_pi.{2 * i}", layer)
    yield from _linear(f"{name}.mu", mean)
    yield from _linear(f"{name}.log_std", log_std)


def _critics(name: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    (stacked,) = params["params"].values()
    for i, layer in enumerate(_dense(stacked)):
        for k in range(len(layer["bias"])):
            own = {part: values[k] for part, values in layer.items()}
            yield from _linear(f"{name}.qf{k}.{2 * i}", own)


def _dense(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the layers in the order in which they follow each other."""
    return [params[f"Dense_{i}"] for i in range(len(params))]


def _linear(name: str, layer: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", torch.from_numpy(np.array(layer["kernel"], dtype=np.float32).T.copy())
    yield f"{name}.bias", torch.from_numpy(np.array(layer["bias"], dtype=np.float32))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise _absent(str(error)) from error


def _absent(found: str) -> ConfigError:
    return ConfigError(
        "the JAX learner is not installed",
        where="learner: sbx",
        found=found,
        remedy="pip install 'agent-gym[fast]', or say learner: sb3",
    )
