from __future__ import annotations

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters

from agent_gym.apps.mcp_server import NEXT_TOOL, create_mcp_server
from agent_gym.envs.benchmark.calls import METHODS
from agent_gym.envs.benchmark.session import Session
from tests.envs.benchmark_samples import made, world


def test_an_episode_is_played_by_tools():
    session, here = Session(world(0)), world(0)

    async def play() -> None:
        async with Client(create_mcp_server(session)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {name.removeprefix("a2a.") for name in METHODS} | {NEXT_TOOL}
            asked = {"marketId": "pm-1", "outcome": "NO", "amount": 70.0}
            bought = await client.call_tool("buyShares", asked)
            assert bought.structured_content is not None
            assert (
                bought.structured_content["shares"] == here.floor.buy_shares(0, "no", 70.0).shares
            )
            wrong = await client.call_tool("buyShares", asked | {"amount": -1.0})
            assert wrong.is_error
            unknown = await client.call_tool("nothing", {})
            assert unknown.is_error
            for _ in range(40):
                told = await client.call_tool(NEXT_TOOL, {})
                assert json.loads(told.content[0].text)["reward"] == here.end_tick().reward
            assert (await client.call_tool(NEXT_TOOL, {})).is_error

    asyncio.run(play())
    assert session.finished
    assert session.market.invalid == 2


def test_a_client_plays_over_standard_input(tmp_path):
    path = made(0).save(tmp_path)
    code = (
        "from pathlib import Path; from agent_gym.apps.mcp_server import serve_stdio; "
        f"serve_stdio(Path({str(path)!r}))"
    )
    server = StdioServerParameters(command=sys.executable, args=["-c", code])

    async def play() -> str:
        async with Client(server, read_timeout_seconds=120) as client:
            told = await client.call_tool("getDashboard", {})
            return told.content[0].text

    assert json.loads(asyncio.run(play()))["balance"] == 10_000.0
