"""A Ray cluster of several nodes on one machine, for tests and measurements.

Ray gives a node half a minute to start and a worker one minute. That is short on a busy machine, so
both are longer here.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray._private import services
from ray.cluster_utils import Cluster

from agent_gym.core.clock import SystemClock

PATIENCE_S = 600
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_register_timeout_seconds": str(PATIENCE_S),
    "RAY_agent_register_timeout_ms": str(PATIENCE_S * 1_000),
}
NODE = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}


class SmallCluster:
    """A head with one processor, and nodes that come and go."""

    def __init__(self, nodes: int = 1) -> None:
        os.environ.update(SETTINGS)
        self._cluster = Cluster()
        self._nodes: list[Any] = []
        self._head = self._started()
        for _ in range(nodes - 1):
            self.add()

    @property
    def address(self) -> str:
        """Return where the head is."""
        return str(self._cluster.address)

    def add(self) -> None:
        """Start another node."""
        self._nodes.append(self._started())

    def kill(self) -> None:
        """Kill the newest node, as if its machine lost power."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def shrink(self) -> None:
        """Kill all nodes but the head."""
        while self._nodes:
            self.kill()

    def close(self) -> None:
        """End everything."""
        ray.shutdown()
        self._cluster.shutdown()

    def _started(self) -> Any:
        with _patient():
            return self._cluster.add_node(wait=False, **NODE)


@contextmanager
def _patient() -> Iterator[None]:
    """Let Ray ask longer whether a node is there."""
    before: Callable[..., Any] = services.get_node
    clock = SystemClock()

    def ask(*arguments: Any) -> Any:
        end_s = clock.monotonic_s() + PATIENCE_S
        while True:
            try:
                return before(*arguments)
            except RuntimeError:
                if clock.monotonic_s() > end_s:
                    raise
                clock.sleep_s(0.2)

    services.get_node = ask
    try:
        yield
    finally:
        services.get_node = before
