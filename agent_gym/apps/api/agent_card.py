"""The gym as an A2A 1.0 agent: an agent card, and one JSON-RPC endpoint for messages.

A message has one data part: ``{"call": "begin_session", "arguments": {...}}``. The calls are those
of the MCP server; the answer is a message with one data part.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from agent_gym import __version__
from agent_gym.apps.visit_desk import VisitDesk

CARD = "/.well-known/agent-card.json"
VERSION = "1.0"
SEND = "SendMessage"
NOT_JSON, NO_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
JSON = "application/json"


class Part(BaseModel):
    """A part of a message; only data are read."""

    model_config = ConfigDict(extra="ignore")
    data: dict[str, Any] | None = None


class Message(BaseModel):
    """What a client says."""

    model_config = ConfigDict(extra="ignore")
    messageId: str = Field(min_length=1, max_length=256)
    contextId: str | None = Field(default=None, max_length=256)
    role: str
    parts: list[Part] = Field(min_length=1, max_length=16)


def card(base_url: str, desk: VisitDesk) -> dict[str, Any]:
    """Return the agent card; a call is a skill."""
    return {
        "name": "Agent Gym",
        "description": "The offline proving ground for trading agents: trade a market bar by bar.",
        "version": __version__,
        "supportedInterfaces": [
            {"url": f"{base_url}a2a", "protocolBinding": "JSONRPC", "protocolVersion": VERSION}
        ],
        "capabilities": {"streaming": False, "pushNotifications": False},
        "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"token": {"list": []}}}],
        "defaultInputModes": [JSON],
        "defaultOutputModes": [JSON],
        "skills": [
            {"id": name, "name": name, "description": call.about, "tags": ["trading"]}
            for name, call in desk.calls.items()
        ],
    }


def answer(asked: Any, desk: VisitDesk) -> dict[str, Any]:
    """Return the JSON-RPC reply to a request."""
    if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0":
        return _error(None, NO_REQUEST, "not a JSON-RPC 2.0 request")
    number = asked.get("id") if isinstance(asked.get("id"), str | int) else None
    if asked.get("method") != SEND:
        return _error(number, NO_METHOD, f"only {SEND} is understood")
    params = asked.get("params")
    try:
        message = Message.model_validate(
            params.get("message") if isinstance(params, dict) else None
        )
    except ValueError:
        return _error(number, BAD_PARAMS, "params.message is no message of A2A 1.0")
    data = next((part.data for part in message.parts if part.data is not None), None)
    if data is None or not isinstance(data.get("call"), str):
        known = ", ".join(desk.calls)
        return _error(number, BAD_PARAMS, f"a data part names a call, one of: {known}")
    well, said = desk.call(data["call"], data.get("arguments"))
    reply = {
        "messageId": f"re-{message.messageId}",
        "contextId": message.contextId or message.messageId,
        "role": "ROLE_AGENT",
        "parts": [{"data": said if well else {"error": said}, "mediaType": JSON}],
    }
    return {"jsonrpc": "2.0", "id": number, "result": {"message": reply}}


def _error(number: str | int | None, code: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def card_router(desk: VisitDesk) -> APIRouter:
    """Return the routes; whoever includes them sees to it that nobody comes in unasked."""
    router = APIRouter(tags=["a2a"])

    @router.get(CARD)
    def agent_card(request: Request) -> dict[str, Any]:
        """Return the agent card."""
        return card(str(request.base_url), desk)

    @router.post("/a2a")
    async def send_message(request: Request) -> dict[str, Any]:
        """Carry out one message; what is wrong with it is in the reply."""
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            return _error(None, NOT_JSON, "not JSON")
        return await run_in_threadpool(answer, asked, desk)

    return router
