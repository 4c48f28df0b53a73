"""Async agents run in one loop of their own, so that they can be asked from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import TimeoutError as WaitedTooLong
from threading import Lock, Thread
from typing import Any

from agent_gym.agents.desk.answers import AgentTimedOut

LAST_WORDS_S = 2.0


class AsyncLine:
    """A thread with an event loop, begun when first used.

    Example:
        >>> async def four() -> int:
        ...     return 4
        >>> line = AsyncLine()
        >>> line.run(four(), 1.0)
        4
        >>> line.close()
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def run(self, work: Awaitable[Any], timeout_s: float) -> Any:
        """Return what the work gives; past the time it is cancelled.

        Raises:
            AgentTimedOut: It took longer; the time is the wall's, whatever clock the desk is on.
        """
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self._running())
        try:
            return future.result(timeout_s)
        except WaitedTooLong as error:
            if future.done():  # the agent itself raised a TimeoutError
                raise
            future.cancel()
            raise AgentTimedOut("no answer in time") from error

    def close(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_end_all(), loop).result(LAST_WORDS_S)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, daemon=True, name="agents")
                self._thread.start()
            return self._loop


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def _end_all() -> None:
    """Cancel what still runs and let it put its things in order."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=LAST_WORDS_S / 2)
