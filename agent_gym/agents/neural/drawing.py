"""A policy of markets as an agent: it draws its targets and says how likely they were."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.neural.layout import FeatureLayout, PolicyInputs
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config
from agent_gym.core.types import (
    Action,
    ActionSpec,
    Decision,
    EpisodeStart,
    FloatArray,
    Observation,
    Step,
)


class PolicyAgentConfig(Config):
    """Which policy acts, and how."""

    model: Path = Field(description="folder of a policy")
    deterministic: bool = Field(
        default=False,
        description="the likeliest targets; such episodes cannot be trained on",
    )


class MarketPolicy(Protocol):
    """Chances over target positions for each market, by what is seen now alone."""

    @property
    def version(self) -> str: ...
    @property
    def inputs(self) -> PolicyInputs: ...
    @property
    def levels(self) -> FloatArray: ...
    @property
    def weights(self) -> Mapping[str, NDArray[Any]]: ...

    def log_probs(self, blocks: FloatArray) -> FloatArray: ...
    def save(self, folder: Path) -> Any: ...
    @classmethod
    def load(cls, folder: Path) -> Self: ...


P = TypeVar("P", bound=MarketPolicy)


class PolicyAgent(Generic[P]):
    """Implements Agent, Inspectable and Saveable on a policy of markets.

    When it draws, ``signals`` holds ``log_prob`` (natural log of the chance of the whole decision,
    all markets together) and ``entropy``. A decision without chance in it has no ``log_prob``:
    nothing can be learned from what was never in doubt.
    """

    name: str

    def __init__(self, policy: P, *, deterministic: bool = False) -> None:
        self._policy = policy
        self._deterministic = deterministic
        self._start: EpisodeStart | None = None

    @property
    def version(self) -> str:
        """Return the hash of all that decides."""
        return self._policy.version

    @property
    def policy(self) -> P:
        """Return the policy that decides."""
        return self._policy

    def reset(self, start: EpisodeStart) -> None:
        """Find the markets and their columns in this world; forget the last episode."""
        layout = FeatureLayout.of(start.feature_names)
        self._columns = layout.columns(self._policy.inputs)
        self._rows = np.arange(len(layout.markets))
        self._alone = layout.markets == ("",)
        self._codes = _codes(self._policy.levels, start.actions, len(layout.markets))
        self._dice = start.seeds.child("policy").rng()
        self._start = start

    def act(self, obs: Observation) -> Decision:
        """Choose a target for each market by this observation alone."""
        if obs.legal is not None:
            raise AgentError("a policy of markets knows no forbidden actions", where=f"ts {obs.ts}")
        seen = obs.features[self._columns]
        if not math.isfinite(seen.sum()):
            raise self._refusal(obs)
        log_probs = self._policy.log_probs(seen)
        if self._deterministic:
            return Decision(self._action(log_probs.argmax(axis=1)))
        probs = np.exp(log_probs)
        reach = probs.cumsum(axis=1)
        draws = self._dice.random((len(reach), 1)) * reach[:, -1:]
        chosen = (draws >= reach).sum(axis=1)
        signals = {
            "log_prob": float(log_probs[self._rows, chosen].sum()),
            "entropy": -float((probs * log_probs).sum()),
        }
        return Decision(self._action(chosen), signals)

    def observe(self, step: Step) -> None:
        """Learn nothing: training is done from records."""

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return every number of the policy."""
        return dict(self._policy.weights)

    def losses(self) -> Mapping[str, float]:
        """Return nothing: the losses are in the result of the training."""
        return {}

    def save(self, folder: Path) -> None:
        """Put the policy into a folder of its own."""
        self._policy.save(folder)

    def load(self, folder: Path) -> None:
        """Act with the policy of that folder from now on."""
        self._policy = type(self._policy).load(folder)
        if self._start is not None:
            self.reset(self._start)

    def _action(self, chosen: NDArray[np.intp]) -> Action:
        if self._codes is not None:
            return self._codes[int(chosen[0])]
        targets = self._policy.levels[chosen]
        return float(targets[0]) if self._alone else targets

    def _refusal(self, obs: Observation) -> AgentError:
        names = self._start.feature_names if self._start is not None else ()
        bad = sorted({int(c) for c in self._columns.flat if not math.isfinite(obs.features[c])})
        return AgentError(
            "a policy cannot decide by what is not a number",
            where=f"ts {obs.ts}",
            found=", ".join(names[column] for column in bad),
            remedy="Let the world show numbers only, or begin after its warm-up",
        )


def _codes(levels: FloatArray, actions: ActionSpec, n_markets: int) -> list[Action] | None:
    """Return the action behind each level where actions are counted; None where they are shares."""
    low, high = float(levels[0]), float(levels[-1])
    if actions.n is None:
        if low < actions.low or high > actions.high:
            raise AgentError(
                "the levels of the policy are outside of what this world takes",
                found=f"{low} to {high}",
                expected=f"{actions.low} to {actions.high}",
            )
        return None
    if actions.levels is None or n_markets != 1:
        raise AgentError(
            "the targets of the policy mean nothing in this world",
            found=f"{actions.n} actions, {n_markets} markets",
            expected="shares of a budget, or levels of one market",
        )
    return [actions.encode(float(level)) for level in levels]
