"""The connection of this process to a Ray cluster; there is one at a time."""

from __future__ import annotations

import os
from typing import Any

import ray

from agent_gym.core.errors import ConfigError

STORE_BYTES = 256 * 2**20
REMEDY = "See that the cluster runs, that this machine is one of its nodes, and `ray status` there"


def connect(address: str | None, workers: int) -> None:
    """Join the cluster at an address, or start one on this machine that ends with this process.

    A connection that is there already is used as it is.

    Args:
        address: ``HOST:PORT`` of the head, or ``auto`` for a cluster this machine is a node of.
        workers: Processors of the cluster that is started if there is no address.

    Raises:
        ConfigError: There is no cluster at the address, or it did not start; whatever Ray raises
            then becomes this.
    """
    if ray.is_initialized():
        return
    if address is not None and "://" in address:
        raise ConfigError(
            "a cluster is joined from one of its nodes, not through Ray Client",
            where="--address",
            found=address,
            expected="HOST:PORT of the head, or auto",
            remedy="Run this on a node of the cluster, or submit it there with `ray job submit`",
        )
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    own: dict[str, Any] = {
        "num_cpus": workers,
        "include_dashboard": False,
        "object_store_memory": STORE_BYTES,
        "_node_ip_address": "127.0.0.1",
    }
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            ray.init(address="local", **own, **quiet)
        else:
            ray.init(address=address, **quiet)
    except Exception as error:
        raise ConfigError(
            "the cluster cannot be joined",
            where=address or "this machine",
            found=str(error).partition("\n")[0],
            remedy=REMEDY,
        ) from error
