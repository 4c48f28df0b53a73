"""Every generator that a training run draws from, set from one seed and kept as plain data."""

from __future__ import annotations

import random  # noqa: TID251 - its state belongs to a checkpoint: libraries draw from it
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.utils import set_random_seed

from agent_gym.core.seeds import Seeds


def set_seed(seed: int) -> None:
    """Seed the three global generators: of Python, of numpy and of torch."""
    set_random_seed(seed)


class SeedManager:
    """The seeds of one run, by purpose; episodes that judge share none with those that teach.

    Example:
        >>> seeds = SeedManager(3)
        >>> set(seeds.evaluation_seeds(20)) & set(seeds.final_seeds(100))
        set()
    """

    def __init__(self, root: int) -> None:
        self._run = Seeds(root).child("rl")

    @property
    def model(self) -> int:
        """Return the seed of weights, exploration and minibatches."""
        return self._run.child("model").as_int()

    @property
    def environment(self) -> Seeds:
        """Return the node of the training environments."""
        return self._run.child("environment")

    @property
    def evaluation(self) -> Seeds:
        """Return the node of the episodes that choose the best model."""
        return self._run.child("evaluation")

    @property
    def final(self) -> Seeds:
        """Return the node of the fresh episodes that judge the chosen model."""
        return self._run.child("final")

    def evaluation_seeds(self, n: int) -> tuple[int, ...]:
        """Return one seed an episode; the same at each look, so that looks compare."""
        return _distinct(self.evaluation, n, taken=set())

    def final_seeds(self, n: int) -> tuple[int, ...]:
        """Return one seed an episode, none of which an evaluation of up to 1000 has used."""
        return _distinct(self.final, n, taken=set(self.evaluation_seeds(1000)))


def _distinct(node: Seeds, n: int, taken: set[int]) -> tuple[int, ...]:
    rng, found = node.rng(), dict.fromkeys(taken)
    while len(found) < n + len(taken):
        found[int(rng.integers(2**31 - 1))] = None
    return tuple(list(found)[len(taken) :])


class RngState(NamedTuple):
    """The state of the three global generators."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


def rng_state() -> RngState:
    """Return the state of the global generators of Python, numpy and torch."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    arrays = {
        "python": np.array(words, dtype=np.uint32),
        "numpy": np.array(keys, dtype=np.uint32),
        "torch": torch.get_rng_state().numpy().copy(),
    }
    values = {
        "python": {"version": version, "gauss": gauss},
        "numpy": {
            "name": str(name),
            "position": int(position),
            "has_gauss": int(has_gauss),
            "cached": float(cached),
        },
    }
    return RngState(arrays, values)


def set_rng_state(state: RngState) -> None:
    """Put the global generators back."""
    arrays, python, legacy = state.arrays, state.values["python"], state.values["numpy"]
    random.setstate((python["version"], tuple(arrays["python"].tolist()), python["gauss"]))
    np.random.set_state(  # noqa: NPY002
        (
            legacy["name"],
            arrays["numpy"],
            legacy["position"],
            legacy["has_gauss"],
            legacy["cached"],
        )
    )
    torch.set_rng_state(torch.from_numpy(arrays["torch"].copy()))
