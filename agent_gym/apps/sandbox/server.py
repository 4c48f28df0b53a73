"""A real server around the exchange: on loopback, unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TypeAlias

import uvicorn
from typing_extensions import override

from agent_gym.apps.sandbox.app import create_app
from agent_gym.apps.sandbox.session import Session
from agent_gym.core.errors import ConfigError

Ready: TypeAlias = Callable[[str, Callable[[], None]], None]
LONGEST_MESSAGE = 65_536
SHUTDOWN_S = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sandbox listens.

    Attributes:
        host: Address.
        port: 0 lets the system choose.
        hosts: Names it may be called by.
        exit_at_end: End the server when the session is over and written.
    """

    host: str
    port: int
    hosts: tuple[str, ...]
    exit_at_end: bool = False


def serve(session: Session, place: Place, ready: Ready) -> None:
    """Serve a session until somebody ends it; its results are written then, at the latest.

    Args:
        session: What is served.
        place: Where it listens.
        ready: Called once it answers, with the address and a way to end it.
    """
    host, port = place.host, place.port
    try:
        door = create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise ConfigError(
            "the sandbox cannot listen there",
            where=f"{host}:{port}",
            found=error.strerror,
            remedy="Choose another port with --port; 0 takes any that is free",
        ) from error
    config = uvicorn.Config(
        create_app(session, place.hosts),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=SHUTDOWN_S,
        ws_max_size=LONGEST_MESSAGE,
        lifespan="on",
    )
    server = _Server(config, ready)
    if place.exit_at_end:
        session.on_written = server.end
    try:
        server.run(sockets=[door])
    except (KeyboardInterrupt, SystemExit):
        if not server.should_exit:  # else it is the signal that ended it, raised again afterwards
            raise


class _Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Ready) -> None:
        super().__init__(config)
        self._ready = ready

    def end(self) -> None:
        """Stop serving."""
        self.should_exit = True

    @override
    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and sockets:
            host = self.config.host
            shown = f"[{host}]" if ":" in host else host
            self._ready(f"http://{shown}:{sockets[0].getsockname()[1]}", self.end)
