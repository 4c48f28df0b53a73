"""The one door: whoever comes without a token gets nowhere, whatever the path or the method.

It stands before everything else, also before the search for a route.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_gym.apps.api.front_door import (
    DASHBOARD,
    LOGIN,
    LOGOUT,
    PAGE_HEADERS,
    FrontDoor,
    same_origin,
    wants_page,
)
from agent_gym.apps.api.problems import HEADERS, problem
from agent_gym.apps.api.roles import may, role_for
from agent_gym.apps.api.tokens import Token, TokenFile
from agent_gym.core.errors import AgentGymError

log = logging.getLogger(__name__)
LINGER_BYTES, LINGER_S = 1 << 23, 1.0
"""How much longer somebody is listened to whose body is too long."""
_TO_DOOR = RedirectResponse(DASHBOARD, 303, HEADERS)


class _Refused(Exception):
    """A request goes no further."""

    def __init__(
        self, status: int, what: str, response: ASGIApp | None = None, **more: Any
    ) -> None:
        super().__init__(what)
        self.why = f"{status}, {what}"
        self.response: ASGIApp = response or problem(status, what, **more)


class Guard:
    """Checks host, token, role and size of every request.

    Args:
        app: What is behind the door.
        tokens: Who may come in.
        hosts: Names under which the service may be called; another one is an attack by DNS.
        max_body_bytes: Longer bodies are refused.
        body_timeout_s: Slower ones too.
        door: Where people come in, if there is a dashboard.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: TokenFile,
        hosts: tuple[str, ...],
        max_body_bytes: int,
        body_timeout_s: float,
        door: FrontDoor | None = None,
    ) -> None:
        self._app, self._tokens, self._door = app, tokens, door
        self._hosts = frozenset(host.lower() for host in hosts)
        self._most, self._patience_s = max_body_bytes, body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._socket(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            door = self._door if self._behind_door(scope["path"]) else None
            if door is not None and (scope["method"], scope["path"]) == ("POST", LOGIN):
                await self._login(door, headers, scope, receive, send)
                return
            if door is not None and self._visits_login(door, scope, headers):
                await door.greets(headers)(scope, receive, send)
                return
            token = self._admit(scope) if door is None else self._welcome(door, scope, headers)
            body = await self._body(headers, receive)
        except _Refused as refused:
            log.warning("refused: %s %.200r: %s", scope["method"], scope["path"], refused.why)
            await refused.response(scope, receive, send)
            return
        if door is not None and (scope["method"], scope["path"]) == ("POST", LOGOUT):
            await door.logout(headers)(scope, receive, send)
            return
        scope.setdefault("state", {})["token"] = token
        usual = HEADERS if door is None else PAGE_HEADERS
        answering = self._answering(scope, token, send, usual)
        await self._app(scope, _replayed(body, receive), answering)

    def _behind_door(self, path: str) -> bool:
        return self._door is not None and self._door.owns(path)

    def _visits_login(self, door: FrontDoor, scope: Scope, headers: Headers) -> bool:
        """Return whether somebody opens the login without having shown anything; that is no guess.

        Whoever shows a token in a header is checked, counted and refused like everywhere.
        """
        asked = (scope["method"], scope["path"]) == ("GET", LOGIN) and wants_page(headers)
        shown = "authorization" in headers
        return asked and not shown and self._known(door, headers, _caller(scope)) is None

    async def _login(
        self, door: FrontDoor, headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Let somebody in who shows a token."""
        if not same_origin(headers):
            raise _Refused(403, "this form is not from here", where="header Origin")
        token, answer = door.login(await self._body(headers, receive), headers)
        if token is None:
            raise _Refused(401, "this token is not known", answer)
        log.info("login by token %s (%s)", token.id, token.role)
        await answer(scope, receive, send)

    def _welcome(self, door: FrontDoor, scope: Scope, headers: Headers) -> Token:
        """Return whose request this is; who comes without a session is asked for a token."""
        method, path = scope["method"], scope["path"]
        token = self._known(door, headers, _caller(scope))
        if token is None:
            asked = None
            if method == "GET" and wants_page(headers):
                asked = door.asks(path, scope["query_string"], headers, wrong=False)
            raise _Refused(
                401,
                "a session is needed",
                asked,
                where=f"{method} {path}",
                remedy=f"Open {LOGIN} in a browser and show a token",
            )
        leaves = (method, path) == ("POST", LOGOUT) and same_origin(headers)
        if method not in ("GET", "HEAD") and not leaves:
            raise _Refused(405, "pages are only read", where=f"{method} {path}", expected="GET")
        return token

    def _known(self, door: FrontDoor, headers: Headers, who: str) -> Token | None:
        try:
            given = headers.get("authorization", "")
            return door.token(headers) or self._tokens.check(given, who)
        except AgentGymError as error:
            log.error("%s", error)
            return None

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a page of ours talk to us while its session lasts; everybody else is turned away."""
        headers, door = Headers(scope=scope), self._door
        known = (
            door is not None
            and _host(headers.getlist("host")) in self._hosts
            and door.owns(scope["path"])
            and same_origin(headers)
            and self._known(door, headers, _caller(scope)) is not None
        )
        if not known:
            log.warning("refused: web socket %.200r", scope["path"])
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        if _host(headers.getlist("host")) not in self._hosts:
            raise _Refused(400, "the service is not called like this", where="header Host")

    def _admit(self, scope: Scope) -> Token:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        if self._door is not None and (method, path) == ("GET", "/") and wants_page(headers):
            raise _Refused(303, "people go through the front door", _TO_DOOR)
        try:
            token = self._tokens.check(headers.get("authorization", ""), _caller(scope))
        except AgentGymError as error:
            log.error("%s", error)
            token = None
        if token is None:
            raise _Refused(
                401,
                "a token is needed",
                headers={"www-authenticate": "Bearer"},
                where=f"{method} {path}",
                expected="Authorization: Bearer agym_...",
                remedy="`agent-gym tokens add` makes one",
            )
        needed = role_for(method, path)
        if not may(token.role, needed):
            raise _Refused(
                403,
                "the role of this token is too small",
                where=f"{method} {path}",
                found=token.role,
                expected=needed,
                remedy="Use a token with a larger role",
            )
        return token

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        """Take in the whole body, as far as it is short and comes quickly."""
        said = headers.get("content-length", "0")
        if not (said.isascii() and said.isdigit()) or int(said[:20]) > self._most:
            if "expect" not in headers:  # who asks first has sent nothing yet
                await _see_off(receive)
            raise self._too_long(said)
        found, more = bytearray(), True
        try:
            async with asyncio.timeout(self._patience_s):
                while more and len(found) <= self._most:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Refused(400, "the caller has gone")
                    found += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _Refused(
                408, "the body came too slowly", expected=f"in {self._patience_s:g} s"
            ) from None
        if len(found) <= self._most:
            return bytes(found)
        if more:
            await _see_off(receive)
        raise self._too_long(f"more than {self._most}")

    def _too_long(self, found: str) -> _Refused:
        return _Refused(
            413,
            "the body is too long",
            headers={"connection": "close"},
            found=f"{found[:20]} bytes",
            expected=f"at most {self._most:,}",
        )

    def _answering(self, scope: Scope, token: Token, send: Send, usual: dict[str, str]) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=_writable(message))
                for name, value in usual.items():
                    headers.setdefault(name, value)
                if scope["method"] != "GET":
                    log.info(
                        "%s %r by token %s (%s): %d",
                        scope["method"],
                        scope["path"],
                        token.id,
                        token.role,
                        message["status"],
                    )
            await send(message)

        return answer


async def _see_off(receive: Receive) -> None:
    """Take in some of what a caller goes on sending; hung up on, it would not read the answer."""
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while left > 0:
                message = await receive()
                if not message.get("more_body", False):
                    return
                left -= len(message["body"])


def _caller(scope: Scope) -> str:
    """Return the address that a request comes from; the proxy's, if there is one before us."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _host(given: list[str]) -> str | None:
    """Return the name without the port; None if there is not exactly one.

    Example:
        >>> _host(["LocalHost:8000"]), _host(["[::1]:80"]), _host(["a", "b"])
        ('localhost', '[::1]', None)
    """
    if len(given) != 1:
        return None
    name = given[0].lower()
    host, _, port = name.rpartition(":")
    return host if host and port.isdigit() and not host.endswith(":") else name


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return the body once, and after it what comes from outside: that the caller has gone."""
    waiting = [body]

    async def give() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return give


def _writable(message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    message.setdefault("headers", [])
    return message
