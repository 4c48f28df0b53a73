"""``door/http``: an agent behind a URL, asked by one POST a question."""

from __future__ import annotations

import os
from hashlib import sha256
from itertools import count
from typing import Any

from agent_gym.agents.doors.post import Address, Poster
from agent_gym.agents.doors.remote import RemoteAgent
from agent_gym.core.registry import register

NAME = "door/http"
_numbers = count()


class HttpConfig(Address):
    """Where the agent is, and how long it may take."""


def new_session() -> str:
    """Return a name for a conversation that no other one of this machine has now."""
    return sha256(f"{os.getpid()}-{next(_numbers)}".encode()).hexdigest()[:16]


class HttpChannel:
    """Posts questions; each bears the ``session`` of its episode, since one server serves many."""

    def __init__(self, config: HttpConfig) -> None:
        self._url, self._poster, self._session = config.url, Poster(config), ""

    def begin(self) -> bool:
        """Begin a new session."""
        self._session = new_session()
        return True

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask one question."""
        return self._poster.post(self._url, message | {"session": self._session})

    def fail(self) -> None:
        """Close the connection."""
        self._poster.close()

    def finish(self) -> None:
        """Close the connection."""
        self._poster.close()


@register("agent", NAME, HttpConfig)
def http(config: HttpConfig) -> RemoteAgent:
    """Ask a server in any language, one POST a question."""
    return RemoteAgent(NAME, HttpChannel(config))
