"""The gym as an MCP server: a model or a bot looks around, backtests, and trades sessions."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import mcp.types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from agent_gym.apps.tool_desk import ToolDesk
from agent_gym.apps.visit_desk import VisitDesk
from agent_gym.evaluation.visit import VisitBook


def create_gym_server(desk: ToolDesk) -> Server[Any]:
    """Return a server over a desk; what is wrong with a call is in its result."""
    listed = types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=call.about,
                input_schema=call.arguments.model_json_schema(),
            )
            for name, call in desk.calls.items()
        ]
    )

    async def on_list(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def on_call(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        well, said = await asyncio.to_thread(desk.call, params.name, params.arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=json.dumps(said, allow_nan=False))],
            structured_content=said,
            is_error=not well,
        )

    return Server("agent-gym", on_list_tools=on_list, on_call_tool=on_call)


def serve_gym(*, trusted: bool) -> None:
    """Serve whoever is at the other end of standard input and output."""
    serve_desk(VisitDesk(VisitBook(trusted=trusted)))


def serve_desk(desk: ToolDesk) -> None:
    """Offer the calls of a desk on standard input and output."""
    server = create_gym_server(desk)

    async def run() -> None:
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    asyncio.run(run())
