"""freqtrade trades in the sandbox, dry and live, where it is installed on its own.

AGENT_GYM_FREQTRADE names its program, such as ``/opt/freqtrade/bin/freqtrade``.
"""

import json
import os
import signal
import subprocess
from pathlib import Path
from threading import Timer

import httpx
import pytest

from agent_gym.apps.sandbox import ccxt_options
from tests.apps.sandbox_samples import Process, market

FREQTRADE = os.environ.get("AGENT_GYM_FREQTRADE", "")
pytestmark = pytest.mark.skipif(
    not Path(FREQTRADE).is_file(), reason="freqtrade is not installed; see AGENT_GYM_FREQTRADE"
)
STRATEGY = """
from freqtrade.strategy import IStrategy


class Quick(IStrategy):
    timeframe = "1m"
    minimal_roi = {"0": -1}
    stoploss = -0.5
    startup_candle_count = 20
    process_only_new_candles = False

    def populate_indicators(self, dataframe, metadata):
        return dataframe

    def populate_entry_trend(self, dataframe, metadata):
        dataframe["enter_long"] = 1
        return dataframe

    def populate_exit_trend(self, dataframe, metadata):
        dataframe["exit_long"] = 0
        return dataframe
"""
MINUTE_MS, START_MS = 60_000, 1_704_067_200_000


def minutes(path):
    bars = market(1_500)
    columns = (bars.open, bars.high + 0.01, bars.low - 0.01, bars.close, bars.volume)
    rows = [
        ",".join([str(START_MS + i * MINUTE_MS), *(f"{column[i]:.2f}" for column in columns)])
        for i in range(len(bars))
    ]
    path.write_text("\n".join(["timestamp,open,high,low,close,volume", *rows]))
    return str(path)


def config(told, *, dry, stops):
    account, options = told["accounts"][0], ccxt_options(told["url"])
    book = {"price_side": "other", "use_order_book": True, "order_book_top": 1}
    market_orders = dict.fromkeys(("entry", "exit", "stoploss"), "market")
    return {
        "dry_run": dry,
        "max_open_trades": 1,
        "stake_currency": "USDT",
        "stake_amount": 500,
        "timeframe": "1m",
        "entry_pricing": book,
        "exit_pricing": book,
        "order_types": market_orders
        | {"stoploss_on_exchange": stops, "stoploss": "limit" if stops else "market"},
        "unfilledtimeout": {"entry": 10, "exit": 10, "unit": "minutes"},
        "exchange": {
            "name": "binance",
            "key": account["api_key"],
            "secret": account["secret"],
            "ccxt_config": options,
            "ccxt_async_config": options,
            "pair_whitelist": ["BTC/USDT"],
        },
        "pairlists": [{"method": "StaticPairList"}],
        "initial_state": "running",
        "internals": {"process_throttle_secs": 1},
        "strategy": "Quick",
    }


@pytest.mark.parametrize(
    ("dry", "stops"),
    [(True, False), (False, False), (False, True)],
    ids=["dry", "live", "stops on the exchange"],
)
def test_freqtrade_buys_and_sells(tmp_path, dry, stops):
    data = minutes(tmp_path / "minutes.csv")
    options = ("--symbol", "BTC/USDT", "--speed", "1", "--rebase", "--history", "1000")
    place = Process(tmp_path, "--data", data, *options)
    user = tmp_path / "user_data"
    (user / "strategies").mkdir(parents=True)
    (user / "strategies" / "Quick.py").write_text(STRATEGY)
    (tmp_path / "config.json").write_text(json.dumps(config(place.told, dry=dry, stops=stops)))
    words = [FREQTRADE, "trade", "-c", "config.json", "--userdir", str(user)]
    bot = subprocess.Popen(
        [*words, "--db-url", f"sqlite:///{tmp_path / 'trades.sqlite'}"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines, patience = [], Timer(120.0, bot.kill)
    patience.start()
    try:
        for line in bot.stdout:
            lines.append(line)
            if "MARKET_SELL has been fulfilled" in line:
                break
        else:
            pytest.fail("".join(lines[-40:]))
    finally:
        patience.cancel()
        bot.send_signal(signal.SIGINT)
        bot.communicate(timeout=120)
    key = {"X-MBX-APIKEY": place.told["accounts"][0]["api_key"]}
    httpx.post(f"{place.told['url']}/sandbox/finish", headers=key, timeout=60)
    assert place.end(signal.SIGTERM) == 0
    folder = Path(place.told["folder"]) / "bot"
    sent = json.loads((folder / "orders.json").read_text())["orders"]
    assert any(order["type"] == "STOP_LOSS_LIMIT" for order in sent) == stops
    results = json.loads((folder / "results.json").read_text())
    assert results["metrics"]["trades"] == 0 if dry else results["metrics"]["trades"] >= 2
