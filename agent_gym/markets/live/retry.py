"""Trying again, politely and not for ever; and a loop of its own for callers without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from threading import Thread
from typing import Any, TypeVar

from agent_gym.core.clock import Clock
from agent_gym.core.errors import DataError
from agent_gym.markets.live.adapter import Hiccup
from agent_gym.markets.live.config import LiveConfig

T = TypeVar("T")

# A server that never answered is more likely absent than busy: the user should hear it soon.
FIRST_CONTACT_RETRIES = 2
LISTEN_S = 0.2


class Retrier:
    """Repeats requests that failed for a passing reason, and counts."""

    def __init__(self, config: LiveConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._reached = False
        self.requests = 0
        self.retries = 0

    def call(self, what: str, action: Callable[[], T]) -> T:
        """Return what the action returns.

        Raises:
            DataError: If it still fails after the last try, or is asked to wait too long.
        """
        self.requests += 1
        attempt = 0
        while True:
            try:
                answer = action()
            except Hiccup as trouble:
                wait_s = self.wait_s(what, trouble, attempt)
                self.retries += 1
                attempt += 1
                self._clock.sleep_s(wait_s)
            else:
                self._reached = True
                return answer

    def wait_s(self, what: str, trouble: Hiccup, attempt: int) -> float:
        """Return how long to wait before the next try, or raise if there is to be none."""
        config = self._config
        wait_s = config.backoff_s(self.requests, attempt)
        if trouble.retry_after_s is not None:
            wait_s = max(wait_s, trouble.retry_after_s)
            if trouble.retry_after_s > config.retry_after_cap_s:
                raise DataError(
                    f"{config.exchange} asks for a longer pause than is allowed here",
                    where=what,
                    found=f"{trouble.retry_after_s:.0f} s",
                    expected=f"at most {config.retry_after_cap_s:.0f} s",
                    remedy="Run the command again later: what a cache holds is not fetched twice",
                ) from trouble
        if not self._reached and attempt >= min(config.max_retries, FIRST_CONTACT_RETRIES):
            raise unreachable(config, trouble, attempt + 1) from trouble
        if attempt >= config.max_retries:
            raise exhausted(config, what, trouble, attempt + 1) from trouble
        return wait_s


def unreachable(config: LiveConfig, trouble: Hiccup, tries: int) -> DataError:
    """Return the error for a server that never answered."""
    return DataError(
        f"cannot reach {config.exchange}",
        where=config.base_url or f"{config.exchange} over the internet",
        found=f"{trouble.reason} ({tries} tries)",
        remedy="Check the network and the address, or import a file with `agent-gym data import`; "
        "no synthetic data is put in its place",
    )


def exhausted(config: LiveConfig, what: str, trouble: Hiccup, tries: int) -> DataError:
    """Return the error for a request that failed too often."""
    return DataError(
        f"{config.exchange} did not answer the request for {what}",
        where=config.symbol,
        found=f"{trouble.reason} ({tries} tries)",
        remedy="Run the command again later: what a cache holds is not fetched twice",
    )


class Portal:
    """An event loop in a thread of its own, so that plain calls work inside a notebook too."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="agent-gym-live", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine; if the wait is interrupted the coroutine is cancelled."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            # In short waits, because a thread that waits without end may not hear a Ctrl-C.
            while not wait((future,), timeout=LISTEN_S).done:
                pass
            return future.result()
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop the loop and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
