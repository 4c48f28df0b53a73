"""The environments that Gymnasium knows by id: found, checked and made, with errors in words."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Literal, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, load_env_creator

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown

ActionKind: TypeAlias = Literal["discrete", "continuous", "other"]

OWN = "agent_gym/Market-v1"
CONTINUOUS = "continuous"
OF_MAKE = ("max_episode_steps",)
NAME = re.compile(r"^(?P<name>.*?)(?P<version>-v\d+)?$")


def find_spec(env: str) -> EnvSpec:
    """Return what Gymnasium knows of an id; ``package:Name-v0`` imports the package first."""
    package, _, name = env.rpartition(":")
    if package:
        _import(package, env)
    spec = gym.registry.get(name)
    if name == OWN:
        raise ConfigError(
            "the market environment is not trained on under its id of Gymnasium",
            where="env",
            found=name,
            remedy="Write env: market",
        )
    if spec is None:
        close = get_close_matches(name, ["market", *gym.registry], n=2, cutoff=0.6)
        raise ConfigError(
            f"no environment is named {name!r}",
            where="env",
            found=name,
            remedy=f"Did you mean {' or '.join(close)}?"
            if close
            else "gymnasium.pprint_registry() shows all ids; package:Name-v0 imports a package",
        )
    return spec


def make_gym(
    env: str, params: Mapping[str, Any], *, render_mode: str | None = None
) -> gym.Env[Any, Any]:
    """Make one environment; a parameter that it does not know is named."""
    spec = find_spec(env)
    _check_params(spec, params)
    try:
        return gym.make(env, render_mode=render_mode, disable_env_checker=True, **params)
    except gym.error.DependencyNotInstalled as error:
        raise ConfigError(
            "this environment needs a library that is not installed",
            where=f"env {env}",
            found=str(error),
            remedy="Install it, or choose another environment",
        ) from error
    except (gym.error.Error, ImportError, TypeError, ValueError, AssertionError) as error:
        raise ConfigError(
            "this environment cannot be made", where=f"env {env}", found=f"{error} ({dict(params)})"
        ) from error


def action_kind(env: str, params: Mapping[str, Any]) -> ActionKind:
    """Return how one acts in an environment."""
    made = make_gym(env, params)
    space = made.action_space
    made.close()
    if isinstance(space, gym.spaces.Box):
        return "continuous"
    return "discrete" if isinstance(space, gym.spaces.Discrete) else "other"


def find_variant(
    env: str, params: Mapping[str, Any], wanted: Literal["discrete", "continuous"]
) -> tuple[str, dict[str, Any]] | None:
    """Return the id and parameters of the same game with the other kind of actions, if it has one.

    Example:
        >>> find_variant("LunarLander-v3", {"gravity": -9.0}, "continuous")
        ('LunarLanderContinuous-v3', {'gravity': -9.0})
    """
    rest = {name: value for name, value in params.items() if name != CONTINUOUS}
    flag = {CONTINUOUS: wanted == CONTINUOUS}
    tries = [(env, rest), (_sibling(env, wanted), rest), (env, rest | flag)]
    for name, given in tries:
        known = gym.registry.get(name.rpartition(":")[2])
        if known is None or (given is not rest and CONTINUOUS not in _takes(known)):
            continue
        if action_kind(name, given) == wanted:
            return name, dict(given)
    return None


def _sibling(env: str, wanted: str) -> str:
    found = NAME.match(env)
    name, version = (found["name"], found["version"] or "") if found else (env, "")
    base = name.removesuffix("Continuous")
    return f"{base}Continuous{version}" if wanted == CONTINUOUS else f"{base}{version}"


def _import(package: str, env: str) -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise ConfigError(
            "the package of this environment cannot be imported",
            where=f"env {env}",
            found=str(error),
            remedy="Install it, or mend its name before the colon",
        ) from error


def _takes(spec: EnvSpec) -> tuple[str, ...]:
    """Return the parameters of an environment; ``**`` stands for any."""
    if spec.entry_point is None:
        return ("**",)
    creator = spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)
    known = inspect.signature(creator).parameters.values()
    return tuple("**" if p.kind is p.VAR_KEYWORD else p.name for p in known)


def _check_params(spec: EnvSpec, params: Mapping[str, Any]) -> None:
    if "render_mode" in params:
        raise ConfigError(
            "training does not draw pictures",
            where="env_params.render_mode",
            found=params["render_mode"],
            remedy="Leave it out; agent-gym watch shows a trained model",
        )
    try:
        taken = _takes(spec)
    except ImportError:  # make_gym says which library is missing
        return
    known = tuple(name for name in (*taken, *OF_MAKE) if name not in ("self", "render_mode"))
    for name in params:
        if name not in known and "**" not in known:
            raise unknown(f"parameter of {spec.id}", name, known)
