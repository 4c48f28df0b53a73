"""A client of the official MCP package, which starts the door of a sandbox as a user's would."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.apps.sandbox_samples import COMMAND, ROOT

SYMBOL, ID = "BTC/USDT", "BTCUSDT"


@dataclass
class Gym:
    """What a client sees of the server."""

    session: ClientSession

    async def told(self, tool, **arguments):
        return await self.session.call_tool(tool, arguments)

    async def ask(self, tool, **arguments):
        told = await self.told(tool, **arguments)
        assert not told.is_error, told.structured_content
        assert json.loads(told.content[0].text) == told.structured_content
        return told.structured_content

    async def refused(self, tool, **arguments):
        told = await self.told(tool, **arguments)
        assert told.is_error, told.structured_content
        assert told.structured_content["remedy"]
        assert told.structured_content["where"]
        return told.structured_content


@asynccontextmanager
async def door(url, key, secret):
    """Start the server as a user's client does, with the account in its environment."""
    named = {"SANDBOX_KEY": key, "SANDBOX_SECRET": secret, "PYTHONPATH": str(ROOT)}
    words = ["-c", COMMAND, "mcp", "--sandbox", url]
    server = StdioServerParameters(command=sys.executable, args=words, env=os.environ | named)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield Gym(session)


def played(place, trade, name="ann"):
    async def go():
        async with door(place.url, *place.key(name)) as gym:
            return await trade(gym)

    return asyncio.run(go())
