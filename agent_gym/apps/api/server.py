"""A real server around the application: on loopback, unless it is told otherwise."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, create_server, socket
from threading import enumerate as enumerate_threads
from threading import main_thread

import uvicorn
from typing_extensions import override

from agent_gym.apps.api.app import create_app
from agent_gym.apps.api.settings import LOOPBACK, ServiceSettings
from agent_gym.core.errors import ConfigError

SHUTDOWN_S = 30
log = logging.getLogger(__name__)
MOST_AT_A_TIME = 100


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str, allowed: tuple[str, ...], *, remote: bool) -> tuple[str, ...]:
    """Return the names under which the service may be called.

    Raises:
        ConfigError: Others could reach it, and nobody has said that they may.
    """
    if not is_loopback(host) and not remote:
        raise ConfigError(
            "others could reach the service there",
            where="--host",
            found=host,
            expected="127.0.0.1",
            remedy="Say --remote if they may, and put a proxy with TLS before it",
        )
    own = (f"[{host}]" if ":" in host else host,)
    return tuple(dict.fromkeys((*LOOPBACK, *own, *allowed)))


def serve(settings: ServiceSettings, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until somebody ends it; what is under way is finished or taken up at the next start.

    Args:
        settings: What the service is told.
        host: Address.
        port: 0 lets the system choose.
        ready: Called with the address once it answers.
    """
    door = _bound(host, port)
    app = create_app(settings)
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
