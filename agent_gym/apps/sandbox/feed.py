"""Who listens, and what is on its way to them."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any

from agent_gym.apps.sandbox.errors import UNKNOWN_LISTEN_KEY
from agent_gym.apps.sandbox.events import MarketEvents

MOST_WAITING = 10_000
MOST_STREAMS = 1_024
MOST_LISTENERS = 200


@dataclass(eq=False)
class Listener:
    """One connection: what it wants, and what waits for it.

    Attributes:
        combined: Wrap each event with the name of its stream.
        streams: Names of the streams of the market.
        accounts: Accounts whose events it gets, and the number of that subscription; None for
            events that are sent as they are.
    """

    combined: bool = False
    streams: set[str] = field(default_factory=set)
    accounts: dict[str, int | None] = field(default_factory=dict)
    waiting: asyncio.Queue[Any] = field(default_factory=lambda: asyncio.Queue(maxsize=MOST_WAITING))
    lost: bool = False

    def put(self, event: Any) -> None:
        """Send an event; a listener that does not keep up is given up."""
        try:
            self.waiting.put_nowait(event)
        except asyncio.QueueFull:
            self.lost = True


class Feed:
    """Takes events to their listeners."""

    def __init__(self, events: MarketEvents) -> None:
        self.events = events
        self.listeners: set[Listener] = set()
        self._keys: dict[str, str] = {}

    def market_moved(self) -> None:
        """Send what a bar brought, each stream to whom it concerns."""
        wanted = {name for one in self.listeners for name in one.streams}
        for name in sorted(wanted):
            for event in self.events.of(name):
                for one in self.listeners:
                    if name in one.streams:
                        one.put({"stream": name, "data": event} if one.combined else event)

    def tell(self, account: str, event: dict[str, Any]) -> None:
        """Send an account its event."""
        for one in self.listeners:
            if account not in one.accounts:
                continue
            number = one.accounts[account]
            if number is not None:
                one.put({"subscriptionId": number, "event": event})
            elif one.combined:
                one.put({"stream": self.listen_key(account), "data": event})
            else:
                one.put(event)

    # Listen keys: a name for the events of an account, as long as nobody gives it back.

    def listen_key(self, account: str) -> str:
        """Return the listen key of an account; there is one at a time."""
        for key, owner in self._keys.items():
            if owner == account:
                return key
        key = secrets.token_hex(32)
        self._keys[key] = account
        return key

    def owner(self, listen_key: str) -> str | None:
        """Return whose events a listen key stands for."""
        return self._keys.get(listen_key)

    def keep(self, account: str, listen_key: str) -> None:
        """Let a listen key live on; here they do so anyway."""
        if self._keys.get(listen_key) != account:
            raise UNKNOWN_LISTEN_KEY

    def close(self, account: str, listen_key: str) -> None:
        """Give a listen key back."""
        self.keep(account, listen_key)
        del self._keys[listen_key]
