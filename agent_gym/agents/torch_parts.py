"""What every fit with torch needs: one thread, and parameters and optimiser as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from agent_gym.agents.named_arrays import under
from agent_gym.core.errors import DataError


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, and with as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def arrays_of(network: nn.Module) -> dict[str, NDArray[Any]]:
    """Return a copy of every parameter by its name."""
    return {
        name: np.array(parameter.detach().numpy(), copy=True)
        for name, parameter in network.named_parameters()
    }


def put_arrays(network: nn.Module, arrays: Mapping[str, NDArray[Any]], where: str) -> None:
    """Put every parameter back; what does not fit is a DataError."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            found = arrays.get(name)
            if found is None or found.shape != tuple(parameter.shape):
                raise DataError(
                    "the weights are of another network",
                    where=f"{where}, {name}",
                    found="nothing" if found is None else f"shape {found.shape}",
                    expected=f"shape {tuple(parameter.shape)}",
                    remedy="Use the settings and inputs they were fitted with, or fit anew",
                )
            parameter.copy_(torch.from_numpy(np.array(found, copy=True)))


def optimizer_arrays(
    network: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, NDArray[Any]]:
    """Return a copy of what the optimiser remembers of every parameter."""
    return {
        f"adam/{name}/{key}": np.array(tensor.numpy(), copy=True)
        for name, parameter in network.named_parameters()
        for key, tensor in optimizer.state.get(parameter, {}).items()
    }


def put_optimizer(
    network: nn.Module, optimizer: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Let the optimiser remember what it did when optimizer_arrays() was asked."""
    optimizer.state.clear()
    for name, parameter in network.named_parameters():
        kept = under(f"adam/{name}/", arrays)
        if kept:
            optimizer.state[parameter] = {
                key: torch.from_numpy(np.array(array, copy=True)) for key, array in kept.items()
            }
