"""The policy of a team as a Team, so that the loop can play and record it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.marl.policy import KIND, TeamPolicy
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Role, Step


class PolicyTeamConfig(Config):
    """Which policy plays the team, and how."""

    model: Path = Field(description="folder of a policy")
    deterministic: bool = Field(
        default=True, description="always the likeliest action; otherwise drawn by chance"
    )


class PolicyTeam:
    """Implements Team, Inspectable and Saveable on the policy of a team.

    Every role draws from its own seeds and decides by what it sees alone. ``signals`` holds
    ``entropy`` in nats and, when it draws, ``log_prob`` of the action: nothing can be learned from
    what was never in doubt.
    """

    def __init__(self, policy: TeamPolicy, *, deterministic: bool = True) -> None:
        self.policy = policy
        self._deterministic = deterministic
        self._starts: Mapping[Role, EpisodeStart] = {}

    @property
    def names(self) -> Mapping[Role, str]:
        """Return the policy behind each role."""
        return dict.fromkeys(self._starts, KIND)

    @property
    def version(self) -> str:
        """Return the hash of all that decides."""
        return self.policy.version

    def reset(self, starts: Mapping[Role, EpisodeStart]) -> None:
        """Begin an episode; the world must show and take what the policy was made for."""
        contract = self.policy.contract
        if len(starts) != contract.agents:
            raise AgentError(
                "the team is of another size",
                found=f"{len(starts)} roles",
                expected=f"{contract.agents} agents, as on map {contract.map}",
            )
        for role, start in starts.items():
            found = start.feature_names, start.actions.n
            if found != (contract.observation, len(contract.actions)):
                raise AgentError(
                    "this world is not what the team was made for",
                    where=f"role {role}",
                    found=f"{len(found[0])} features, {found[1]} actions",
                    expected=f"{len(contract.observation)} features, {len(contract.actions)} "
                    f"actions, named as on map {contract.map}",
                    remedy="Play it on the map it learned on (policy.json names it)",
                )
        self._starts = dict(starts)
        self._dice = [start.seeds.child("policy").rng() for start in starts.values()]
        self._memory = self.policy.memory()

    def act(self, obs: Mapping[Role, Observation]) -> Mapping[Role, Decision]:
        """Choose for every role that sees something."""
        contract = self.policy.contract
        seen = np.zeros((contract.agents, len(contract.observation)), np.float32)
        legal = np.ones((contract.agents, len(contract.actions)), np.bool_)
        for i, role in enumerate(self._starts):
            if role in obs:
                seen[i] = obs[role].features
                allowed = obs[role].legal
                legal[i] = True if allowed is None else allowed
        if not np.isfinite(seen).all():
            raise AgentError("a team cannot decide by what is not a number")
        draws = None if self._deterministic else np.array([dice.random() for dice in self._dice])
        chosen = self.policy.act(seen, legal, self._memory, draws)
        self._memory = chosen.memory
        told = {"entropy": chosen.entropy}
        if draws is not None:
            told["log_prob"] = chosen.log_probs
        return {
            role: Decision(
                int(chosen.actions[i]), {name: float(each[i]) for name, each in told.items()}
            )
            for i, role in enumerate(self._starts)
            if role in obs
        }

    def observe(self, steps: Mapping[Role, Step]) -> None:
        """Learn nothing: training is done elsewhere."""

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return every number of the policy."""
        return dict(self.policy.weights)

    def losses(self) -> Mapping[str, float]:
        """Return nothing: the losses are in the record of the training."""
        return {}

    def save(self, folder: Path) -> None:
        """Put the policy into a folder of its own."""
        self.policy.save(folder)

    def load(self, folder: Path) -> None:
        """Act with the policy of that folder from now on."""
        self.policy = TeamPolicy.load(folder)
        if self._starts:
            self.reset(self._starts)


@register("team", KIND, PolicyTeamConfig)
def policy_team(config: PolicyTeamConfig) -> PolicyTeam:
    """Build the team from the folder of its policy."""
    return PolicyTeam(TeamPolicy.load(config.model), deterministic=config.deterministic)
