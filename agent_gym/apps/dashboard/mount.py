"""Puts the dashboard into the service: every page at its path, behind the service's guard."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from nicegui import app as pages_app
from nicegui import run, ui
from starlette.exceptions import HTTPException

from agent_gym.apps.api.front_door import DASHBOARD, LOGIN, cookie_of, language_of, wants_page
from agent_gym.apps.api.tokens import Token, TokenFile
from agent_gym.apps.dashboard.files import install_files
from agent_gym.apps.dashboard.frame import error_page
from agent_gym.apps.dashboard.packed import PackedFiles
from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.shell import Screen, show
from agent_gym.apps.dashboard.view import THEMES, Page, Visit, view_of
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.clock import SystemClock

THEME_COOKIE = "agent_gym_theme"
SLOWEST_S = 30.0


def mount(app: FastAPI, tokens: TokenFile) -> None:
    """Add the pages to an application whose guard lets only known visitors through.

    Args:
        app: The service; what it has opened is found in its state once it has started.
        tokens: Asked again while a page is open, so that a revoked token sees nothing new.
    """
    app.add_route(DASHBOARD, _to_home)
    app.add_route(LOGIN, _to_home)  # who asks for it without a session does not get this far
    install_files(pages_app, app)
    pages_app.add_exception_handler(404, _nothing_there(app))
    for page in PAGES:
        ui.page(page.path, response_timeout=SLOWEST_S)(_builder(app, tokens, page))
    # It looks at every object of the process for its server, deprecated ones of others too.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"nicegui\.ui_run_with")
    pages_app.add_middleware(PackedFiles)
    pages_app.config.socket_io_js_transports = ["websocket"]
    ui.run_with(
        app,
        mount_path=DASHBOARD,
        title="Agent Gym",
        favicon=Path(__file__).parent / "assets" / "favicon.svg",
        dark=None,
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=30.0,
    )


async def _to_home(_request: Request) -> RedirectResponse:
    return RedirectResponse(f"{DASHBOARD}/", 307)


def _builder(
    app: FastAPI, tokens: TokenFile, page: Page
) -> Callable[[Request], Awaitable[Response | None]]:
    def knows(visit: Visit) -> Visit | None:
        token = _living(tokens, visit.token_id)
        return None if token is None else replace(visit, role=token.role)

    async def build(request: Request) -> Response | None:
        visit = _visit(app, request, page.path)
        view = await run.io_bound(view_of, page, visit)
        if view is None:  # the server is going down
            return None
        show(page, PAGES, Screen(page, visit, knows), view)
        return None if view.found else ui.context.client.build_response(request, view.status)

    return build


def _nothing_there(app: FastAPI) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers where no page is: a page that says so, or a problem for a program."""

    async def answer(request: Request, error: Exception) -> Response:
        if not wants_page(request.headers):
            return await http_exception_handler(request, cast(HTTPException, error))
        return HTMLResponse(error_page(PAGES, _visit(app, request, "/")), 404)

    return answer


def _visit(app: FastAPI, request: Request, path: str) -> Visit:
    token: Token = request.state.token
    return Visit(
        service=app.state.service,
        query=Query.of(f"{DASHBOARD}{path}".rstrip("/"), request.query_params.multi_items()),
        words=Words(language_of(request.headers)),
        role=token.role,
        token_id=token.id,
        token_name=token.name,
        theme=_theme(request),
    )


def _theme(request: Request) -> str:
    said = cookie_of(request.headers, THEME_COOKIE)
    return said if said in THEMES else "auto"


def _living(tokens: TokenFile, token_id: str) -> Token | None:
    """Return a token that is still known and has not expired."""
    found = next((each for each in tokens.all() if each.id == token_id), None)
    late = found is not None and found.expires_ns is not None
    if found is None or (late and SystemClock().now_ns() >= (found.expires_ns or 0)):
        return None
    return found
