"""The same bot on streams (ccxt.pro): it waits for candles instead of asking for them."""

import asyncio
import os

import ccxt.pro

from agent_gym.apps.sandbox import ccxt_options

URL, KEY, SECRET = (os.environ[f"SANDBOX_{name}"] for name in ("URL", "KEY", "SECRET"))
TIMEFRAME = os.environ.get("TIMEFRAME", "1h")


async def trade() -> None:
    """Trade until the market ends."""
    exchange = ccxt.pro.binance(ccxt_options(URL, KEY, SECRET))
    symbol, *_ = await exchange.load_markets()
    base, quote = symbol.split("/")
    closes = {row[0]: row[4] for row in await exchange.fetch_ohlcv(symbol, TIMEFRAME, limit=61)}
    while exchange.markets[symbol]["active"]:
        try:
            for row in await asyncio.wait_for(exchange.watch_ohlcv(symbol, TIMEFRAME), 5):
                closes[row[0]] = row[4]
        except TimeoutError:
            await exchange.load_markets(True)  # is it over?
            continue
        seen = [closes[ts] for ts in sorted(closes)][:-1]
        rising = sum(seen[-20:]) / 20 > sum(seen[-60:]) / 60
        balance = await exchange.fetch_balance()
        held = balance[base]["free"]
        if rising and held * seen[-1] < 10:
            await exchange.create_market_buy_order_with_cost(symbol, 0.95 * balance[quote]["free"])
        elif not rising and held * seen[-1] > 10:
            amount = exchange.amount_to_precision(symbol, held)
            await exchange.create_market_sell_order(symbol, amount)
    print(f"{len(await exchange.fetch_my_trades(symbol))} fills")
    await exchange.close()


asyncio.run(trade())
