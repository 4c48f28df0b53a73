"""Websockets: streams of the market and of accounts, and the websocket API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from agent_gym.apps.sandbox.access import signed_words
from agent_gym.apps.sandbox.desk import Desk, Endpoint
from agent_gym.apps.sandbox.errors import ExchangeError
from agent_gym.apps.sandbox.feed import MOST_LISTENERS, MOST_STREAMS, Feed, Listener

SUBSCRIBE = "userDataStream.subscribe.signature"
UNSUBSCRIBE = "userDataStream.unsubscribe"
POLICY, TOO_MANY = 1008, 1013


async def serve_socket(socket: WebSocket, desk: Desk) -> None:
    """Serve one connection until it ends.

    The address says what it is: ``/ws`` and ``/ws/NAME`` for streams, ``/stream?streams=A/B`` for
    streams with their names, ``/ws-api/v3`` for requests. Folders before that are left aside.
    """
    feed, parts = desk.session.feed, [part for part in socket.url.path.split("/") if part]
    known = [place for place in ("ws", "stream", "ws-api") if place in parts]
    if not known or len(feed.listeners) >= MOST_LISTENERS:
        await socket.close(POLICY if not known else TOO_MANY)
        return
    place = known[0]
    listener = Listener(combined=place == "stream")
    names = parts[parts.index(place) + 1 :] if place == "ws" else []
    if place == "stream":
        names = socket.query_params.get("streams", "").split("/")
    try:
        _listen(feed, listener, [name for name in names if name and not name.isdigit()])
    except ExchangeError:
        await socket.close(POLICY)
        return
    await socket.accept()
    handler = _Requests(desk, listener) if place == "ws-api" else _Subscriptions(feed, listener)
    feed.listeners.add(listener)
    sending = asyncio.create_task(_send(socket, listener))
    try:
        while True:
            listener.put(handler.answer(await socket.receive_text()))
    except (WebSocketDisconnect, RuntimeError, KeyError):
        return
    finally:
        feed.listeners.discard(listener)
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send(socket: WebSocket, listener: Listener) -> None:
    while not listener.lost:
        event = await listener.waiting.get()
        try:
            await socket.send_text(json.dumps(event, allow_nan=False))
        except (WebSocketDisconnect, RuntimeError):
            return
    with suppress(RuntimeError):
        await socket.close(POLICY)


def _listen(feed: Feed, listener: Listener, names: list[str]) -> None:
    """Add streams by name; a listen key is the name of the events of an account."""
    accounts = {name: feed.owner(name) for name in names}
    streams = {name for name, owner in accounts.items() if owner is None}
    for name in streams:
        feed.events.check(name)
    if len(listener.streams | streams) > MOST_STREAMS:
        raise ExchangeError(-1130, "Too many streams.")
    listener.streams |= streams
    listener.accounts |= {owner: None for owner in accounts.values() if owner is not None}


class _Subscriptions:
    """Answers SUBSCRIBE, UNSUBSCRIBE and LIST_SUBSCRIPTIONS."""

    def __init__(self, feed: Feed, listener: Listener) -> None:
        self._feed, self._listener = feed, listener

    def answer(self, message: str) -> dict[str, Any]:
        """Answer one message."""
        asked = _read(message)
        number, method, given = asked.get("id"), asked.get("method"), asked.get("params", [])
        names = [name for name in given if isinstance(name, str)] if isinstance(given, list) else []
        try:
            if method == "SUBSCRIBE":
                _listen(self._feed, self._listener, names)
            elif method == "UNSUBSCRIBE":
                for name in names:
                    self._listener.streams.discard(name)
                    self._listener.accounts.pop(self._feed.owner(name) or "", None)
            elif method == "LIST_SUBSCRIPTIONS":
                return {"result": sorted(self._listener.streams), "id": number}
            else:
                raise ExchangeError(2, "Invalid request: unknown method")
        except ExchangeError as error:
            return {"error": error.as_dict(), "id": number}
        return {"result": None, "id": number}


class _Requests:
    """Answers the requests of the websocket API, by the same table as those over HTTP."""

    def __init__(self, desk: Desk, listener: Listener) -> None:
        self._desk, self._listener = desk, listener
        self._count = 0

    def answer(self, message: str) -> dict[str, Any]:
        """Answer one message."""
        asked = _read(message)
        number, method = asked.get("id"), asked.get("method")
        session, headers = self._desk.session, dict[str, str]()
        try:
            session.catch_up()
            given = _words(asked.get("params") or {})
            if method == SUBSCRIBE:
                endpoint = Endpoint(lambda account, _: self._subscribe(account), weight=2)
            elif method == UNSUBSCRIBE:
                endpoint = Endpoint(lambda _account, _: self._unsubscribe(), "none", 2)
            elif method in self._desk.methods:
                endpoint = self._desk.methods[method]
            else:
                raise ExchangeError(-1000, "Invalid request: unknown method")
            session.limits.weigh("websocket", endpoint.weight)
            key = given.get("apiKey")
            found = self._desk.ask(endpoint, given, signed_words(given), key, headers)
        except ExchangeError as error:
            return {"id": number, "status": error.status, "error": error.as_dict()}
        return {"id": number, "status": 200, "result": found, "rateLimits": []}

    def _subscribe(self, account: str) -> dict[str, Any]:
        if account not in self._listener.accounts:
            self._listener.accounts[account] = self._count
            self._count += 1
        return {"subscriptionId": self._listener.accounts[account]}

    def _unsubscribe(self) -> dict[str, Any]:
        self._listener.accounts.clear()
        return {}


def _read(message: str) -> dict[str, Any]:
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _words(given: Any) -> dict[str, str]:
    """Return parameters as a signature takes them: as they are written in JSON, without quotes."""
    if not isinstance(given, Mapping):
        return {}
    return {
        str(name): value if isinstance(value, str) else json.dumps(value)
        for name, value in given.items()
        if value is not None
    }
