"""How new a state is: a network learns what a random one says of the states it has met.

The control that is named in most studies of exploration. It asks for no forecast: where the team
has often been the two networks agree, elsewhere they do not.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from agent_gym.agents.marl.network import Floats
from agent_gym.agents.named_arrays import under
from agent_gym.agents.torch_parts import arrays_of, optimizer_arrays, put_arrays, put_optimizer
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.buffers import PrimaryView
from agent_gym.training.marl.amal.ensemble import Ensemble
from agent_gym.training.marl.amal.scale import Scale
from agent_gym.training.marl.amal.transitions import Transitions
from agent_gym.training.marl.amal_config import WorldModelConfig
from agent_gym.training.marl.batch import Arrays

SAID = 32
"""How many numbers the random network says of a state."""


class Distillation:
    """A random network, one that learns to answer like it, and the scale of states.

    Args:
        features: How many numbers a state has.
        config: Shape and learning, those of the model of the world.
        seeds: Its own randomness.
    """

    def __init__(self, features: int, config: WorldModelConfig, seeds: Seeds) -> None:
        self._features, self._config, self._seeds = features, config, seeds
        widths = (features, *[config.hidden] * config.layers, SAID)
        self._random = Ensemble(1, widths, seeds.child("random")).requires_grad_(False)
        self._learner = Ensemble(1, widths, seeds.child("learner"))
        self._adam = torch.optim.Adam(
            self._learner.parameters(), lr=config.learning_rate, fused=True
        )
        self._scale, self._fits = Scale(features), 0

    def novelty(self, rows: Transitions) -> FloatArray:
        """Return how far apart the two are on the state that each step leads to."""
        with torch.no_grad():
            found = self._apart(self._states(rows)).numpy()
        return found.astype(np.float64)

    def learn(self, view: PrimaryView) -> None:
        """Take in the newest window, then take some steps on all that is held."""
        self._scale.update(self._reached(view.newest().rows()))
        states = self._states(view.rows())
        rng = self._seeds.child("fit", self._fits).rng()
        self._fits += 1
        for _ in range(self._config.updates):
            drawn = torch.from_numpy(rng.integers(len(states), size=self._config.batch))
            loss = self._apart(states[drawn]).mean()
            self._adam.zero_grad(set_to_none=True)
            torch.autograd.backward([loss])
            self._adam.step()

    def _reached(self, rows: Transitions) -> Floats:
        return rows.seen[:, : self._features] + rows.change

    def _states(self, rows: Transitions) -> Tensor:
        return torch.from_numpy(self._scale.scaled(self._reached(rows)))

    def _apart(self, states: Tensor) -> Tensor:
        asked = states.unsqueeze(0)
        gaps = self._learner.told(asked).mean - self._random.told(asked).mean
        return gaps.square().mean(-1)[0]

    def state(self) -> Arrays:
        """Return all that decides how it goes on; the random network is made from its seed."""
        arrays = arrays_of(self._learner) | optimizer_arrays(self._learner, self._adam)
        arrays |= {f"scale/{key}": array for key, array in self._scale.arrays().items()}
        return arrays | {"fits": np.array([self._fits])}

    def restore(self, arrays: Arrays) -> None:
        """Go on where another one stood."""
        put_arrays(self._learner, arrays, "distillation")
        put_optimizer(self._learner, self._adam, arrays)
        self._scale.restore(under("scale/", arrays))
        self._fits = int(arrays["fits"][0])
