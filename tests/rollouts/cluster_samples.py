"""One small Ray cluster for all tests of a process, with nodes that come and go."""

import os

import ray
from ray.cluster_utils import Cluster

ATTEMPTS = 5  # Ray gives a node half a minute to start, which is short on a busy machine
NODE = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}


class SmallCluster:
    """A head with one processor; tests add nodes and kill them."""

    def __init__(self):
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        self._nodes = []
        for attempt in range(ATTEMPTS):
            self._cluster = Cluster()
            try:
                self._cluster.add_node(**NODE)
                break
            except Exception:
                self._cluster.shutdown()
                if attempt == ATTEMPTS - 1:
                    raise

    @property
    def address(self):
        return self._cluster.address

    def add(self):
        for attempt in range(ATTEMPTS):
            try:
                self._nodes.append(self._cluster.add_node(**NODE))
                return
            except Exception:
                if attempt == ATTEMPTS - 1:
                    raise

    def kill(self):
        """Kill the newest node, as if its machine lost power."""
        self._cluster.remove_node(self._nodes.pop(), allow_graceful=False)

    def shrink(self):
        while self._nodes:
            self.kill()

    def close(self):
        ray.shutdown()
        self._cluster.shutdown()
