"""What a config names, made: the environments, the normaliser around them, the untrained model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from agent_gym.agents.sb3.algorithms import ALGORITHMS, build_model
from agent_gym.agents.sb3.jax_twin import build_jax_model, check_jax
from agent_gym.core.errors import ConfigError
from agent_gym.envs.training_env import EnvRecipe, evaluation_recipe, make_vec_env, resolve_recipe
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.seeding import SeedManager


class Plan(NamedTuple):
    """One run before it begins: what, from which seed, and where its files go."""

    config: TrainerConfig
    seed: int
    folder: Path
    recipe: EnvRecipe
    evaluation_recipe: EnvRecipe


class Setup(NamedTuple):
    """A model and the environments that it learns in."""

    model: BaseAlgorithm
    env: VecEnv


def recipe_of(config: TrainerConfig) -> EnvRecipe:
    """Return the environment that a config means; a pair that does not fit is refused."""
    return resolve_recipe(
        config.env,
        config.env_params,
        config.continuous,
        config.backend,
        actions=ALGORITHMS[config.algo].actions,
        algo=config.algo,
    )


def make_plan(config: TrainerConfig, seed: int, folder: Path) -> Plan:
    """Return the plan of a run; what does not fit together is refused before anything is made."""
    if seed < 0:
        raise ConfigError("a seed is a whole number of at least 0", found=seed)
    check_installed(config)
    recipe = recipe_of(config)
    judged = evaluation_recipe(recipe, config.evaluation.env_params)
    return Plan(config, seed, folder, recipe, judged)


def check_installed(config: TrainerConfig) -> None:
    """Refuse what a config names and is not installed, before anything is written."""
    asked = config.trackers.wandb
    if asked != "off" and find_spec("wandb") is None:
        raise ConfigError(
            "wandb is not installed",
            where="trackers.wandb",
            found=asked,
            remedy="pip install wandb, or write trackers: {wandb: off}",
        )
    if config.learner == "sbx":
        check_jax(config.agent)


def make_setup(config: TrainerConfig, seed: int) -> Setup:
    """Make everything anew from a config and a seed.

    The library seeds the environments with the seed of the model when it is built; they are given
    one of their own afterwards, lane k the k-th after it. It never seeds the space of observations;
    nobody draws from that one, but a state with chance in it could not be compared.
    """
    seeds = SeedManager(seed)
    env = make_vec_env(recipe_of(config), config.n_envs, seeds.environment)
    if config.normalize.observations or config.normalize.rewards:
        env = VecNormalize(
            env,
            norm_obs=config.normalize.observations,
            norm_reward=config.normalize.rewards,
            clip_obs=config.normalize.clip,
            clip_reward=config.normalize.clip,
            gamma=config.agent.gamma,
        )
    build = build_jax_model if config.learner == "sbx" else build_model
    model = build(config.agent, env, seeds.model)
    env.seed(seeds.environment.as_int())
    env.observation_space.seed(seeds.environment.child("space").as_int())
    return Setup(model, env)
