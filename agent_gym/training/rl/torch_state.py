"""Parameters and optimisers as plain arrays, and back to the bit."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from agent_gym.agents.sb3.jax_twin import is_jax
from agent_gym.core.errors import DataError

Arrays: TypeAlias = dict[str, NDArray[Any]]
Values: TypeAlias = dict[str, Any]


def capture_torch(model: BaseAlgorithm) -> tuple[Arrays, Values]:
    """Return every tensor that the model says it is made of: modules, optimisers, variables."""
    arrays: Arrays = {}
    values: Values = {}
    modules, variables = model._get_torch_save_params()
    for name in modules:
        part = attrgetter(name)(model)
        if isinstance(part, torch.optim.Optimizer):
            values[name] = _capture_optimizer(part, name, arrays)
        else:
            for key, tensor in part.state_dict().items():
                arrays[f"{name}/{key}"] = _array(tensor)
    for name in variables:
        arrays[name] = _array(attrgetter(name)(model))
    return arrays, values


def restore_torch(model: BaseAlgorithm, arrays: Arrays, values: Values) -> None:
    """Put every tensor back into the model; what does not fit is a DataError."""
    modules, variables = model._get_torch_save_params()
    for name in modules:
        part = attrgetter(name)(model)
        if isinstance(part, torch.optim.Optimizer):
            _restore_optimizer(part, name, arrays, values)
        else:
            for key, tensor in part.state_dict().items():
                _copy_into(tensor, arrays, f"{name}/{key}")
    for name in variables:
        _copy_into(attrgetter(name)(model), arrays, name)


def parameters_are_finite(model: BaseAlgorithm) -> bool:
    """Return whether every parameter is a number that can still be squared (up to about 1e19).

    A model of JAX has its parameters elsewhere; there the losses alone must tell.
    """
    if is_jax(model):
        return True
    with torch.no_grad():
        sums = [tensor.square().sum() for tensor in model.policy.parameters()]
        return bool(torch.isfinite(torch.stack(sums)).all())


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    return np.array(tensor.detach().cpu().numpy(), copy=True)


def _copy_into(tensor: torch.Tensor, arrays: Arrays, name: str) -> None:
    found = arrays.get(name)
    if found is None or found.shape != tuple(tensor.shape):
        raise DataError(
            "the checkpoint is of another model",
            where=name,
            found="nothing" if found is None else f"shape {found.shape}",
            expected=f"shape {tuple(tensor.shape)}",
        )
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(found.copy()))


def _capture_optimizer(optimizer: torch.optim.Optimizer, name: str, arrays: Arrays) -> Values:
    state = optimizer.state_dict()
    plain: dict[str, dict[str, Any]] = {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, torch.Tensor):
                arrays[f"{name}/{index}/{key}"] = _array(value)
            else:
                plain.setdefault(str(index), {})[key] = value
    groups = [
        {key: value for key, value in group.items() if key != "params"}
        for group in state["param_groups"]
    ]
    return {"groups": groups, "plain": plain}


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, name: str, arrays: Arrays, values: Values
) -> None:
    if name not in values:
        raise DataError("the checkpoint has no state of an optimiser", where=name)
    state: dict[int, dict[str, Any]] = {}
    for full, array in arrays.items():
        if full.startswith(f"{name}/"):
            index, key = full[len(name) + 1 :].split("/")
            state.setdefault(int(index), {})[key] = torch.from_numpy(array.copy())
    for index, entries in values[name]["plain"].items():
        state.setdefault(int(index), {}).update(entries)
    groups = optimizer.state_dict()["param_groups"]
    for group, saved in zip(groups, values[name]["groups"], strict=True):
        group.update({key: _like(group.get(key), value) for key, value in saved.items()})
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _like(current: object, value: Any) -> Any:
    """Return a list as the tuple that it was before JSON."""
    return tuple(value) if isinstance(current, tuple) else value
