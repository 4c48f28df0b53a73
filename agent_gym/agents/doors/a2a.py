"""``door/a2a``: an agent that offers itself by an agent card and speaks A2A 1.0 over JSON-RPC.

The questions are those of all doors, each as the one data part of a message; the answer is a data
part of the message (or of the finished task) that comes back.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from agent_gym.agents.doors.http import new_session
from agent_gym.agents.doors.post import Address, Poster
from agent_gym.agents.doors.remote import RemoteAgent
from agent_gym.agents.doors.words import LONGEST_SHOWN, DoorError
from agent_gym.core.registry import register

NAME = "door/a2a"
CARD = "/.well-known/agent-card.json"
VERSION = "1.0"
BINDING = "JSONRPC"
SEND = "SendMessage"


class A2AConfig(Address):
    """Where the agent card is, and how long an answer may take."""


class A2AChannel:
    """Reads the card once, then sends messages of one context each episode."""

    def __init__(self, config: A2AConfig) -> None:
        self._base, self._poster = config.url, Poster(config)
        self._url: str | None = None
        self._context = ""

    def begin(self) -> bool:
        """Find out where it listens, and begin a new context."""
        if self._url is None:
            url = interface_of(self._poster.get(urljoin(self._base, CARD)))
            self._poster.check_host(url)  # a card must not send us elsewhere
            self._url = url
        self._context = new_session()
        return True

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send one message and return the data that come back."""
        assert self._url is not None  # begin() came first
        sent = {
            "messageId": f"{self._context}-{message['id']}",
            "contextId": self._context,
            "role": "ROLE_USER",
            "parts": [{"data": message}],
        }
        request = {"jsonrpc": "2.0", "id": message["id"], "method": SEND}
        request["params"] = {"message": sent}
        return data_of(self._poster.post(self._url, request, {"A2A-Version": VERSION}))

    def fail(self) -> None:
        """Close the connection."""
        self._poster.close()

    def finish(self) -> None:
        """Close the connection."""
        self._poster.close()


def interface_of(card: dict[str, Any]) -> str:
    """Return the URL that a card names for JSON-RPC of our version."""
    offered = card.get("supportedInterfaces")
    for each in offered if isinstance(offered, list) else []:
        if (
            isinstance(each, dict)
            and each.get("protocolBinding") == BINDING
            and str(each.get("protocolVersion", "")).startswith(VERSION)
            and isinstance(each.get("url"), str)
        ):
            return str(each["url"])
    raise DoorError(
        "the agent card offers no way that is spoken here",
        where=CARD,
        found=repr(offered)[:LONGEST_SHOWN],
        expected=f"supportedInterfaces with {BINDING} {VERSION}",
    )


def data_of(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the first data part of a reply: of its message, or of its task."""
    if reply.get("error") is not None:
        raise DoorError("the agent gave up", found=repr(reply["error"])[:LONGEST_SHOWN])
    result = _object(reply.get("result"))
    task = _object(result.get("task"))
    status = _object(task.get("status"))
    for holder in (result.get("message"), *_list(task.get("artifacts")), status.get("message")):
        for part in _list(_object(holder).get("parts")):
            if data := _object(_object(part).get("data")):
                return data
    raise DoorError(
        "the reply has no data part", found=repr(result)[:LONGEST_SHOWN], expected="parts with data"
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


@register("agent", NAME, A2AConfig)
def a2a(config: A2AConfig) -> RemoteAgent:
    """Ask an agent that has an agent card, in A2A messages."""
    return RemoteAgent(NAME, A2AChannel(config))
