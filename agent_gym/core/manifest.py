"""What every result carries: enough to make it again and to know what it was made from."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import Field

from agent_gym.core.files import to_json
from agent_gym.core.registry import Config

LIBRARIES = ("agent-gym", "numpy", "numba", "pyarrow", "polars")


class Manifest(Config):
    """Commit, config, data, seeds, versions and the command that reproduces a result."""

    schema_version: int = 1
    command: str
    commit: str | None = None
    config_hash: str
    config: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)


def describe(
    *,
    argv: list[str],
    config: Mapping[str, Any],
    data: Mapping[str, Any],
    seeds: tuple[int, ...] = (),
    commit: str | None = None,
) -> Manifest:
    """Make the manifest of a run; nothing comes from the clock, so equal runs have equal bytes."""
    return Manifest(
        command=shlex.join(argv),
        commit=commit,
        config_hash=fingerprint(config),
        config=dict(config),
        data=dict(data),
        seeds=seeds,
        versions=installed_versions(),
    )


def fingerprint(value: Any) -> str:
    """Return a short hash of anything that JSON can say, independent of key order."""
    return blake2b(to_json(value).encode(), digest_size=16).hexdigest()


def installed_versions() -> dict[str, str]:
    """Return the versions that decide the bits of a result."""
    return {"python": platform.python_version()} | {name: _version(name) for name in LIBRARIES}


@cache
def _version(name: str) -> str:
    """Return an installed version; read once, since it takes longer than a short backtest."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
