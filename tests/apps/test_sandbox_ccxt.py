"""The real ccxt client, unchanged, trades in the sandbox: sync, async and over websockets."""

import asyncio
import json
import re
from urllib.parse import urlsplit

import ccxt
import ccxt.async_support
import ccxt.pro
import numpy as np
import pytest

from agent_gym.apps.sandbox import ccxt_options
from agent_gym.core.registry import Ref
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.rollouts.database import TrajectoryStore
from tests.apps.sandbox_samples import market, serving, session_of

SYMBOL = "BTC/USDT"


@pytest.fixture(scope="module")
def served():
    with serving(session_of()) as place:
        yield place


def sync_client(place, name="ann", **more):
    return ccxt.binance(ccxt_options(place.url, *place.key(name)) | more)


def cross(client, step, fast=5, slow=20):
    """Trade a crossing of means, as somebody would write it for the real exchange."""
    client.load_markets()
    while True:
        closes = [row[4] for row in client.fetch_ohlcv(SYMBOL, "1h", limit=slow + 1)][:-1]
        up = sum(closes[-fast:]) / fast > sum(closes[-slow:]) / slow
        balance = client.fetch_balance()
        held = balance["BTC"]["free"]
        if up and held * closes[-1] < 10:
            client.create_market_buy_order_with_cost(SYMBOL, balance["USDT"]["free"] * 0.9)
        elif not up and held * closes[-1] > 10:
            client.create_market_sell_order(SYMBOL, client.amount_to_precision(SYMBOL, held))
        if step()["finished"]:
            return


def test_every_address_leads_to_the_sandbox():
    options = ccxt_options("http://127.0.0.1:8800/")
    for maker in (ccxt.binance, ccxt.async_support.binance, ccxt.pro.binance):
        client = maker(options)
        for network in ("api", "test", "demo"):
            text = json.dumps(client.urls[network])
            hosts = {urlsplit(address).netloc for address in re.findall(r'"(\w+://[^"]+)"', text)}
            assert hosts == {"127.0.0.1:8800"}
    assert len(ccxt.binance(options).urls["api"]) >= 22


def test_a_bot_trades_from_the_first_bar_to_the_last_and_is_judged(tmp_path):
    """The whole way: keys, candles, orders, fills, the report, the trajectory."""
    session = session_of(folder=tmp_path)
    with serving(session) as place:
        cross(sync_client(place), place.step)
        trades = sync_client(place).fetch_my_trades(SYMBOL)
        orders = sync_client(place).fetch_orders(SYMBOL)
    assert session.over
    assert len(trades) > 4
    assert {order["status"] for order in orders} == {"closed"}
    folder = tmp_path / "out" / "ann"
    results = json.loads((folder / "results.json").read_text())
    metrics = results["metrics"]
    assert metrics["trades"] == len(trades)
    assert metrics["fees"] == pytest.approx(sum(trade["fee"]["cost"] for trade in trades), abs=1e-6)
    assert metrics["final_equity"] == session.floor.marks["ann"][-1].equity
    assert results["baselines"]["rules/buy-hold"]["metrics"]["trades"] == 1
    names = {path.name for path in folder.iterdir()}
    assert names >= {"report.html", "chart.png", "orders.json", "equity.parquet", "fills.parquet"}
    assert "charts.json" in names
    assert "Sandbox session of ann" in (folder / "report.html").read_text()
    with TrajectoryStore.open(folder=tmp_path / "trajectories") as store:
        rows = {row.agent: row for row in store.page().rows}
        assert rows.keys() == {"ann", "ben"}
        assert rows["ann"].n_steps == 250
        assert rows["ann"].trades_executed == len(trades)
        assert rows["ann"].final_balance == metrics["final_equity"]
        steps = store.steps(rows["ann"].trajectory_id)
        said = [words for words in steps.rationale if words]
        assert sum(words.count("trade #") for words in said) == len(trades)
        assert steps.action.min() == 0.0
        assert 0.8 < steps.action.max() < 1.0
        assert store.steps(rows["ben"].trajectory_id).action.max() == 0.0
        assert float(np.sum(steps.reward)) == pytest.approx(np.log(metrics["final_equity"] / 1e4))


def test_the_same_bot_on_the_same_market_earns_the_same():
    ends = []
    for _ in range(2):
        session = session_of([market(140, seed=5)])
        with serving(session) as place:
            cross(sync_client(place), place.step)
        ends.append([mark.equity for mark in session.floor.marks["ann"]])
    assert ends[0] == ends[1]
    assert len(set(ends[0])) > 20


def test_the_sandbox_is_the_backtest_to_the_cent():
    """What a backtest trades, sent as orders of a ccxt client, leaves the same equity."""
    bars = market(200, seed=2)
    session = session_of([bars], history=1)
    bars = session.floor.venue.tape(SYMBOL).bars
    wanted = BacktestEngine(BacktestConfig(position_size=0.5)).run(
        bars, Ref(use="rules/sma-cross", params={"fast": 5, "slow": 20})
    )
    assert len(wanted.fills) > 10
    due = {int(row["bar"]): float(row["qty"]) for row in wanted.fills}
    with serving(session) as place:
        client = sync_client(place)
        client.load_markets()
        while not session.over:
            qty = due.get(session.floor.venue.t + 1)
            if qty is not None:
                side = "buy" if qty > 0 else "sell"
                order = client.create_order(SYMBOL, "market", side, abs(qty))
                assert order["status"] == "closed"
            place.step()
    equity = np.array([mark.equity for mark in session.floor.marks["ann"]])
    assert np.abs(equity - wanted.equity).max() < 1e-6


def test_public_data_are_what_the_bars_hold(served):
    client = sync_client(served)
    bars, t = served.session.floor.venue.tape(SYMBOL).bars, served.session.floor.venue.t
    rows = client.fetch_ohlcv(SYMBOL, "1h", limit=10)
    assert [row[0] for row in rows] == (bars.ts[t - 8 : t + 2] // 10**6).tolist()
    assert [row[4] for row in rows[:-1]] == pytest.approx(bars.close[t - 8 : t + 1].tolist())
    assert rows[-1][1:] == pytest.approx([bars.open[t + 1]] * 4 + [0.0])
    assert client.fetch_ticker(SYMBOL)["last"] == pytest.approx(bars.open[t + 1], abs=1e-8)
    assert client.fetch_time() == bars.ts[t + 1] // 10**6
    book = client.fetch_order_book(SYMBOL)
    assert book["bids"][0][0] < bars.open[t + 1] < book["asks"][0][0]
    best = client.fetch_bids_asks([SYMBOL])[SYMBOL]
    assert (best["bid"], best["ask"]) == (book["bids"][0][0], book["asks"][0][0])
    assert client.fetch_trades(SYMBOL)[-1]["price"] == pytest.approx(bars.close[t], abs=1e-8)
    assert client.fetch_status()["status"] == "ok"
    fee = client.fetch_trading_fee(SYMBOL)
    assert (fee["maker"], fee["taker"]) == (0.0005, 0.001)


def test_a_client_with_nothing_but_addresses_loads_its_markets(served):
    """What ccxt asks by default (coins, margin pairs, derivatives) is answered, too."""
    key, secret = served.key()
    client = ccxt.binance(
        {
            "urls": ccxt_options(served.url)["urls"],
            "apiKey": key,
            "secret": secret,
            "timeout": 60_000,
        }
    )
    assert list(client.load_markets()) == [SYMBOL]
    assert client.fetch_balance()["USDT"]["total"] == 10_000.0


def test_an_order_goes_its_way(served):
    client = sync_client(served, "ben")
    price = client.fetch_ticker(SYMBOL)["last"]
    order = client.create_limit_buy_order(
        SYMBOL, 0.01, client.price_to_precision(SYMBOL, price * 0.8)
    )
    assert order["status"] == "open"
    assert client.fetch_balance()["USDT"]["used"] == pytest.approx(0.01 * order["price"])
    assert [one["id"] for one in client.fetch_open_orders(SYMBOL)] == [order["id"]]
    assert client.fetch_order(order["id"], SYMBOL)["clientOrderId"] == order["clientOrderId"]
    assert client.cancel_order(order["id"], SYMBOL)["status"] == "canceled"
    assert client.fetch_open_orders(SYMBOL) == []
    near = client.create_limit_order(
        SYMBOL, "buy", 0.01, client.price_to_precision(SYMBOL, price * 1.02)
    )
    assert near["status"] == "closed"
    assert near["average"] < price * 1.01
    stop = client.create_order(
        SYMBOL,
        "market",
        "sell",
        0.01,
        None,
        {"stopLossPrice": client.price_to_precision(SYMBOL, price * 0.7)},
    )
    assert client.fetch_order(stop["id"], SYMBOL)["stopPrice"] == pytest.approx(
        price * 0.7, abs=0.01
    )
    assert len(client.cancel_all_orders(SYMBOL)) == 1
    first = client.create_limit_buy_order(
        SYMBOL, 0.01, client.price_to_precision(SYMBOL, price * 0.8)
    )
    lower = client.price_to_precision(SYMBOL, price * 0.7)
    second = client.edit_order(first["id"], SYMBOL, "limit", "buy", 0.02, lower)
    assert client.fetch_order(first["id"], SYMBOL)["status"] == "canceled"
    assert client.cancel_order(second["id"], SYMBOL)["amount"] == 0.02


def test_the_async_client_trades():
    async def trade(place):
        client = ccxt.async_support.binance(ccxt_options(place.url, *place.key()))
        try:
            await client.load_markets()
            order = await client.create_market_buy_order(SYMBOL, 0.05)
            await asyncio.to_thread(place.step, 3)
            sold = await client.create_market_sell_order(SYMBOL, 0.05)
            return order, sold, await client.fetch_balance()
        finally:
            await client.close()

    with serving(session_of()) as place:
        order, sold, balance = asyncio.run(trade(place))
    assert order["status"] == sold["status"] == "closed"
    paid = order["cost"] + order["fee"]["cost"] - sold["cost"] + sold["fee"]["cost"]
    assert balance["USDT"]["free"] == pytest.approx(10_000.0 - paid, abs=1e-6)
    assert balance["BTC"]["free"] == 0.0


def test_streams_tell_what_happens():
    async def watch(place):
        client = ccxt.pro.binance(ccxt_options(place.url, *place.key()) | {"newUpdates": True})
        try:
            await client.load_markets()
            book = await client.watch_order_book(SYMBOL)
            waiting = [
                asyncio.create_task(one)
                for one in (
                    client.watch_orders(SYMBOL),
                    client.watch_my_trades(SYMBOL),
                    client.watch_balance(),
                    client.watch_ohlcv(SYMBOL, "1h"),
                    client.watch_trades(SYMBOL),
                    client.watch_ticker(SYMBOL),
                    client.watch_bids_asks([SYMBOL]),
                )
            ]
            await _until(lambda: _wanted(place) >= 5 and _private(place) >= 1)
            order = await client.create_order_ws(SYMBOL, "market", "buy", 0.01)
            before = book["nonce"]
            next_book = asyncio.create_task(client.watch_order_book(SYMBOL))
            await asyncio.sleep(0)
            await asyncio.to_thread(place.step)
            found = await asyncio.wait_for(asyncio.gather(*waiting, next_book), 120)
            rest = await client.fetch_order_book(SYMBOL)
            assert found[-1]["nonce"] == before + 1
            assert found[-1]["asks"][:5] == rest["asks"][:5]
            return order, found
        finally:
            await client.close()

    with serving(session_of()) as place:
        order, found = asyncio.run(watch(place))
        bars, t = place.session.floor.venue.tape(SYMBOL).bars, place.session.floor.venue.t
    orders, fills, balance, candles, trades, ticker, best, _ = found
    assert order["status"] == "closed"
    assert orders[-1]["id"] == order["id"]
    assert fills[-1]["price"] == pytest.approx(order["average"], abs=1e-6)
    assert balance["BTC"]["free"] == 0.01
    assert candles[0][4] == pytest.approx(bars.close[t], abs=1e-8)
    shown = [round(float(getattr(bars, name)[t]), 8) for name in ("open", "high", "low", "close")]
    assert {trade["price"] for trade in trades} <= set(shown)
    assert ticker["last"] == pytest.approx(bars.open[t + 1], abs=1e-8)
    assert best[SYMBOL]["bid"] < bars.open[t + 1] < best[SYMBOL]["ask"]


def _wanted(place):
    return len({name for one in place.session.feed.listeners for name in one.streams})


def _private(place):
    return sum(bool(one.accounts) for one in place.session.feed.listeners)


async def _until(ready):
    for _ in range(3_000):
        if ready():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came")
