"""What AMAL is told beside what every training of a team is told."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agent_gym.agents.marl.network import DEEPEST, WIDEST
from agent_gym.core.registry import Config

InformationKind: TypeAlias = Literal["mutual_information", "variance", "error", "distillation"]
Space: TypeAlias = Literal["bias", "subspace", "last_layer", "all"]


class WorldModelConfig(Config):
    """The ensemble that learns how a battle goes on, from what the primary team met."""

    heads: int = Field(default=5, ge=2, description="networks that each learn by themselves")
    hidden: int = Field(default=128, ge=1, le=WIDEST, description="width of their layers")
    layers: int = Field(default=2, ge=1, le=DEEPEST, description="how many layers")
    updates: int = Field(default=30, ge=0, description="steps of its optimiser in an iteration")
    batch: int = Field(default=256, ge=1, description="rows that each head draws for a step")
    learning_rate: float = Field(default=1e-3, gt=0, description="of its optimiser")
    beta: float = Field(
        default=0.5, ge=0, le=1, description="power of the variance by which rows count (beta-NLL)"
    )
    reward_weight: float = Field(default=1.0, ge=0, description="what errors of rewards count")
    end_weight: float = Field(default=0.1, ge=0, description="what errors of endings count")
    window: int = Field(default=20_000, ge=1, description="steps that are kept to learn from")
    newest_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="of the rows of a step that are drawn from the newest window alone",
    )
    held_out_every: int = Field(
        default=10, ge=2, description="of so many episodes one is kept to be judged by alone"
    )
    symmetric: bool = Field(
        default=False,
        description="UNSAFE, for an ablation: auxiliary steps are passed off as primary ones",
    )


class AmalConfig(Config):
    """A model of the world, a bonus for information, and auxiliary teams."""

    lambda_info: float = Field(
        default=0.3,
        ge=0,
        description="spread of the bonus's advantages as a share of the reward's, at most; 0: none",
    )
    information: InformationKind = Field(
        default="mutual_information",
        description="what is paid: mutual information of the next state and the head that is "
        "right; variance of the heads' means; error of a single head (a control); novelty of "
        "the state by random network distillation (a control)",
    )
    variance_floor: float = Field(
        default=0.3, gt=0, description="spread below which heads agree, in units of a change's own"
    )
    largest_bonus: float = Field(default=5.0, gt=0, description="in units of the bonus's spread")
    episodic: bool = Field(default=False, description="whether bonuses of the next episode count")
    win_memory: float = Field(
        default=0.9, ge=0, lt=1, description="how slowly the win rate moves that fades the bonus"
    )
    num_auxiliary_agents: int = Field(default=8, ge=2, description="auxiliary teams")
    evolution_frequency: int = Field(
        default=3, ge=1, description="iterations from one generation to the next, at least"
    )
    auxiliary_share: float = Field(
        default=0.3,
        ge=0,
        lt=1,
        description="of all environment steps while the primary team is stuck; 0: no auxiliaries",
    )
    late_share: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="the same while the primary team gets on by itself, and once it wins often",
    )
    least_headway: float = Field(
        default=0.1,
        ge=0,
        description="rise of its returns that counts as getting on, as a share of their size",
    )
    late_win_rate: float = Field(default=0.3, gt=0, le=1, description="what often means")
    auxiliary_weight: float = Field(
        default=0.3, ge=0, description="what their rows count, a fresh one is 1; 0: not learned"
    )
    min_ess: float = Field(
        default=0.3, ge=0, le=1, description="effective share below which theirs are not learned"
    )
    model: WorldModelConfig = Field(
        default=WorldModelConfig(), description="the model of the world"
    )
    cem_space: Space = Field(
        default="bias",
        description="what is shifted: the last layer's bias, the last layer in random directions "
        "or in all of them, or every weight",
    )
    cem_directions: int = Field(default=16, ge=1, description="of a subspace")
    cem_elites: float = Field(
        default=0.3, gt=0, le=1, description="share whose shifts are averaged"
    )
    cem_episodes: float = Field(
        default=2.0, ge=0, description="that a team has ended, on average, before all are judged"
    )
    cem_selection: bool = Field(
        default=True, description="false: drawn anew every time (a control)"
    )
    cem_recentre: float = Field(
        default=0.9, ge=0, le=1, description="what is left of the mean shift in the next generation"
    )
    cem_kl: float = Field(
        default=0.45, gt=0, description="median divergence from the primary team, in nats"
    )
    cem_max_kl: float = Field(default=1.5, gt=0, description="who is further away is pulled back")
    cem_probes: int = Field(
        default=64, ge=2, description="primary moments on which that is measured"
    )
    cem_return_weight: float = Field(default=0.8, ge=0, description="of the rank by returns")
    cem_information_weight: float = Field(
        default=0.1, ge=0, description="of the rank by information"
    )
    cem_diversity_weight: float = Field(
        default=0.1, ge=0, description="of the rank by being different"
    )

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.late_share > self.auxiliary_share:
            raise ValueError("late_share must not be above auxiliary_share")
        return self
