"""Which environment a training run means, and how it is made: one way for games and for markets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.config import ContinuousTargets, DiscreteTargets
from agent_gym.envs.gym_catalog import action_kind, find_variant, make_gym
from agent_gym.envs.gym_vec import GymVecEnv
from agent_gym.envs.market_env import MarketEnv, resolve_config
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.envs.span import require_other_span
from agent_gym.envs.vector_env import MarketVectorEnv

MARKET = "market"
EVALUATION_SHIFT = 1_000_000
"""How far the seed of the market that is evaluated on lies from that which is trained on."""

Actions: TypeAlias = Literal["discrete", "continuous", "any"]
Backend: TypeAlias = Literal["gymnasium", "envpool"]


@dataclass(frozen=True)
class EnvRecipe:
    """What is made and how, with nothing left to choose; ``params`` are JSON."""

    env: str
    params: dict[str, Any] = field(default_factory=dict)
    continuous: bool = False
    backend: Backend = "gymnasium"

    @property
    def is_market(self) -> bool:
        """Return whether it is our own market."""
        return self.env == MARKET


def resolve_recipe(
    env: str,
    params: Mapping[str, Any],
    continuous: bool | Literal["auto"] | None,
    backend: Backend,
    *,
    actions: Actions,
    algo: str,
) -> EnvRecipe:
    """Return the environment that is meant, if the algorithm can act in it.

    Args:
        env: ``market`` or an id of Gymnasium.
        params: Fields of MarketConfig, or what the environment takes.
        continuous: Whether actions are numbers; ``"auto"`` takes what the algorithm needs, None
            what the id and the parameters say.
        backend: Who steps it.
        actions: What the algorithm can do.
        algo: Its name, for the error.
    """
    resolve = _resolve_market if env == MARKET else _resolve_gym
    recipe = resolve(env, dict(params), continuous, actions)
    if actions != "any" and recipe.continuous != (actions == "continuous"):
        raise _wrong_pair(recipe, actions, algo)
    if backend == "envpool":
        _check_envpool(recipe)
    return replace(recipe, backend=backend)


def make_vec_env(recipe: EnvRecipe, n_envs: int, seeds: Seeds) -> VecEnv:
    """Make the environments side by side; all but those of envpool are also an ExactEnv."""
    if recipe.is_market:
        market = SB3VecEnv(MarketVectorEnv(n_envs, **recipe.params))
        market.seed(seeds.as_int())
        return market
    if recipe.backend == "envpool":
        made: VecEnv = _envpool().EnvPoolVecEnv(recipe.env, recipe.params, n_envs, seeds)
        return made
    return GymVecEnv(lambda: make_gym(recipe.env, recipe.params), n_envs, seeds)


def make_single_env(recipe: EnvRecipe, *, render_mode: str | None = None) -> gym.Env[Any, Any]:
    """Make one plain environment, for pictures, export and watching."""
    if recipe.is_market:
        return MarketEnv(render_mode=render_mode, **recipe.params)
    return make_gym(recipe.env, recipe.params, render_mode=render_mode)


def evaluation_recipe(recipe: EnvRecipe, overrides: Mapping[str, Any]) -> EnvRecipe:
    """Return an environment apart from that of training.

    A game is apart by its seeds. A market that is drawn gets a seed of its own, unless one is
    given; a market that is recorded needs another span of time.
    """
    params = _merged(recipe.params, overrides)
    if not recipe.is_market:
        made = replace(recipe, params=params)
        _require_same_actions(made, action_kind(made.env, made.params) == "continuous")
        return made
    trained, tested = resolve_config(None, recipe.params), resolve_config(None, params)
    _require_same_actions(recipe, isinstance(tested.actions, ContinuousTargets))
    if not require_other_span(trained.market, tested.market) and "market_seed" not in overrides:
        params["market_seed"] = trained.market_seed + EVALUATION_SHIFT
    return replace(recipe, params=params)


def describe_env(recipe: EnvRecipe) -> dict[str, Any]:
    """Return as JSON what a model must know of the environment it was trained in."""
    env = make_single_env(recipe)
    width = int(np.prod(env.observation_space.shape or (1,)))
    described: dict[str, Any] = {
        "id": recipe.env,
        "params": recipe.params,
        "continuous": recipe.continuous,
        "backend": recipe.backend,
        "observation_space": describe_space(env.observation_space),
        "action_space": describe_space(env.action_space),
        "feature_names": [f"obs_{i}" for i in range(width)],
        "levels": None,
        "period_ns": None,
    }
    if isinstance(env, MarketEnv):
        levels = env.config.actions.spec().levels
        described["feature_names"] = list(env.stage.slim_names)
        described["levels"] = None if levels is None else list(levels)
        described["period_ns"] = int(env.stage.period_ns)
    env.close()
    return described


def describe_space(space: gym.Space[Any]) -> dict[str, Any]:
    """Return a space as JSON; an endless bound is null."""
    kind = type(space).__name__.lower()
    base: dict[str, Any] = {
        "kind": kind,
        "shape": list(space.shape or ()),
        "dtype": str(space.dtype),
    }
    if isinstance(space, gym.spaces.Discrete):
        return base | {"n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.Box):
        return base | {"low": _bounds(space.low), "high": _bounds(space.high)}
    return base


def _bounds(values: Any) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in np.ravel(values)]


def _resolve_gym(
    env: str, params: dict[str, Any], continuous: bool | str | None, actions: Actions
) -> EnvRecipe:
    kind = action_kind(env, params)
    wanted: Any = kind
    if continuous == "auto":
        wanted = kind if actions == "any" else actions
    elif continuous is not None:
        wanted = "continuous" if continuous else "discrete"
    if wanted == kind:
        return EnvRecipe(env, params, kind == "continuous")
    found = find_variant(env, params, wanted)
    if found is None:
        raise ConfigError(
            f"this environment has no variant with {wanted} actions",
            where=f"env {env}",
            found=kind,
            remedy=_algorithms_for(kind),
        )
    return EnvRecipe(found[0], found[1], wanted == "continuous")


def _resolve_market(
    env: str, params: dict[str, Any], continuous: bool | str | None, actions: Actions
) -> EnvRecipe:
    """Resolve a market; who does not say how it is acted in leaves it to the algorithm."""
    config = resolve_config(None, params)
    own = isinstance(config.actions, ContinuousTargets)
    open_choice = continuous == "auto" or (continuous is None and "actions" not in params)
    wanted = own if continuous in ("auto", None) else bool(continuous)
    if open_choice and actions != "any":
        wanted = actions == "continuous"
    chosen = config.actions if wanted == own else _other_targets(config.actions)
    return EnvRecipe(env, params | {"actions": chosen.model_dump(mode="json")}, wanted)


def _other_targets(
    targets: DiscreteTargets | ContinuousTargets,
) -> DiscreteTargets | ContinuousTargets:
    if isinstance(targets, DiscreteTargets):
        return ContinuousTargets(low=min(targets.levels), high=max(targets.levels))
    middle = (targets.low + targets.high) / 2
    return DiscreteTargets(levels=(targets.low, middle, targets.high))


def _wrong_pair(recipe: EnvRecipe, actions: Actions, algo: str) -> ConfigError:
    found = "continuous" if recipe.continuous else "discrete"
    if recipe.is_market:
        fix = f"Write actions: {{kind: {actions}}} in env_params, or continuous: auto"
    else:
        other = find_variant(
            recipe.env, recipe.params, "continuous" if actions == "continuous" else "discrete"
        )
        fix = (
            _algorithms_for(found)
            if other is None
            else f"Use {other[0]}, or write continuous: auto"
        )
    return ConfigError(
        f"{algo} can only act in environments with {actions} actions",
        where=f"env {recipe.env}",
        found=f"{found} actions",
        remedy=fix,
    )


def _algorithms_for(kind: str) -> str:
    return {
        "continuous": "Use ppo, a2c, sac, td3 or tqc here",
        "discrete": "Use ppo, a2c, dqn or qrdqn here",
    }.get(kind, "Use ppo or a2c here")


def _require_same_actions(recipe: EnvRecipe, continuous: bool) -> None:
    if continuous != recipe.continuous:
        raise ConfigError(
            "a model cannot be evaluated with another kind of actions than it was trained with",
            where=f"evaluation.env_params of {recipe.env}",
            found="continuous" if continuous else "discrete",
            expected="continuous" if recipe.continuous else "discrete",
        )


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with single values replaced, also in mappings inside.

    A mapping that names another thing (``use``, ``kind``) takes the place of the old one whole.
    """
    merged = dict(base)
    for name, value in over.items():
        inner = merged.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            same = all(value.get(tag, inner.get(tag)) == inner.get(tag) for tag in ("use", "kind"))
            merged[name] = _merged(inner, value) if same else dict(value)
        else:
            merged[name] = value
    return merged


def _check_envpool(recipe: EnvRecipe) -> None:
    if recipe.is_market:
        raise ConfigError(
            "the market is stepped by its own compiled lanes, not by envpool",
            where="backend",
            found="envpool",
            expected="gymnasium",
        )
    _envpool().check_recipe(recipe.env, recipe.params)


def _envpool() -> Any:
    try:
        return import_module("agent_gym.envs.envpool_vec")
    except ImportError as error:
        raise ConfigError(
            "backend envpool is not installed",
            where="backend",
            found=str(error),
            remedy="pip install agent-gym[fast], or use backend: gymnasium",
        ) from error
