"""Which executor does the jobs: the processes of this machine, or a Ray cluster.

Like the number of workers, the choice changes no figure, so it is in no config and in no result.
It comes from the caller, or from the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Literal, TypeAlias

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import unknown
from agent_gym.rollouts.batch import Executor
from agent_gym.rollouts.executor import LocalExecutor
from agent_gym.rollouts.hands import ADDRESS_VARIABLE, EXECUTOR_VARIABLE

ExecutorKind: TypeAlias = Literal["local", "ray"]
KINDS: tuple[ExecutorKind, ...] = ("local", "ray")
ADAPTER = "agent_gym.rollouts.cluster.executor"


def chosen() -> ExecutorKind:
    """Return the kind of executor that the environment asks for; this machine by default."""
    said = os.environ.get(EXECUTOR_VARIABLE) or "local"
    if said not in KINDS:
        raise unknown(f"executor ({EXECUTOR_VARIABLE})", said, KINDS)
    return said


@contextmanager
def executing(kind: str | None, address: str | None) -> Iterator[None]:
    """Choose an executor for a while, for all that is done in this process.

    Args:
        kind: ``local`` or ``ray``; None leaves the choice as it is.
        address: Of the cluster.

    Raises:
        ConfigError: There is no such executor, or it has no address.
    """
    kind, address = kind or None, address or None
    if kind is not None and kind not in KINDS:
        raise unknown("executor", kind, KINDS)
    if address is not None and (kind or chosen()) == "local":
        raise ConfigError(
            "only a cluster has an address",
            where="--address",
            found=address,
            remedy="Say --executor ray, too",
        )
    before = {name: os.environ.get(name) for name in (EXECUTOR_VARIABLE, ADDRESS_VARIABLE)}
    _set(EXECUTOR_VARIABLE, kind or before[EXECUTOR_VARIABLE])
    _set(ADDRESS_VARIABLE, address or before[ADDRESS_VARIABLE])
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def make_executor(
    workers: int,
    *,
    kind: ExecutorKind | None = None,
    address: str | None = None,
    timeout_s: float | None = None,
    imports: tuple[str, ...] = (),
) -> Executor:
    """Return an executor.

    Args:
        workers: Processes at a time.
        kind: Where they are; what ``AGENT_GYM_EXECUTOR`` says if it is not given.
        address: Of the cluster; what ``AGENT_GYM_ADDRESS`` says if it is not given, and a cluster
            of this machine alone if that says nothing.
        timeout_s: Wall time a job may take.
        imports: Modules that each worker imports first.

    Raises:
        ConfigError: Ray is asked for and not installed.

    Example:
        >>> type(make_executor(2)).__name__
        'LocalExecutor'
    """
    if (kind or chosen()) == "local":
        return LocalExecutor(workers, timeout_s=timeout_s, imports=imports)
    try:
        adapter = import_module(ADAPTER)
    except ModuleNotFoundError as error:
        raise ConfigError(
            "the executor 'ray' needs Ray, which is not installed",
            where="--executor",
            found=str(error),
            remedy="pip install 'agent-gym[ray]', here and on every node",
        ) from error
    place = address or os.environ.get(ADDRESS_VARIABLE) or None
    executor: Executor = adapter.RayExecutor(
        workers, address=place, timeout_s=timeout_s, imports=imports
    )
    return executor
