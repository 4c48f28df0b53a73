"""A bot that protects what it buys: a stop and a target, of which one cancels the other.

It enters when the price is above its mean, sends both exits in one request, and waits until one of
them has traded. On a clock that is stepped it asks for the next bar; on one that runs it waits.
"""

import os

import ccxt

from agent_gym.apps.sandbox import ccxt_options

url, key, secret = (os.environ[f"SANDBOX_{name}"] for name in ("URL", "KEY", "SECRET"))
exchange = ccxt.binance(ccxt_options(url, key, secret))
symbol, *_ = exchange.load_markets()
base, quote = symbol.split("/")
market = exchange.market(symbol)["id"]
stepped = exchange.fetch(f"{url}/sandbox/clock")["speed"] is None


def wait() -> bool:
    """Let time pass; says whether the market has ended."""
    if stepped:
        answer = exchange.fetch(f"{url}/sandbox/step", "POST", {"X-MBX-APIKEY": key})
    else:
        exchange.sleep(200)  # milliseconds
        answer = exchange.fetch(f"{url}/sandbox/clock")
    return bool(answer["finished"])


finished = False
while not finished:
    closes = [row[4] for row in exchange.fetch_ohlcv(symbol, limit=21, timeframe="1h")[:-1]]
    if closes[-1] > sum(closes) / len(closes) and not exchange.privateGetOpenOrderList():
        try:
            cost = 0.5 * exchange.fetch_balance()[quote]["free"]
            bought = exchange.create_market_buy_order_with_cost(symbol, cost)
            target, stop = (
                exchange.price_to_precision(symbol, bought["average"] * factor)
                for factor in (1.02, 0.99)
            )
            held = exchange.fetch_balance()[base]["free"]
            exchange.privatePostOrderListOco(
                {
                    "symbol": market,
                    "side": "SELL",
                    "quantity": exchange.amount_to_precision(symbol, held),
                    "aboveType": "LIMIT_MAKER",
                    "abovePrice": target,
                    "belowType": "STOP_LOSS",
                    "belowStopPrice": stop,
                }
            )
        except ccxt.BaseError as refused:  # such as the end of the market
            print(f"{type(refused).__name__}: {refused}")
    finished = wait()
ends = exchange.privateGetAllOrderList({"limit": 1000})
print(f"{len(ends)} brackets, {len(exchange.fetch_my_trades(symbol, limit=1000))} fills")
