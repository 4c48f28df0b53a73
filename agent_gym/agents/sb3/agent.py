"""Trained models as agents: columns by name, actions in the words of the world they are put in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.agents.sb3.artifact import load_policy, save_policy
from agent_gym.agents.sb3.card import ModelCard
from agent_gym.agents.sb3.policy import WITHOUT_CHANCE, Policy
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Action, ActionSpec, Decision, EpisodeStart, Observation, Step

Encode: TypeAlias = Callable[[NDArray[Any]], Action]


class ModelAgentConfig(Config):
    """Which model acts, and how."""

    model: Path = Field(description="folder of a trained model, such as .../seed_0/best")
    deterministic: bool = Field(default=True, description="the best action; else one is drawn")


class ModelAgent:
    """Implements Agent, Inspectable, Saveable and Greedy on a trained policy.

    It finds the columns it was trained on by their names, so a world may show more of them and in
    another order. It does not learn.
    """

    algo: ClassVar[str]

    def __init__(self, config: ModelAgentConfig) -> None:
        self._deterministic = config.deterministic
        self._start: EpisodeStart | None = None
        self._take(load_policy(config.model), str(config.model))

    @property
    def name(self) -> str:
        """Return the name it is registered by."""
        return f"sb3/{self.algo}"

    @property
    def card(self) -> ModelCard:
        """Return what is known of the model."""
        return self._policy.card

    def reset(self, start: EpisodeStart) -> None:
        """Find the columns and the actions in this world; forget the last episode."""
        self._columns = _columns(self.card, start)
        self._encode = _encoder(self.card, start.actions)
        self._dice = start.seeds.child("policy").rng()
        self._start = start

    def act(self, obs: Observation) -> Decision:
        """Decide by this observation alone."""
        row = obs.features.take(self._columns)
        if not np.isfinite(row).all():
            raise self._refusal(row, obs)
        return Decision(self._encode(self._decide(row[np.newaxis])[0]))

    def observe(self, step: Step) -> None:
        """Learn nothing: training is over."""

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return every number that was trained."""
        return self._policy.weights()

    def losses(self) -> Mapping[str, float]:
        """Return the last losses of training, as far as they were kept."""
        return dict(self.card.losses)

    def save(self, folder: Path) -> None:
        """Put the model into a folder of its own."""
        save_policy(self._policy, folder)

    def load(self, folder: Path) -> None:
        """Act with the model of that folder from now on."""
        self._take(load_policy(folder), str(folder))
        if self._start is not None:
            self.reset(self._start)

    def act_greedily(self) -> None:
        """Take the best action from now on."""
        self._deterministic = True

    def _take(self, policy: Policy, where: str) -> None:
        if policy.card.algo != self.algo:
            raise ConfigError(
                "the model was trained by another algorithm",
                where=where,
                found=policy.card.algo,
                expected=self.algo,
                remedy=f"Name it sb3/{policy.card.algo}",
            )
        if not self._deterministic and self.algo in WITHOUT_CHANCE:
            raise ConfigError(
                f"a {self.algo} policy has no chance in it, so deterministic changes nothing",
                where=f"agent {self.name}",
                found="deterministic: false",
                remedy="Leave deterministic out",
            )
        self._policy = policy

    def _decide(self, row: NDArray[Any]) -> NDArray[Any]:
        if self._deterministic:
            return self._policy.predict(row)
        seed = int(self._dice.integers(2**63 - 1))
        return self._policy.predict(row, deterministic=False, seed=seed)

    def _refusal(self, row: NDArray[Any], obs: Observation) -> AgentError:
        names = self.card.feature_names
        bad = [names[i] for i in np.flatnonzero(~np.isfinite(row))]
        return AgentError(
            "a model cannot decide by what is not a number",
            where=f"ts {obs.ts}",
            found=", ".join(bad),
            remedy="Let the world show numbers only, or begin after its warm-up",
        )


def _columns(card: ModelCard, start: EpisodeStart) -> NDArray[np.intp]:
    shown = start.feature_names
    lacking = [name for name in card.feature_names if name not in shown]
    if lacking:
        raise AgentError(
            "this world does not show what the model was trained on",
            where=f"role {start.role}",
            found=f"shown: {', '.join(shown)}",
            expected=f"also {', '.join(lacking)}",
            remedy="Give the world the features of the model's environment (env in model.json)",
        )
    return np.array([shown.index(name) for name in card.feature_names], dtype=np.intp)


def _encoder(card: ModelCard, actions: ActionSpec) -> Encode:
    """Return how an action of the model becomes one of this world, or say that it cannot."""
    own, levels = card.actions, card.levels
    targets = actions.n is None or actions.levels is not None  # it takes a position, or a number
    if levels is not None and targets:
        coded = [actions.encode(level) for level in levels]
        return lambda action: coded[action]
    if own.n is not None and levels is None and own.n == actions.n and actions.levels is None:
        return int
    if own.n is None and len(own.low) == 1 and targets:
        return lambda action: actions.encode(float(action[0]))
    if own.n is None and actions.n is None:
        return lambda action: np.clip(action.astype(np.float64), actions.low, actions.high)
    raise AgentError(
        "the model's actions mean nothing in this world",
        where="actions",
        found=f"model: {_words(own.n, levels)}",
        expected=f"world: {_words(actions.n, actions.levels)}",
        remedy="Play it in the kind of environment it was trained in (env in model.json)",
    )


def _words(n: int | None, levels: tuple[float, ...] | None) -> str:
    if n is None:
        return "continuous"
    return f"{n} actions" if levels is None else f"target positions {levels}"


@register("agent", "sb3/ppo", ModelAgentConfig)
class PPOAgent(ModelAgent):
    """Acts with a model that PPO has trained."""

    algo = "ppo"


@register("agent", "sb3/a2c", ModelAgentConfig)
class A2CAgent(ModelAgent):
    """Acts with a model that A2C has trained."""

    algo = "a2c"


@register("agent", "sb3/sac", ModelAgentConfig)
class SACAgent(ModelAgent):
    """Acts with a model that SAC has trained."""

    algo = "sac"


@register("agent", "sb3/td3", ModelAgentConfig)
class TD3Agent(ModelAgent):
    """Acts with a model that TD3 has trained."""

    algo = "td3"


@register("agent", "sb3/tqc", ModelAgentConfig)
class TQCAgent(ModelAgent):
    """Acts with a model that TQC has trained."""

    algo = "tqc"


@register("agent", "sb3/dqn", ModelAgentConfig)
class DQNAgent(ModelAgent):
    """Acts with a model that DQN has trained."""

    algo = "dqn"


@register("agent", "sb3/qrdqn", ModelAgentConfig)
class QRDQNAgent(ModelAgent):
    """Acts with a model that QR-DQN has trained."""

    algo = "qrdqn"
