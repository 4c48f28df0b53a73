"""A real server around the application: on loopback, unless it is told otherwise."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from threading import enumerate as enumerate_threads
from threading import main_thread

import uvicorn
from fastapi import FastAPI

from agent_gym.apps.api.app import Mount, create_app
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.apps.listening import AnnouncedServer, bound

SHUTDOWN_S = 30
log = logging.getLogger(__name__)
MOST_AT_A_TIME, LONGEST_HEAD = 100, 16_384


def serve(
    settings: ServiceSettings,
    host: str,
    port: int,
    ready: Callable[[str], None],
    dashboard: Mount | None = None,
) -> None:
    """Serve until somebody ends it; what is under way is finished or taken up at the next start.

    Args:
        settings: What the service is told.
        host: Address.
        port: 0 lets the system choose.
        ready: Called with the address once it answers.
        dashboard: Adds the pages for people.
    """
    door = bound("the service", host, port)
    app = create_app(settings, dashboard)
    server = AnnouncedServer(configured(app, host, port), ready)
    # A start that fails for a reason we know is told below, without a trace.
    logging.getLogger("uvicorn.error").addFilter(lambda _: app.state.failure is None)
    try:
        server.run(sockets=[door])
    except (KeyboardInterrupt, SystemExit):
        if app.state.failure is not None:
            raise app.state.failure from None
        if not server.should_exit:  # else it is the signal that ended it, raised again afterwards
            raise
    _leave_unfinished()


def configured(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """Return how a server is set up: headers of 16 KiB at most, 100 requests at a time."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",  # the other parser takes headers of any length
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_A_TIME,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_S,
        lifespan="on",
    )


def _leave_unfinished() -> None:
    """End at once if a training still runs in a thread of ours.

    It must not go on beside the next service, which takes it up; every step of it can be cut off.
    """
    left = [each for each in enumerate_threads() if not each.daemon and each is not main_thread()]
    if left:
        log.info("what is under way goes on at the next start")
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
