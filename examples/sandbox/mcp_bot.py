"""A bot that trades a crossing of means through MCP tools, as a language model would call them."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

GYM = "from agent_gym.apps.cli.main import main; main()"
WORDS = ["-c", GYM, "mcp", "--sandbox", os.environ["SANDBOX_URL"]]
# It finds SANDBOX_KEY and SANDBOX_SECRET in its environment.
SERVER = StdioServerParameters(command=sys.executable, args=WORDS, env=dict(os.environ))


async def trade() -> None:
    """Trade from the first bar to the last."""
    async with Client(SERVER) as gym:

        async def ask(tool: str, **arguments: object) -> dict:
            told = await gym.call_tool(tool, arguments)
            assert not told.is_error, told.structured_content
            return told.structured_content

        (traded,), finished = (await ask("exchange_info"))["symbols"], False
        symbol, base, quote = (traded[name] for name in ("symbol", "baseAsset", "quoteAsset"))
        while not finished:
            bars = await ask("bars", symbol=symbol, limit=61)
            closes = [row[4] for row in bars["rows"][:-1]]  # the last bar has only opened
            rising = sum(closes[-20:]) / 20 > sum(closes[-60:]) / 60
            balances = (await ask("account"))["balances"]
            held, cash = balances[base]["free"], balances[quote]["free"]
            if rising and held * closes[-1] < 10:
                cost = int(95 * cash) / 100  # 95 %, in whole cents
                await ask("place_order", symbol=symbol, side="BUY", quoteOrderQty=cost)
            elif not rising and held * closes[-1] > 10:
                await ask("place_order", symbol=symbol, side="SELL", quantity=held)
            finished = (await ask("step"))["finished"]
        print(await ask("score"))


asyncio.run(trade())
