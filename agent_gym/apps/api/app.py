"""create_app: the service as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from typing_extensions import override

from agent_gym import __version__
from agent_gym.apps.api import problems
from agent_gym.apps.api.a2a import SessionBook, a2a_router
from agent_gym.apps.api.guard import Guard
from agent_gym.apps.api.roles import role_for
from agent_gym.apps.api.routes import agents, cron, models, records, state
from agent_gym.apps.api.schedules import scheduled
from agent_gym.apps.api.service import opened
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.harness.workspace import LoopFolder

TITLE = "Agent Gym"


def create_app(settings: ServiceSettings | None = None) -> FastAPI:
    """Return the service; nothing is opened before it starts.

    Every path and method needs a bearer token of the file ``tokens.json`` in the loop's folder.

    Args:
        settings: Where the loop lies and what runs by itself; default: what the environment says.
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
    problems.install(app)
    app.add_middleware(
        Guard,
        tokens=TokenFile(folder.path / FILE),
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
