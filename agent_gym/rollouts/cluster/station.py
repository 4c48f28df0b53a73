"""A place on a node of a cluster where jobs are done, one after the other.

It is an actor of Ray's, and it only passes messages on: a job runs in a process of its own, the
same worker as on one machine. So what ends a job's process costs that job alone, limits and rows
are the same, and nothing but JSON and bytes of files comes here.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.rollouts.batch import Answer
from agent_gym.rollouts.cluster.code import identity
from agent_gym.rollouts.cluster.parcels import whole
from agent_gym.rollouts.cluster.shelf import Shelf, clear
from agent_gym.rollouts.executor import Board, LocalExecutor


class Station:
    """Does chunks of jobs in a worker process that it keeps.

    Args:
        settings: As JSON: ``imports`` and ``start_timeout_s`` of the worker, the ``session``, the
            ``folder`` the sender is in, the ``paths`` where it finds modules, and the
            ``environment`` that decides bits; null there means that a variable is not set.
    """

    def __init__(self, settings: str) -> None:
        said = json.loads(settings)
        self._session: str = said["session"]
        for name, value in said["environment"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if Path(said["folder"]).is_dir():  # paths that are not absolute mean the same then
            os.chdir(said["folder"])
        sys.path += [each for each in said["paths"] if each not in sys.path and Path(each).exists()]
        self._executor = LocalExecutor(
            1, imports=tuple(said["imports"]), start_timeout_s=said["start_timeout_s"]
        ).__enter__()
        self._clock = SystemClock()
        self._shelf = Shelf(self._session, {})
        self._shared: dict[str, Any] = {}
        self._answers: list[tuple[int, Answer]] = []
        self._chunk: list[int] = []

    def begin(self, order: str) -> str:
        """Look at what the jobs of a run need; say who this is and what is missing."""
        wanted = json.loads(order)
        self._shelf, self._shared = Shelf(self._session, wanted["files"]), {}
        missing = self._shelf.missing()
        if not missing:
            self._shelf.ready()
        return to_json(
            {
                "host": socket.gethostname(),
                "code": identity(wanted["modules"]),
                "missing": missing,
                "unshared": [path for path in wanted["tokens"] if not Path(path).exists()],
            }
        )

    def receive(self, keys: list[str], *contents: bytes) -> str:
        """Keep files that were missing."""
        for key, content in zip(keys, contents, strict=True):
            self._shelf.put(key, content)
        self._shelf.ready()
        return to_json({})

    def do(
        self,
        chunk: list[tuple[int, bytes, dict[str, str]]],
        slice_s: float,
        timeout_s: float | None,
        keys: list[str],
        *contents: bytes,
    ) -> bytes:
        """Do jobs until all are done or the slice of time is over; return what is done.

        Args:
            chunk: The number, the message and the fields taken out of each job.
            slice_s: After this time no further job is begun.
            timeout_s: Wall time a job may take.
            keys: Of the common fields that come with this call.
            contents: Those fields as text.
        """
        for key, content in zip(keys, contents, strict=True):
            self._shared[key] = json.loads(content)
        messages = [self._message(message, missing) for _, message, missing in chunk]
        self._chunk, self._answers = [index for index, _, _ in chunk], []
        begun_s = self._clock.monotonic_s()

        def note(place: int, answer: Answer) -> None:
            self._answers.append((self._chunk[place], answer))
            if self._clock.monotonic_s() - begun_s >= slice_s:
                board.withdraw()

        board = Board(messages, note, timeout_s)
        refused = None
        try:
            self._executor.carry_out(board)
        except ConfigError as error:
            refused = error.as_dict()
        seconds = self._clock.monotonic_s() - begun_s
        said = {"answers": self._answers, "seconds": seconds, "refused": refused}
        return self._shelf.as_sent(_bytes(said))

    def salvage(self) -> bytes:
        """Say what is done of the chunk that is under way, and which job is at work."""
        done = list(self._answers)
        at = self._chunk[len(done)] if len(done) < len(self._chunk) else None
        return self._shelf.as_sent(_bytes({"answers": done, "at": at}))

    def close(self, tidy: bool) -> None:
        """End the worker process; ``tidy`` removes the files that were sent."""
        self._executor.__exit__()
        if tidy:
            clear(self._session)

    def _message(self, message: bytes, missing: dict[str, str]) -> bytes:
        fields = {name: self._shared[key] for name, key in missing.items()}
        return self._shelf.here(whole(message, fields))


def _bytes(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
