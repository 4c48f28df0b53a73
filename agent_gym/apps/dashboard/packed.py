"""Scripts and styles of the library: read and packed once, sent small, asked for once a version."""

from __future__ import annotations

import gzip
from typing import TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LIBRARY, MADE_ANEW = "/_nicegui/", "/dynamic_resources/"
KEPT = "private, max-age=31536000, immutable"  # their version, or a hash, stands in the address
Packed: TypeAlias = tuple[Message, bytes]  # how the answer starts, and all of its body
PACKED = ("javascript", "css", "json", "svg")
LEAST_BYTES, MOST_FILES, LEVEL = 1_000, 500, 6


class PackedFiles:
    """Stands before an application and packs the files of its library.

    A file that was sent once is sent again without asking for it. Whether the caller may have it is
    decided before: the guard of the service stands outside of this.

    Args:
        app: The pages.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._packed: dict[str, Packed] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        known = LIBRARY in path and MADE_ANEW not in path
        if scope["type"] != "http" or scope["method"] != "GET" or not known:
            await self._app(scope, receive, send)
            return
        small = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        if small and path in self._packed:
            await _sent(send, *self._packed[path])
            return
        answer = _Answer(send, path, self._packed if small else None)
        await self._app(scope, receive, answer)


class _Answer:
    """Sends one answer on, packed if it can be."""

    def __init__(self, send: Send, path: str, packed: dict[str, Packed] | None) -> None:
        self._send, self._path, self._packed = send, path, packed
        self._start: Message | None = None
        self._body: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = MutableHeaders(raw=message["headers"])
            headers["cache-control"] = KEPT
            headers.add_vary_header("accept-encoding")
            if self._packed is not None and _worth_it(headers):
                self._start = message
                return
        if self._start is None:
            await self._send(message)
            return
        self._body.append(message.get("body", b""))
        if not message.get("more_body", False):
            await self._send_packed(self._start)

    async def _send_packed(self, start: Message) -> None:
        assert self._packed is not None
        body, headers = b"".join(self._body), MutableHeaders(raw=start["headers"])
        if len(self._packed) < MOST_FILES:
            body = gzip.compress(body, LEVEL, mtime=0)
            headers["content-encoding"] = "gzip"
            headers["content-length"] = str(len(body))
            self._packed[self._path] = (start, body)
        await _sent(self._send, start, body)


async def _sent(send: Send, start: Message, body: bytes) -> None:
    # Whoever stands outside adds headers of its own: it gets a list of its own.
    await send({**start, "headers": list(start["headers"])})
    await send({"type": "http.response.body", "body": body})


def _worth_it(headers: MutableHeaders) -> bool:
    large = int(headers.get("content-length", "0")) >= LEAST_BYTES
    fits = any(each in headers.get("content-type", "") for each in PACKED)
    return large and fits and "content-encoding" not in headers
