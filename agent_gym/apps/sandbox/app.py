"""create_app: the sandbox exchange as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agent_gym.apps.sandbox.desk import Asked, Desk, Reply
from agent_gym.apps.sandbox.errors import TOO_LONG
from agent_gym.apps.sandbox.session import Session
from agent_gym.apps.sandbox.sockets import serve_socket

METHODS = ["GET", "POST", "PUT", "DELETE"]
LONGEST_BODY, PATIENCE_S = 65_536, 10.0
LONGEST_WAIT_S, GLANCE_S = 0.05, 0.002
STEP, CLOCK = "/sandbox/step", "/sandbox/clock"
JSON = "application/json"
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
log = logging.getLogger(__name__)


def create_app(session: Session, hosts: tuple[str, ...]) -> Starlette:
    """Return the exchange; its clock starts when the application does.

    Args:
        session: What is served.
        hosts: Names it may be called by; another one is an attack by DNS.
    """
    desk = Desk(session)

    async def answer(request: Request) -> Response:
        try:
            async with asyncio.timeout(PATIENCE_S):
                body = await _body(request)
        except (TimeoutError, ClientDisconnect):
            return Response(status_code=408)
        if body is None:
            return _plain(TOO_LONG.status, TOO_LONG.as_dict())
        asked = Asked(
            request.method,
            request.url.path,
            request.url.query.encode(),
            body,
            request.headers.get("x-mbx-apikey"),
            request.client.host if request.client else "unknown",
        )
        reply = desk.handle(asked)
        if asked.path == STEP and reply.status == 200:
            reply = await _for_others(desk, asked, reply)
        return Response(reply.body, reply.status, HEADERS | reply.headers, JSON)

    async def listen(socket: WebSocket) -> None:
        await serve_socket(socket, desk)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        session.start()
        running = asyncio.create_task(_run(session))
        try:
            yield
        finally:
            session.finish()
            await running

    app = Starlette(
        routes=[
            WebSocketRoute("/{place:path}", listen),
            Route("/{place:path}", answer, methods=METHODS),
        ],
        lifespan=lifespan,
    )
    app.add_middleware(_HostDoor, hosts=hosts)
    return app


async def _for_others(desk: Desk, asked: Asked, reply: Reply) -> Reply:
    """Wait until the others have asked for the bars, too, and tell where all stand then."""
    session = desk.session
    account = session.access.account_of(asked.api_key).name
    if not (session.together and session.waits(account)):
        return reply
    while session.waits(account):
        await asyncio.sleep(GLANCE_S)
    return desk.handle(Asked("GET", CLOCK, client=asked.client))


async def _run(session: Session) -> None:
    """Let bars pass as their time comes, whether or not anybody asks."""
    while not session.over:
        wait_s = session.wait_s()
        await asyncio.sleep(LONGEST_WAIT_S if wait_s is None else min(wait_s, LONGEST_WAIT_S))
        session.catch_up(most=100)
    try:
        await asyncio.to_thread(session.write_results)
    except Exception:  # the border of a session: it becomes a line of the log
        log.exception("the results of the session could not be written")
        session.result = {}
    session.on_written()


async def _body(request: Request) -> bytes | None:
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > LONGEST_BODY:
            return None
    return bytes(found)


class _HostDoor:
    """Turns away whoever calls by another name, and pages of other hosts."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)
        self._plain = frozenset(host.strip("[]") for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._is_known(scope):
            log.warning("refused: %.200r by another name or from another page", scope["path"])
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await Response(status_code=421)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if any(urlsplit(origin).hostname not in self._plain for origin in origins):
            return False
        named = [
            value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"
        ]
        if len(named) != 1:
            return False
        host, _, port = named[0].rpartition(":")
        return (host if host and port.isdigit() else named[0]) in self._hosts


def _plain(status: int, content: dict[str, Any]) -> Response:
    return Response(json.dumps(content), status, HEADERS, JSON)
