"""A bot that trades through `agent-gym mcp`: long while the close is above its average."""

import asyncio
import sys

from mcp import Client, StdioServerParameters

GYM = [sys.executable, "-c", "from agent_gym.apps.cli.main import main; main()", "mcp"]


async def trade() -> None:
    async with Client(StdioServerParameters(command=GYM[0], args=GYM[1:])) as gym:
        told = await gym.call_tool("begin_session", {"market": "synthetic/btc-1h", "bars": 120})
        seen, closes = told.structured_content, []
        session = seen["session"]
        while not seen["finished"]:
            closes = [*closes, seen["features"]["close"]][-20:]
            target = 1.0 if closes[-1] > sum(closes) / len(closes) else 0.0
            told = await gym.call_tool("decide", {"session": session, "target": target})
            seen = told.structured_content
        ended = await gym.call_tool("end_session", {"session": session})
        print(ended.structured_content["equity_hash"])


asyncio.run(trade())
