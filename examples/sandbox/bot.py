"""A bot that trades a crossing of means, as it would on the real exchange."""

import os

import ccxt

from agent_gym.apps.sandbox import ccxt_options

url, key, secret = (os.environ[f"SANDBOX_{name}"] for name in ("URL", "KEY", "SECRET"))
exchange = ccxt.binance(ccxt_options(url, key, secret))
symbol, *_ = exchange.load_markets()
base, quote = symbol.split("/")
finished = False
while not finished:
    candles = exchange.fetch_ohlcv(symbol, os.environ.get("TIMEFRAME", "1h"), limit=61)
    closes = [row[4] for row in candles[:-1]]  # the last candle has only opened
    rising = sum(closes[-20:]) / 20 > sum(closes[-60:]) / 60
    balance = exchange.fetch_balance()
    held = balance[base]["free"]
    if rising and held * closes[-1] < 10:
        exchange.create_market_buy_order_with_cost(symbol, 0.95 * balance[quote]["free"])
    elif not rising and held * closes[-1] > 10:
        exchange.create_market_sell_order(symbol, exchange.amount_to_precision(symbol, held))
    # The clock stands until somebody asks for the next bar; with --speed 60 wait instead.
    finished = exchange.fetch(f"{url}/sandbox/step", "POST", {"X-MBX-APIKEY": key})["finished"]
print(
    f"{len(exchange.fetch_my_trades(symbol, limit=1000))} fills", exchange.fetch_balance()["total"]
)
