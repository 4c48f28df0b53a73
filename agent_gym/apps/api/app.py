"""create_app: the service as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeAlias

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from typing_extensions import override

from agent_gym import __version__
from agent_gym.apps.api import problems
from agent_gym.apps.api.a2a import SessionBook, a2a_router
from agent_gym.apps.api.agent_card import card_router
from agent_gym.apps.api.front_door import FrontDoor
from agent_gym.apps.api.guard import Guard
from agent_gym.apps.api.roles import role_for
from agent_gym.apps.api.routes import agents, cron, models, records, state
from agent_gym.apps.api.schedules import scheduled
from agent_gym.apps.api.service import opened
from agent_gym.apps.api.sessions import Sessions, session_secret
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.apps.visit_desk import VisitDesk
from agent_gym.core.errors import AgentGymError
from agent_gym.evaluation.visit import VisitBook
from agent_gym.pipeline.harness.workspace import LoopFolder

TITLE = "Agent Gym"
Mount: TypeAlias = Callable[[FastAPI, TokenFile], None]


def create_app(settings: ServiceSettings | None = None, dashboard: Mount | None = None) -> FastAPI:
    """Return the service; nothing is opened before it starts.

    Every path and method needs a bearer token of the file ``tokens.json`` in the loop's folder; the
    pages of the dashboard need a session that began with one.

    Args:
        settings: Where the loop lies and what runs by itself; default: what the environment says.
        dashboard: Puts pages for people behind ``/dashboard``; without it there are none.
    """
    told = settings or ServiceSettings.from_environment()
    folder = LoopFolder(told.folder.absolute())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            try:
                service = await asyncio.to_thread(stack.enter_context, opened(told))
            except AgentGymError as error:
                app.state.failure = error  # for whoever started us; it is raised as well
                raise
            app.state.service = service
            async with scheduled(service):
                yield
            await asyncio.to_thread(stack.close)

    app = _App(
        title=TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.failure = None
    for room in (state, cron, models, agents, records):
        app.include_router(room.router)
    app.include_router(a2a_router(SessionBook(folder.snapshots("train"))))
    app.include_router(card_router(VisitDesk(VisitBook())))
    problems.install(app)
    tokens = TokenFile(folder.path / FILE)
    door = None
    if dashboard is not None:
        door = FrontDoor(Sessions(tokens, session_secret(folder.path)))
        dashboard(app, tokens)
    app.add_middleware(
        Guard,
        tokens=tokens,
        door=door,
        hosts=told.hosts,
        max_body_bytes=told.max_body_bytes,
        body_timeout_s=told.body_timeout_s,
    )
    return app


class _App(FastAPI):
    """An application whose description says which role each request needs."""

    @override
    def openapi(self) -> dict[str, Any]:
        """Return the description."""
        if self.openapi_schema is None:
            made = get_openapi(title=TITLE, version=__version__, routes=self.routes)
            schemes = made.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes["token"] = {"type": "http", "scheme": "bearer"}
            made["security"] = [{"token": []}]
            for path, methods in made["paths"].items():
                for method, operation in methods.items():
                    example = path.replace("{", "").replace("}", "")
                    operation["x-role"] = role_for(method.upper(), example)
            self.openapi_schema = made
        return self.openapi_schema
