"""Benchmark episodes over HTTP: JSON-RPC for bots in any language, behind a token, on loopback.

POST   /a2a/sessions              {"snapshot": "<id>"}      opens an episode
POST   /a2a/sessions/{id}/rpc     a JSON-RPC 2.0 request    one call, or runner.nextTick
GET    /a2a/sessions/{id}         where the episode stands
GET    /a2a/sessions/{id}/score   its figures, once it is over
DELETE /a2a/sessions/{id}         forgets it
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.envs.benchmark.calls import MALFORMED, Reply
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.session import Session
from agent_gym.envs.benchmark.world import BenchmarkWorld
from agent_gym.evaluation.benchmark.metrics import EpisodeAccount, score
from agent_gym.markets.snapshot.content import HASH_LENGTH
from agent_gym.markets.snapshot.public_file import SUFFIX
from agent_gym.markets.snapshot.sealed import load_truth, truth_path

NOT_JSON = -32700
LARGEST_BODY = 64 * 1024
MOST_SESSIONS = 64
SHORTEST_TOKEN = 16
HOSTS = ("127.0.0.1", "localhost", "[::1]")
_ID = re.compile(rf"[0-9a-f]{{{HASH_LENGTH}}}")
Next = Callable[[Request], Awaitable[Response]]


class Wish(BaseModel):
    """Which snapshot to play."""

    model_config = ConfigDict(extra="forbid")
    snapshot: Annotated[str, Field(pattern=_ID.pattern, min_length=HASH_LENGTH, max_length=64)]


class SessionBook:
    """The open episodes of a server, numbered by a counter.

    Args:
        folder: Where the snapshots lie.
        max_calls: Calls that an episode takes.
        most: Episodes at a time.
    """

    def __init__(
        self, folder: Path, *, max_calls: int | None = 10_000, most: int = MOST_SESSIONS
    ) -> None:
        self._folder, self._max_calls, self._most = folder, max_calls, most
        self._open: dict[str, Session] = {}
        self._count, self._lock = 0, Lock()

    def begin(self, snapshot: str) -> tuple[str, Session]:
        """Open an episode on a snapshot of the folder."""
        path = self.path(snapshot)
        if not _ID.fullmatch(snapshot) or not path.is_file():
            raise HTTPException(404, "there is no such snapshot")
        with self._lock:
            if len(self._open) >= self._most:
                raise HTTPException(429, f"{self._most} episodes are open; delete one")
            session = Session(_opened(path), max_calls=self._max_calls)
            self._count += 1
            name = f"session-{self._count}"
            self._open[name] = session
        return name, session

    def find(self, name: str) -> Session:
        """Return an open episode."""
        session = self._open.get(name)
        if session is None:
            raise HTTPException(404, "there is no such session")
        return session

    def end(self, name: str) -> None:
        """Forget an episode."""
        with self._lock:
            self.find(name)
            del self._open[name]

    def path(self, snapshot: str) -> Path:
        """Return the public file of a snapshot."""
        return self._folder / f"{snapshot}{SUFFIX}"

    def score(self, name: str) -> dict[str, Any]:
        """Return the figures of an episode that is over; the seal is opened only then."""
        session = self.find(name)
        if not session.finished:
            raise HTTPException(409, "the episode is not over")
        snapshot = session.world.snapshot
        try:
            truth = load_truth(truth_path(self.path(snapshot.id)), snapshot)
        except DataError as error:
            raise HTTPException(409, f"the sealed truth cannot be used: {error.what}") from error
        return score(EpisodeAccount(session.world.floor, tuple(session.equity)), truth)


def _opened(path: Path) -> BenchmarkWorld:
    try:
        return BenchmarkWorld(BenchmarkWorldConfig(snapshot=path))
    except DataError as error:
        raise HTTPException(409, f"the snapshot cannot be played: {error.what}") from error


def a2a_router(book: SessionBook) -> APIRouter:
    """Return the routes; whoever includes them sees to it that nobody comes in unasked."""
    router = APIRouter(prefix="/a2a", tags=["a2a"])

    @router.post("/sessions", status_code=201)
    def begin(wish: Wish) -> dict[str, Any]:
        """Open an episode on a snapshot."""
        name, session = book.begin(wish.snapshot)
        return {"session": name, **session.state()}

    @router.get("/sessions/{name}")
    def state(name: str) -> dict[str, Any]:
        """Say where an episode stands."""
        return book.find(name).state()

    @router.post("/sessions/{name}/rpc")
    async def call(name: str, request: Request) -> dict[str, Any]:
        """Carry out one JSON-RPC call; what is wrong with it is in the reply."""
        session = book.find(name)
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            return Reply(code=NOT_JSON, error="not JSON").as_json_rpc(None)
        if isinstance(asked, list):
            return Reply(code=MALFORMED, error="one request at a time").as_json_rpc(None)
        return await run_in_threadpool(session.handle, asked)

    @router.get("/sessions/{name}/score")
    def figures(name: str) -> dict[str, Any]:
        """Return the figures of an episode that is over."""
        return book.score(name)

    @router.delete("/sessions/{name}", status_code=204)
    def end(name: str) -> None:
        """Forget an episode."""
        book.end(name)

    return router


def create_a2a_app(book: SessionBook, token: str, hosts: tuple[str, ...] = HOSTS) -> FastAPI:
    """Return the application: every path needs ``Authorization: Bearer <token>``.

    Bind it to 127.0.0.1; requests that name another host are refused.
    """
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            "the token is too short", expected=f"at least {SHORTEST_TOKEN} characters"
        )
    app = FastAPI(title="Agent Gym A2A", docs_url=None, redoc_url=None, openapi_url=None)
    known = sha256(f"Bearer {token}".encode()).digest()

    @app.middleware("http")
    async def guard(request: Request, go_on: Next) -> Response:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(sha256(given.encode()).digest(), known):
            return JSONResponse({"detail": "a token is needed"}, 401)
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            return JSONResponse({"detail": "the body is too large"}, 413)
        if "transfer-encoding" in request.headers:
            return JSONResponse({"detail": "say the length of the body"}, 411)
        return await go_on(request)

    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))
    app.include_router(a2a_router(book))
    return app
