"""A real server around the exchange: on loopback, unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import uvicorn

from agent_gym.apps.listening import AnnouncedServer, bound
from agent_gym.apps.sandbox.app import create_app
from agent_gym.apps.sandbox.session import Session

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
    door = bound("the sandbox", host, port)
    config = uvicorn.Config(
        create_app(session, place.hosts),
        host=host,
        port=port,
        http="h11",  # the other parser takes headers of any length
        h11_max_incomplete_event_size=LONGEST_MESSAGE,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=SHUTDOWN_S,
        ws_max_size=LONGEST_MESSAGE,
        lifespan="on",
    )
    server = AnnouncedServer(config, lambda address: ready(address, server.end))
    if place.exit_at_end:
        session.on_written = server.end
    try:
        server.run(sockets=[door])
    except (KeyboardInterrupt, SystemExit):
        if not server.should_exit:  # else it is the signal that ended it, raised again afterwards
            raise
