"""A server that binds before it starts, and says when it answers."""

from __future__ import annotations

from collections.abc import Callable
from socket import AF_INET, AF_INET6, create_server, socket

import uvicorn
from typing_extensions import override

from agent_gym.core.errors import ConfigError


def bound(who: str, host: str, port: int) -> socket:
    """Return a socket that listens; ``who`` is named if it cannot."""
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise ConfigError(
            f"{who} cannot listen there",
            where=f"{host}:{port}",
            found=error.strerror,
            remedy="Choose another port with --port; 0 takes any that is free",
        ) from error


class AnnouncedServer(uvicorn.Server):
    """A server that calls ``ready`` with its address once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
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
            self._ready(f"http://{shown}:{sockets[0].getsockname()[1]}")
