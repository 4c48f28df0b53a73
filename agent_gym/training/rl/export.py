"""A run as a plain script of Stable-Baselines3 that makes the same model again.

The script names every setting, seed and version, needs nothing of this package unless the
environment is our own market, and says at its end whether it has made the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from pprint import pformat
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.sb3.algorithms import ALGORITHMS, policy_kwargs
from agent_gym.agents.sb3.artifact import ZIP, Policy, load_policy, verify_model
from agent_gym.agents.sb3.card import CARD
from agent_gym.agents.sb3.config import AgentConfig, NoisyConfig, Rate, parse_rate
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.files import atomic_path
from agent_gym.core.registry import configure
from agent_gym.envs.training_env import EnvRecipe, evaluation_recipe
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.resuming import training_versions
from agent_gym.training.rl.seeding import SeedManager
from agent_gym.training.rl.setup import recipe_of

WIDTH = 100
CONTRIB = ("tqc", "qrdqn")
SAID = ("python", "torch", "stable-baselines3", "sb3-contrib", "gymnasium", "box2d", "numpy", "cpu")


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model and the run that made it."""

    folder: Path
    policy: Policy
    config: TrainerConfig
    seed: int

    @property
    def recipe(self) -> EnvRecipe:
        """Return the environment that it was trained in."""
        return recipe_of(self.config)

    @property
    def judged_in(self) -> EnvRecipe:
        """Return the environment that it is judged in, apart from that of training."""
        return evaluation_recipe(self.recipe, self.config.evaluation.env_params)


def open_trained(folder: Path) -> TrainedModel:
    """Read a model with the config and the seed of its run, which its card holds."""
    policy = load_policy(folder)
    made = policy.card.manifest
    try:
        seed, config = int(made["seeds"][0]), dict(made["config"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            "this model does not say how it was made",
            where=str(folder / CARD),
            found="no config and seed in its manifest",
            remedy="Name a model that `agent-gym train` has written",
        ) from error
    where = f"{folder / CARD}: config"
    return TrainedModel(folder, policy, configure(TrainerConfig, config, where=where), seed)


def weights_hash(weights: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of all weights in the order of their names; scripts reckon the same."""
    digest = sha256()
    for name in sorted(weights):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(weights[name]).tobytes())
    return digest.hexdigest()


def export_zip(folder: Path, target: Path) -> None:
    """Copy the model in the library's own format; what is copied is what was written."""
    card = verify_model(folder)
    if ZIP not in card.hashes:
        raise DataError(
            "this model has no zip of the library",
            where=str(folder),
            remedy="Only a model that `agent-gym train` has written has one",
        )
    with atomic_path(target) as path:
        _copied(folder / ZIP, path)


def _copied(source: Path, target: Path) -> None:
    try:
        target.write_bytes(source.read_bytes())
    except OSError as error:
        raise StoreError("cannot write here", where=str(target), found=error.strerror) from error


def script_of(
    config: TrainerConfig, seed: int, *, step: int | None = None, expected: str | None = None
) -> str:
    """Return the script that trains as a run did.

    Args:
        config: The config of the run.
        seed: Its seed.
        step: Keep the model as it was after so many steps; None keeps the last.
        expected: The hash of its weights, which the script compares with its own.
    """
    if config.learner != "sb3":
        raise ConfigError(
            "a script of Stable-Baselines3 cannot make this model",
            where="learner",
            found=config.learner,
            expected="sb3",
            remedy="Export it as onnx",
        )
    recipe, seeds = recipe_of(config), SeedManager(seed)
    kept = config.steps if step is None else step
    parts = [
        _head(config, recipe, seed, expected),
        _imports(config, recipe),
        f"torch.set_num_threads({config.threads})",
        "",
        f"TOTAL_STEPS = {config.steps}  # what schedules are reckoned from",
        f"KEPT_STEPS = {kept}  # the model as it was then is kept",
        f"MODEL_SEED = {seeds.model}",
        f"ENVIRONMENT_SEED = {seeds.environment.as_int()}",
        f"EXPECTED_SHA256 = {expected!r}",
        "",
        _environment(config, recipe),
        _model(config, recipe),
        "env.seed(ENVIRONMENT_SEED)  # the environments have a seed of their own",
        "",
        _KEEPING,
    ]
    return "\n".join(parts)


def _head(config: TrainerConfig, recipe: EnvRecipe, seed: int, expected: str | None) -> str:
    versions = training_versions()
    said = ", ".join(f"{name} {versions[name]}" for name in SAID)
    lines = [
        f'"""Train {config.algo} on {recipe.env} with seed {seed}, as `agent-gym train` did.',
        "",
        fill(f"Made with {said}.", WIDTH),
    ]
    if recipe.backend != "gymnasium":
        lines += [
            f"The run was stepped by {recipe.backend}; this script uses gymnasium, whose episodes",
            "have other luck: the settings are the same, the weights will not be.",
        ]
    elif expected is not None:
        lines += [
            "With these versions, on a processor of the same kind, it makes the same weights to",
            "the last bit, and says so at its end.",
        ]
    if recipe.is_market:
        lines.append("The market is the one of agent_gym, which must be installed.")
    return "\n".join([*lines, '"""'])


def _imports(config: TrainerConfig, recipe: EnvRecipe) -> str:
    algo = ALGORITHMS[config.algo].model.__name__
    package = "sb3_contrib" if config.algo in CONTRIB else "stable_baselines3"
    agent = config.agent
    lines = ["import hashlib", ""]
    if not recipe.is_market:
        lines.append("import gymnasium as gym")
    if isinstance(agent, NoisyConfig) and agent.action_noise:
        lines.append("import numpy as np")
    lines += ["import torch", f"from {package} import {algo}"]
    lines.append("from stable_baselines3.common.callbacks import BaseCallback")
    if isinstance(agent, NoisyConfig) and agent.action_noise:
        lines.append("from stable_baselines3.common.noise import NormalActionNoise")
    if any(isinstance(value, str) for value in _rates(config).values()):
        lines.append("from stable_baselines3.common.utils import LinearSchedule")
    vec = [] if recipe.is_market else ["DummyVecEnv"]
    vec += ["VecNormalize"] if _normalized(config) else []
    if vec:
        lines.append(f"from stable_baselines3.common.vec_env import {', '.join(vec)}")
    if recipe.is_market:
        lines += ["", "from agent_gym.envs.sb3_view import SB3VecEnv"]
        lines.append("from agent_gym.envs.vector_env import MarketVectorEnv")
    return "\n".join([*lines, ""])


def _environment(config: TrainerConfig, recipe: EnvRecipe) -> str:
    params = pformat(recipe.params, width=WIDTH - 14, sort_dicts=False)
    lines = [f"ENV_PARAMS = {params}"]
    if recipe.is_market:
        lines.append(f"env = SB3VecEnv(MarketVectorEnv({config.n_envs}, **ENV_PARAMS))")
    else:
        make = f"gym.make({recipe.env!r}, **ENV_PARAMS)"
        lines.append(f"env = DummyVecEnv([lambda: {make}] * {config.n_envs})")
    if _normalized(config):
        clip = config.normalize.clip
        lines += [
            "env = VecNormalize(",
            "    env,",
            f"    norm_obs={config.normalize.observations},",
            f"    norm_reward={config.normalize.rewards},",
            f"    clip_obs={clip},",
            f"    clip_reward={clip},",
            f"    gamma={config.agent.gamma},",
            ")",
        ]
    return "\n".join(lines)


def _model(config: TrainerConfig, recipe: EnvRecipe) -> str:
    agent, rates = config.agent, _rates(config)
    said = {name: repr(value) for name, value in agent.model_kwargs().items()}
    said = {"learning_rate": ""} | said
    said |= {name: _rate(value) for name, value in rates.items()}
    if isinstance(agent, NoisyConfig):
        noise = agent.action_noise
        shape = "env.action_space.shape"
        said["action_noise"] = (
            f"NormalActionNoise(np.zeros({shape}), np.full({shape}, {noise}))" if noise else "None"
        )
    said["policy_kwargs"] = _policy(agent)
    lines = [f"    {name}={value}," for name, value in said.items()]
    algo = ALGORITHMS[config.algo].model.__name__
    return "\n".join(
        [
            f"model = {algo}(",
            '    "MlpPolicy",',
            "    env,",
            *lines,
            '    device="cpu",',
            "    seed=MODEL_SEED,",
            ")",
        ]
    )


def _policy(agent: AgentConfig) -> str:
    kwargs = policy_kwargs(agent)
    told = {name: repr(value) for name, value in kwargs.items()}
    told["activation_fn"] = f"torch.nn.{kwargs['activation_fn'].__name__}"
    return "{" + ", ".join(f'"{name}": {value}' for name, value in told.items()) + "}"


def _rates(config: TrainerConfig) -> dict[str, Rate | None]:
    names = ("learning_rate", "clip_range", "clip_range_vf")
    return {name: getattr(config.agent, name) for name in names if hasattr(config.agent, name)}


def _rate(value: Rate | None) -> str:
    if not isinstance(value, str):
        return repr(value)
    start, end = parse_rate(value)
    return f"LinearSchedule({start}, {end}, 1.0)"


def _normalized(config: TrainerConfig) -> bool:
    return config.normalize.observations or config.normalize.rewards


_KEEPING = '''
def keep():
    """Save the model and compare its weights with those of the run."""
    model.save("model.zip")
    normalizer = model.get_vec_normalize_env()
    if normalizer is not None:
        normalizer.save("vec_normalize.pkl")
    digest = hashlib.sha256()
    for name, value in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.numpy().tobytes())
    print(f"weights after {model.num_timesteps} steps: sha256 {digest.hexdigest()}")
    if EXPECTED_SHA256 is not None:
        print("the same" if digest.hexdigest() == EXPECTED_SHA256 else "NOT the same", "as the run")


class KeepAndStop(BaseCallback):
    """Keeps the model between two iterations, as training did, and ends there."""

    kept = False

    def _on_rollout_start(self):
        if self.model.num_timesteps >= KEPT_STEPS and not self.kept:
            self.kept = True
            keep()

    def _on_step(self):
        return not self.kept


keeping = KeepAndStop()
model.learn(total_timesteps=TOTAL_STEPS, callback=keeping)
if not keeping.kept:
    keep()
'''
