"""Plug in your bot: a ccxt bot, unchanged but for the address, trades on a simulated exchange.

Run it with ``python docs/tutorials/08_plug_in_your_bot.py``. It needs ``agent-gym[live,service]``.
Nothing leaves the machine: every address that ccxt knows for the exchange leads to the sandbox.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ccxt
import numpy as np
import pyarrow.parquet as pq

from agent_gym.apps.sandbox import ccxt_options
from agent_gym.core import Ref, Seeds
from agent_gym.core.files import home
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.markets.source import open_market

FAST, SLOW, SHARE, BARS, SEED = 5, 20, 0.5, 120, 3
folder = home() / "tutorials" / "08_plug_in_your_bot"
shutil.rmtree(folder, ignore_errors=True)


def bot(url: str, key: str, secret: str) -> None:
    """Trade a crossing of means, as it would on the real exchange."""
    exchange = ccxt.binance(ccxt_options(url, key, secret))  # the one line that is not yours
    symbol, *_ = exchange.load_markets()
    base, quote = symbol.split("/")
    finished = False
    while not finished:
        candles = exchange.fetch_ohlcv(symbol, "1h", limit=SLOW + 1)
        closes = [row[4] for row in candles[:-1]]  # the last candle has only opened
        rising = len(closes) == SLOW and sum(closes[-FAST:]) / FAST > sum(closes) / SLOW
        balance = exchange.fetch_balance()
        held, cash = balance[base]["free"], balance[quote]["free"]
        if rising and held == 0:
            exchange.create_market_buy_order_with_cost(symbol, SHARE * cash)
        elif not rising and held > 0:
            exchange.create_market_sell_order(symbol, held)
        # The clock stands until it is asked for the next bar; with --speed 60 you would wait.
        finished = exchange.fetch(f"{url}/sandbox/step", "POST", {"X-MBX-APIKEY": key})["finished"]


# 1. The exchange, in a process of its own. It says once where it listens and which keys it takes.
words = [
    "sandbox",
    "--market",
    "known/m1",
    "--bars",
    str(BARS),
    "--seed",
    str(SEED),
    "--history",
    "1",
]
words += ["--speed", "step", "--port", "0", "--name", "session", "--exit-at-end", "--json"]
print(f"$ agent-gym {' '.join(words)}", flush=True)
server = subprocess.Popen(
    [Path(sys.executable).with_name("agent-gym"), *words],
    env=os.environ | {"AGENT_GYM_HOME": str(folder), "AGENT_GYM_DATABASE": ""},
    stdout=subprocess.PIPE,
    text=True,
)
lines = []
while not lines or lines[-1] not in ("}\n", ""):
    lines.append(server.stdout.readline())
told = json.loads("".join(lines))
(account,) = told["accounts"]
print(f"  {told['symbols'][0]}, {told['bars']} bars of {told['period']}, at {told['url']}")

# 2. The bot trades from the first bar to the last; the exchange ends with the last bar.
try:
    bot(told["url"], account["api_key"], account["secret"])
    server.wait(60)
finally:
    server.terminate()

# 3. What it came to, judged by the code that judges backtests.
place = folder / "sandbox" / "session" / account["name"]
metrics = json.loads((place / "results.json").read_text())["metrics"]
fills, equity = (pq.read_table(place / f"{name}.parquet") for name in ("fills", "equity"))
print(
    f"\nthe bot over ccxt   {metrics['trades']} fills, final equity {metrics['final_equity']:,.2f}"
)

# 4. The same rule as an agent in a backtest: same market, same costs, no exchange in between.
bars = open_market(Ref(use="known/m1", params={"n_bars": BARS}), Seeds(SEED))
rule = Ref(use="rules/sma-cross", params={"fast": FAST, "slow": SLOW})
tested = BacktestEngine(BacktestConfig(position_size=SHARE)).run(bars, rule)
print(f"the same backtested {len(tested.fills)} fills, final equity {tested.equity[-1]:,.2f}")
same = fills["bar"].to_pylist() == tested.fills["bar"].tolist()
apart = np.abs(np.asarray(equity["equity"]) - tested.equity).max()
print(f"filled in the same bars: {'yes' if same else 'no'}; equity differs by at most {apart:.4f}")
print("What is left is the exchange's grid: it takes quantities in steps, a backtest takes any.")
print(f"\nthe bot's report    {place / 'report.html'}")
