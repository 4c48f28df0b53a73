"""The thread that brings finished trajectories into the store.

Many go into one file: first the steps are written and synced, then, in one transaction, the rows
that name them. A kill leaves whole trajectories or none.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from agent_gym.rollouts.database.finished import Finished, documents
from agent_gym.rollouts.database.store import TrajectoryStore

FLUSH_STEPS = 16_384
FLUSH_TRAJECTORIES = 500
WAITING_WRITES = 2


class TrajectoryWriter:
    """Collects finished trajectories and writes them behind the back of the loop.

    Attributes:
        ids: The ids of the trajectories that were written, by episode and role.
    """

    def __init__(self, store: TrajectoryStore, flush_steps: int) -> None:
        self._store = store
        self._flush_steps = flush_steps
        self._collected: list[Finished] = []
        self._steps = 0
        self._thread = ThreadPoolExecutor(1, "trajectory writer")
        self._writes: deque[Future[None]] = deque()
        self.ids: dict[str, dict[str, str]] = {}

    def put(self, finished: list[Finished]) -> None:
        """Take some trajectories; what went wrong with earlier ones is raised here."""
        self._collected += finished
        self._steps += sum(one.n_steps for one in finished)
        if self._steps >= self._flush_steps or len(self._collected) >= FLUSH_TRAJECTORIES:
            self._send()

    def flush(self) -> None:
        """Return when everything is in the store or in the outbox."""
        self._send()
        while self._writes:
            self._writes.popleft().result()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    def _send(self) -> None:
        if not self._collected:
            return
        batch, self._collected, self._steps = self._collected, [], 0
        while self._writes and (len(self._writes) >= WAITING_WRITES or self._writes[0].done()):
            self._writes.popleft().result()
        self._writes.append(self._thread.submit(self._write, batch))

    def _write(self, batch: list[Finished]) -> None:
        for document in documents(batch, self._store.files, self._store.clock.now_ns()):
            self._store.record(document)
            for row in document["trajectories"]:
                roles = self.ids.setdefault(row["episode_id"], {})
                roles[row["role"]] = row["trajectory_id"]
