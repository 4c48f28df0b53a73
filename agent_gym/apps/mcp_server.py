"""Benchmark episodes as MCP tools: the same calls, for language models and their clients."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import mcp.types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from agent_gym.envs.benchmark.calls import METHODS
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.session import NEXT_TICK, Session
from agent_gym.envs.benchmark.world import BenchmarkWorld

PREFIX = "a2a."
NEXT_TOOL = "nextTick"
ABOUT = {
    "a2a.getPredictions": "The yes-or-no questions and their prices.",
    "a2a.getPerpetuals": "The perpetual contracts and their prices.",
    "a2a.getFeed": "The newest posts of other agents.",
    "a2a.getChats": "The chats and, for members, their messages.",
    "a2a.getBalance": "Your free money.",
    "a2a.getPortfolio": "Your money, positions and profit.",
    "a2a.getPositions": "Your open positions.",
    "a2a.getDashboard": "You at a glance.",
}


def tools() -> list[types.Tool]:
    """Return the calls as tools, and one more that ends the tick."""
    made = [
        types.Tool(
            name=method.removeprefix(PREFIX),
            description=ABOUT.get(method, config.__doc__ or method),
            input_schema=config.model_json_schema(),
        )
        for method, config in METHODS.items()
    ]
    nothing: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    about = "End this tick: orders fill, the others trade, news come."
    return [*made, types.Tool(name=NEXT_TOOL, description=about, input_schema=nothing)]


def create_mcp_server(session: Session) -> Server[Any]:
    """Return a server over one episode; what is wrong with a call is in its result."""
    listed = types.ListToolsResult(tools=tools())

    async def on_list(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def on_call(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        method = NEXT_TICK if params.name == NEXT_TOOL else PREFIX + params.name
        reply = session.call(method, params.arguments)
        said = reply.result if reply.result is not None else {"error": reply.error}
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=json.dumps(said, allow_nan=False))],
            structured_content=said,
            is_error=not reply.ok,
        )

    return Server("agent-gym", on_list_tools=on_list, on_call_tool=on_call)


def serve_stdio(snapshot: Path) -> None:
    """Play one snapshot with whoever is at the other end of standard input and output."""
    server = create_mcp_server(Session(BenchmarkWorld(BenchmarkWorldConfig(snapshot=snapshot))))

    async def run() -> None:
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    asyncio.run(run())
