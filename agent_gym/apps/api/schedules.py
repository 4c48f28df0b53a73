"""What the service does by itself, every so often; off unless it was told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from agent_gym.apps.api.service import Service
from agent_gym.rollouts.play import attempt

log = logging.getLogger(__name__)


@asynccontextmanager
async def scheduled(service: Service) -> AsyncIterator[None]:
    """Run what is due until the block ends; a round that is under way is finished."""
    stop = asyncio.Event()
    settings = service.settings
    tasks = [
        asyncio.create_task(_repeat(name, every_s, work, stop))
        for name, every_s, work in (
            ("agent tick", settings.tick_every_s, lambda: _tick(service)),
            ("training check", settings.check_every_s, lambda: _check(service)),
            ("training", settings.train_every_s, lambda: _train(service)),
        )
        if every_s is not None
    ]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _repeat(name: str, every_s: float, work: Callable[[], None], stop: asyncio.Event) -> None:
    """Do some work in a thread, wait, and do it again; a failure is logged and costs one round."""
    while not stop.is_set():
        status, failure = await asyncio.to_thread(attempt, work)
        if status != "ok":
            log.error("%s failed: %s", name, failure)
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every_s)


def _tick(service: Service) -> None:
    told = service.tick()
    log.info(
        "agent tick: %d played, %d lost, %d failed",
        told.count("played"),
        told.count("lost"),
        told.count("failed"),
    )


def _check(service: Service) -> None:
    found = service.pipeline.check_training_readiness()
    log.info("training check: %s", "ready" if found.ready else found.reason)


def _train(service: Service) -> None:
    service.train()  # it says itself why it was skipped
