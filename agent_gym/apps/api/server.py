"""A real server around the application: on loopback, unless it is told otherwise."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from socket import AF_INET, AF_INET6, create_server, socket
from threading import enumerate as enumerate_threads
from threading import main_thread

import uvicorn
from typing_extensions import override

from agent_gym.apps.api.app import Mount, create_app
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.core.errors import ConfigError

SHUTDOWN_S = 30
log = logging.getLogger(__name__)
MOST_AT_A_TIME = 100


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
    door = _bound(host, port)
    app = create_app(settings, dashboard)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_AT_A_TIME,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=SHUTDOWN_S,
        lifespan="on",
    )
    server = _Server(config, ready)
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


def _bound(host: str, port: int) -> socket:
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise ConfigError(
            "the service cannot listen there",
            where=f"{host}:{port}",
            found=error.strerror,
            remedy="Choose another port with --port; 0 takes any that is free",
        ) from error


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


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @override
    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and sockets:
            host = self.config.host
            shown = f"[{host}]" if ":" in host else host
            self._ready(f"http://{shown}:{sockets[0].getsockname()[1]}")
