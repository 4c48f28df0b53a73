"""What went wrong, as problem JSON (RFC 9457): what, where, found, expected, remedy; no traces."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from agent_gym.core.errors import AgentGymError, ConfigError
from agent_gym.rollouts.database import DatabaseDown

MEDIA = "application/problem+json"
LONGEST = 200
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
log = logging.getLogger(__name__)


class NotThere(ConfigError):
    """What a path names does not exist."""


def problem(
    status: int, what: str, *, headers: dict[str, str] | None = None, **fields: object
) -> JSONResponse:
    """Return a problem as a response."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "what": what,
    }
    for name in ("where", "found", "expected", "remedy"):
        value = fields.get(name)
        content[name] = None if value is None else str(value)[:LONGEST]
    return JSONResponse(content, status, HEADERS | (headers or {}), MEDIA)


def status_of(error: AgentGymError) -> int:
    """Return the status that belongs to an error, by whose fault it is."""
    if isinstance(error, NotThere):
        return 404
    if isinstance(error, DatabaseDown):
        return 503
    return 400 if isinstance(error, ConfigError) else 409


def install(app: FastAPI) -> None:
    """Let every error of an application become a problem."""
    app.add_exception_handler(AgentGymError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unforeseen)


async def _known(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AgentGymError)
    return problem(
        status_of(error),
        error.what,
        where=error.where,
        found=error.found,
        expected=error.expected,
        remedy=error.remedy,
    )


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return problem(
        422,
        "the request does not fit",
        where=".".join(str(part) for part in first["loc"]),
        found=repr(first.get("input")),
        expected=first["msg"],
        remedy="/openapi.json describes every request",
    )


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(
        error.status_code,
        str(error.detail),
        headers=dict(error.headers or {}),
        where=f"{request.method} {request.url.path}",
    )


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    mark = secrets.token_hex(4)
    log.error(
        "unforeseen error %s in %s %r", mark, request.method, request.url.path, exc_info=error
    )
    return problem(
        500,
        "an unforeseen error",
        where=f"{request.method} {request.url.path}",
        remedy=f"The log of the service says more about {mark}",
    )
