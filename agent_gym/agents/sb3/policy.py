"""A trained policy that acts: observations as the environment gives them, actions as it takes them.

The answers are, bit for bit, those of the library's own ``predict`` behind VecNormalize.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from torch import Tensor

from agent_gym.agents.sb3.algorithms import ALGORITHMS, policy_kwargs
from agent_gym.agents.sb3.card import ModelCard
from agent_gym.agents.sb3.greedy import greedy_layers
from agent_gym.agents.sb3.normalizer import Normalizer, normalized
from agent_gym.core.errors import AgentError, DataError

WITHOUT_CHANCE = frozenset({"td3", "dqn", "qrdqn"})
"""Whose policies have no chance in them: they explore only while they are trained."""


class Policy:
    """A model to act with; training and files are no business of it.

    It never draws from a global generator and leaves their state as it was.
    """

    def __init__(
        self, card: ModelCard, weights: Mapping[str, Tensor], normalizer: Normalizer | None
    ) -> None:
        self.card = card
        self.normalizer = normalizer
        self._network = _network(card, weights)
        self._layers = greedy_layers(self._network)
        self._scale = normalizer.scale() if normalizer is not None else None
        self._width, self._dtype = card.observations.width, np.dtype(card.observations.dtype)
        self._discrete = card.actions.n is not None
        self._squashed = bool(self._network.squash_output)
        self._low, self._high = card.actions.bounds()

    def predict(
        self, obs: NDArray[Any], *, deterministic: bool = True, seed: int | None = None
    ) -> NDArray[Any]:
        """Return an action for each row of raw observations, in the units of the environment.

        Args:
            obs: A row for each action to take, not normalised.
            deterministic: Take the best action; else draw one, for which ``seed`` is needed.
            seed: Decides what is drawn; the same seed and observations give the same actions.
        """
        seen = np.asarray(obs, dtype=self._dtype)
        if seen.ndim != 2 or seen.shape[1] != self._width:
            raise AgentError(
                "observations do not fit the model",
                found=seen.shape,
                expected=f"(n, {self._width})",
            )
        given = torch.from_numpy(normalized(seen, self._scale))
        actions = self._greedy(given) if deterministic else self._drawn(given, seed)
        return actions if self._discrete else self._in_units(actions)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return a copy of every number that was trained, by name."""
        state = self._network.state_dict()
        return {name: value.numpy().copy() for name, value in state.items()}

    def tensors(self) -> dict[str, Tensor]:
        """Return a copy of the same as tensors."""
        return {name: value.clone() for name, value in self._network.state_dict().items()}

    @property
    def network(self) -> BasePolicy:
        """Return the network as the library has it, for export."""
        return self._network

    def _greedy(self, x: Tensor) -> NDArray[Any]:
        for layer in self._layers:
            x = layer(x)
        actions: NDArray[Any] = x.numpy()
        return actions

    def _drawn(self, x: Tensor, seed: int | None) -> NDArray[Any]:
        if self.card.algo in WITHOUT_CHANCE:
            raise AgentError("this policy has no chance in it", found=self.card.algo)
        if seed is None:
            raise AgentError("an action can be drawn only from a seed", expected="seed=...")
        with _own_dice(seed), torch.no_grad():
            self._reset_noise(len(x))
            drawn: NDArray[Any] = self._network._predict(x, deterministic=False).numpy()
        return drawn

    def _reset_noise(self, rows: int) -> None:
        """Draw the exploration of a policy that keeps it over several steps."""
        if getattr(self.card.config, "use_sde", False):
            network: Any = self._network
            actor = network if isinstance(network, ActorCriticPolicy) else network.actor
            actor.reset_noise(rows)

    def _in_units(self, actions: NDArray[Any]) -> NDArray[Any]:
        low, high = self._low, self._high
        if self._squashed:
            scaled: NDArray[Any] = low + (0.5 * (actions + 1.0) * (high - low))
            return scaled
        clipped: NDArray[Any] = np.clip(actions, low, high)
        return clipped


def _network(card: ModelCard, weights: Mapping[str, Tensor]) -> BasePolicy:
    """Return the library's network with the given weights; new ones are drawn and thrown away."""
    config, algorithm = card.config, ALGORITHMS[card.algo]
    kwargs = policy_kwargs(config)
    if hasattr(config, "use_sde"):
        kwargs["use_sde"] = config.use_sde
    with _own_dice(0):
        network = algorithm.model.policy_aliases["MlpPolicy"](
            card.observations.space(), card.actions.space(), _no_learning, **kwargs
        )
    try:
        network.load_state_dict(dict(weights), strict=True)
    except RuntimeError as error:
        raise DataError("these weights belong to another network", found=str(error)) from error
    network.set_training_mode(False)
    network.requires_grad_(False)
    return network


@contextmanager
def _own_dice(seed: int) -> Iterator[None]:
    """Seed the global generator of torch, which its distributions insist on, and put it back.

    ``fork_rng`` does the same for every device there might be, in a hundred times the time.
    """
    state = torch.default_generator.get_state()
    try:
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        torch.default_generator.set_state(state)


def _no_learning(_: float) -> float:
    return 0.0
