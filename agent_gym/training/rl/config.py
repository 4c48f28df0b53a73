"""What a training run is told, as written in YAML; the same words serve one run and many."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, get_args

import yaml
from pydantic import Field, SerializeAsAny, field_validator, model_validator
from typing_extensions import override

from agent_gym.agents.sb3.config import CONFIGS, AgentConfig, OnPolicyConfig
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure, unknown
from agent_gym.evaluation.plain_file import BoundedLoader, bounded_text, check_expansion

MARKET = "market"
"""The environment that is our own market; every other name is an id of Gymnasium."""
MOST_ENVS, MOST_THREADS = 4096, 64
BUDGET_S = 1.0
"""Seconds that the speed of one layout is measured for, unless somebody says."""
_INSIDE = re.compile(r"parameter '(?P<path>\w+(\.\w+)+)': extra inputs")


class Normalize(Config):
    """Running means and deviations; they are saved with every model and used when it acts."""

    observations: bool = False
    rewards: bool = False
    clip: float = Field(
        default=10.0, gt=0.0, description="both are cut off at this many deviations"
    )


class Evaluation(Config):
    """Greedy episodes in an environment of their own; the best model so far is kept by them."""

    every: int = Field(default=25_000, ge=1, description="steps of training between two looks")
    episodes: int = Field(default=20, ge=1)
    final_episodes: int = Field(default=100, ge=1, description="fresh ones, after the last step")
    env_params: dict[str, Any] = Field(
        default_factory=dict, description="what differs from the training environment"
    )


class Checkpoints(Config):
    """From which a run goes on to the bit, as if it had not been stopped."""

    every: int = Field(default=50_000, ge=1, description="steps of training between two")
    keep: int = Field(default=2, ge=1, description="how many of the last are kept")


class EarlyStopping(Config):
    """When a run may end before its last step."""

    target: float | None = Field(default=None, description="a mean return that is good enough")
    patience: int | None = Field(default=None, ge=1, description="looks without a better mean")
    min_delta: float = Field(default=0.0, ge=0.0, description="by how much a mean must be better")

    @model_validator(mode="after")
    def _stops(self) -> Self:
        if self.target is None and self.patience is None:
            raise ValueError("name a target or a patience: without either nothing stops a run")
        return self


class Trackers(Config):
    """Who else is told how it goes."""

    tensorboard: bool = True
    wandb: Literal["off", "offline", "online"] = "off"


class TrainerConfig(Config):
    """One training run, seeds apart.

    ``env`` is ``market`` or an id of Gymnasium; ``env_params`` are the fields of MarketConfig or
    what ``gymnasium.make`` takes. ``continuous: auto`` picks the variant of an environment that the
    algorithm can act in.

    Example:
        >>> config = TrainerConfig(algo="ppo", env="LunarLander-v3", agent={"gamma": 0.999})
        >>> config.agent.gamma, config.steps
        (0.999, 250000)
    """

    algo: str = "ppo"
    env: str = "LunarLander-v3"
    env_params: dict[str, Any] = Field(default_factory=dict)
    continuous: bool | Literal["auto"] | None = Field(
        default=None, description="null: as the environment's id says"
    )
    n_envs: int = Field(default=16, ge=1, le=MOST_ENVS)
    steps: int = Field(default=250_000, ge=1, description="of all environments together")
    agent: SerializeAsAny[AgentConfig] = Field(
        default_factory=dict,
        validate_default=True,
        description="settings of the algorithm",
    )
    normalize: Normalize = Normalize()
    evaluation: Evaluation = Evaluation()
    checkpoints: Checkpoints = Checkpoints()
    early_stopping: EarlyStopping | None = None
    trackers: Trackers = Trackers()
    backend: Literal["gymnasium", "envpool"] = "gymnasium"
    learner: Literal["sb3", "sbx"] = "sb3"
    threads: int = Field(default=1, ge=1, le=MOST_THREADS, description="threads of torch")

    @field_validator("algo")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in CONFIGS:
            raise unknown("algorithm", value, tuple(CONFIGS))
        return value

    @field_validator("agent", mode="before")
    @classmethod
    def _of_the_algorithm(cls, value: Any, info: Any) -> Any:
        kind = CONFIGS.get(info.data.get("algo", ""))
        if kind is None or isinstance(value, kind):
            return value
        given = value.model_dump() if isinstance(value, AgentConfig) else value
        if not isinstance(given, dict):
            raise ValueError("the settings of an algorithm are a mapping")
        return configure(kind, given, where=f"agent ({kind.algo})")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        agent = self.agent
        if isinstance(agent, OnPolicyConfig):
            rollout, batch = agent.n_steps * self.n_envs, getattr(agent, "batch_size", None)
            if batch is not None and rollout % batch:
                raise ValueError(
                    f"an iteration has {rollout} steps (n_steps x n_envs), which batches of "
                    f"{batch} do not divide; the last one would be a fragment"
                )
        return self

    @property
    def is_market(self) -> bool:
        """Return whether it trains on our own market."""
        return self.env == MARKET


def read_trainer_config(path: Path) -> TrainerConfig:
    """Read a training file (YAML or JSON); the error names the file and the nearest right key."""
    return as_trainer_config(read_mapping(path), where=str(path))


def as_trainer_config(said: Mapping[str, Any], *, where: str) -> TrainerConfig:
    """Return the training that a mapping means; a wrong key inside a part is set right there."""
    try:
        return configure(TrainerConfig, said, where=where)
    except ConfigError as error:
        found = _INSIDE.match(error.what)
        if found is not None:
            *parts, last = found["path"].split(".")
            known = _keys_of(parts)
            if known:
                error.remedy = unknown("setting", last, known).remedy
        raise


def _keys_of(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of the part of a training that a path leads to."""
    model: Any = TrainerConfig
    for part in parts:
        kind = model.model_fields[part].annotation if part in model.model_fields else None
        kinds = get_args(kind) or (kind,)
        model = next((each for each in kinds if hasattr(each, "model_fields")), None)
        if model is None:
            return ()
    return tuple(model.model_fields)


class TwiceError(yaml.YAMLError):
    """A key that a mapping has twice; YAML would take the last without a word."""

    def __init__(self, key: str, first_line: int, line: int) -> None:
        super().__init__(key)
        self.key, self.first_line, self.line = key, first_line, line


class _Loader(BoundedLoader):
    """Reads plain data, and refuses a key that is there twice and what would never end."""

    @override
    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        check_expansion(node)
        return node

    @override
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            name, line = (key.tag, str(key.value)), key.start_mark.line + 1
            if name in seen:
                raise TwiceError(name[1], seen[name], line)
            seen[name] = line
        return node


def read_mapping(path: Path) -> dict[str, Any]:
    """Read the mapping that a YAML or JSON file holds."""
    try:
        value = _Loader(bounded_text(path, "cannot read this file")).get_single_data()
    except TwiceError as error:
        raise ConfigError(
            "a key is written twice",
            where=f"{path}, line {error.line}",
            found=error.key,
            remedy=f"Leave one of them out; the first is in line {error.first_line}",
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError("this is no YAML", where=str(path), found=str(error)) from error
    if not isinstance(value, dict):
        raise ConfigError("a config is a mapping", where=str(path), found=type(value).__name__)
    return value
