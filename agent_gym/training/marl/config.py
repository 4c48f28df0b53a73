"""What the training of a team is told; every default is written here alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agent_gym.agents.marl import NetworkConfig
from agent_gym.core.registry import Config, configure, unknown
from agent_gym.envs.battle import BattleConfig
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.rl.config import MOST_ENVS, read_mapping

MOST_STEPS = 10_000
"""Of each environment in an iteration: what is played is kept until it was learned from."""
SHIPPED = Path(__file__).resolve().parents[2] / "configs" / "marl"


class ReuseConfig(Config):
    """Learning once more from the last iterations, corrected for who played then."""

    iterations: int = Field(default=3, ge=0, description="how many past iterations are kept")
    weight: float = Field(default=0.5, gt=0, description="what a past row counts, a fresh one is 1")
    smallest_ratio: float = Field(
        default=0.2, gt=0, lt=1, description="rows are dropped below this chance now / chance then"
    )
    largest_ratio: float = Field(default=5.0, gt=1, description="and above this one")
    imitation: float = Field(
        default=0.0,
        ge=0,
        description="weight of rows that are too unlikely now but went better than expected; 0: "
        "they are dropped like the others",
    )
    corrected: bool = Field(
        default=True, description="false: taken as if played by the present team (a control)"
    )


class LearnConfig(Config):
    """How actor and critic are changed by what was played."""

    critic: Literal["state", "own"] = Field(
        default="state",
        description="state: sees the whole battle, the agent's view and which agent it is (MAPPO); "
        "own: without the battle (IPPO)",
    )
    reuse: ReuseConfig | None = Field(default=None, description="null: fresh rows alone")
    epochs: int = Field(default=10, ge=1, description="times all rows are gone through")
    learning_rate: float = Field(default=1e-3, gt=0, description="of both optimisers")
    last_rate: float = Field(
        default=0.1, gt=0, le=1, description="share of it that is left at the last step"
    )
    gamma: float = Field(default=0.99, gt=0, le=1, description="worth of the next step's reward")
    trace: float = Field(default=0.95, ge=0, le=1, description="lambda of the advantages")
    clip: float = Field(default=0.2, gt=0, lt=1, description="reach of ratios and of values")
    entropy: float = Field(default=0.01, ge=0, description="weight of the entropy")
    huber: float = Field(default=10.0, gt=0, description="where the critic's loss turns straight")
    value_memory: float = Field(
        default=0.99, ge=0, lt=1, description="how slowly the scale of values moves, an iteration"
    )
    max_grad_norm: float = Field(default=10.0, gt=0, description="where each gradient is cut")


class EvaluationConfig(Config):
    """Greedy episodes: on starts that stay the same, and on fresh ones at the end."""

    every: int = Field(default=8_000, ge=1, description="environment steps between two looks")
    episodes: int = Field(default=256, ge=1, description="starts of a look, always the same")
    mean_over: int = Field(
        default=12_000,
        ge=0,
        description="a look sees the mean of the team over about so many last steps too; 0: not",
    )
    final_episodes: int = Field(
        default=1_000, ge=1, description="fresh starts, after the last step"
    )


class StoppingConfig(Config):
    """When a training may end before its last step."""

    win_rate: float = Field(default=0.95, gt=0, le=1, description="share of a look's episodes")
    looks: int = Field(default=2, ge=1, description="how many in a row must reach it")


class TeamTrainConfig(Config):
    """One training of one team.

    Example:
        >>> TeamTrainConfig(learn=LearnConfig(reuse=ReuseConfig())).algorithm
        'mappo-reuse'
    """

    world: BattleConfig = Field(default=BattleConfig(), description="the battle that is fought")
    seed: int = Field(default=0, ge=0, description="where all randomness comes from")
    env_steps: int = Field(default=250_000, ge=1, description="steps of all environments together")
    n_envs: int = Field(default=16, ge=1, le=MOST_ENVS, description="environments side by side")
    n_steps: int = Field(
        default=100, ge=1, le=MOST_STEPS, description="steps of each in an iteration"
    )
    network: NetworkConfig = Field(default=NetworkConfig(), description="shape of both networks")
    chunk: int = Field(
        default=10, ge=1, description="steps that a recurrent network is trained through at a time"
    )
    learn: LearnConfig = Field(default=LearnConfig(), description="how it learns")
    amal: AmalConfig | None = Field(
        default=None, description="model of the world, bonus and auxiliary teams; null: none"
    )
    evaluation: EvaluationConfig = Field(default=EvaluationConfig(), description="how it is judged")
    stopping: StoppingConfig | None = Field(default=None, description="null: play all steps")
    checkpoint_every: int = Field(
        default=10_000, ge=1, description="environment steps between checkpoints; changes no number"
    )

    @model_validator(mode="after")
    def _chunks(self) -> Self:
        if self.network.recurrent and self.n_steps % self.chunk:
            raise ValueError("n_steps must be a multiple of chunk")
        if self.amal is not None and self.learn.reuse is None:
            raise ValueError("amal needs learn.reuse, which says which rows are too far off")
        return self

    @property
    def algorithm(self) -> str:
        """Return the usual name of what is done."""
        if self.amal is not None:
            return "amal"
        name = "mappo" if self.learn.critic == "state" else "ippo"
        return f"{name}-reuse" if self.learn.reuse is not None else name

    @property
    def chunk_length(self) -> int:
        """Return how many steps are trained through at a time; one without a memory."""
        return self.chunk if self.network.recurrent else 1


def shipped_config(name: str, changes: Mapping[str, Any] | None = None) -> TeamTrainConfig:
    """Return a config that comes with the package, with some of its fields set otherwise.

    Example:
        >>> shipped_config("official", {"seed": 3}).n_steps
        400
    """
    path = SHIPPED / f"{name}.yaml"
    known = tuple(sorted(each.stem for each in SHIPPED.glob("*.yaml")))
    if name not in known:
        raise unknown("config of a team's training", name, known)
    return configure(TeamTrainConfig, read_mapping(path) | dict(changes or {}), where=str(path))
