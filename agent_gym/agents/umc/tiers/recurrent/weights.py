"""The weights of a fitted recurrent model as plain arrays, without torch.

A fitted model is a mapping of names to arrays: the parameters of the network under ``network/``,
its normaliser under ``normaliser/`` and the names of the inputs as the bytes of a JSON list, so
that any store of arrays can hold it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.tiers.scaling import Normaliser
from agent_gym.core.errors import DataError

NETWORK, NORMALISER, INPUTS = "network/", "normaliser/", "inputs"
SPREAD_FROM, SPREAD_TO = -3.0, 3.0
"""Bounds of the log deviation of a forecast, in deviations of the return known now."""


def model_of(
    network: Mapping[str, NDArray[Any]], normaliser: Normaliser, names: tuple[str, ...]
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a fitted model."""
    return {
        **{f"{NETWORK}{name}": array for name, array in network.items()},
        f"{NORMALISER}mean": normaliser.mean,
        f"{NORMALISER}deviation": normaliser.deviation,
        f"{NORMALISER}usable": normaliser.usable,
        INPUTS: np.frombuffer(json.dumps(names).encode(), dtype=np.uint8).copy(),
    }


def network_in(model: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the parameters of the network by their own names."""
    return {
        name.removeprefix(NETWORK): array
        for name, array in model.items()
        if name.startswith(NETWORK)
    }


def normaliser_in(model: Mapping[str, NDArray[Any]]) -> Normaliser:
    """Return the normaliser of a model."""
    return Normaliser(
        *(
            np.array(part(model, f"{NORMALISER}{name}"), dtype=np.float64)
            for name in ("mean", "deviation", "usable")
        )
    )


def names_in(model: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return what the inputs of a model are called."""
    return tuple(json.loads(bytes(part(model, INPUTS).astype(np.uint8))))


def part(model: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return one array of a model; that it is missing is a DataError."""
    if name not in model:
        raise DataError(
            "the weights are not those of a recurrent model",
            where=name,
            found=f"{len(model)} arrays without it",
            remedy="Give what RecurrentTier.weights() returned",
        )
    return model[name]
