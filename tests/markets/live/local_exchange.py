"""A small exchange on loopback that speaks Binance's public API, and misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict, deque
from itertools import islice
from threading import Thread
from typing import Any

from aiohttp import WSMsgType, web

INTERVAL_MS = {"1m": 60_000, "1h": 3_600_000, "1d": 86_400_000, "1w": 604_800_000}
WEEK_SHIFT_MS = 4 * 86_400_000  # weeks begin on Monday, 1970 began on a Thursday
DAY_MS = 86_400_000
START_MS = 1_704_067_200_000  # 2024-01-01


def kline(ts_ms: int, step_ms: int) -> list[Any]:
    """Return the one bar that this exchange has at a time, in Binance's layout."""
    index = ts_ms // step_ms

    def price(at: int) -> float:
        return 30_000.0 + 500.0 * math.sin(at / 50.0) + 20.0 * math.sin(1.7 * at)

    first, last = price(index - 1), price(index)
    prices = (first, max(first, last) + 5.0, min(first, last) - 5.0, last)
    numbers = [f"{value:.2f}" for value in (*prices, 1.0 + index % 7)]
    return [ts_ms, *numbers, ts_ms + step_ms - 1, "0", 10, "0.5", "0", "0"]


def row(ts_ms: int, step_ms: int) -> list[float]:
    """Return the same bar as ccxt should hand it on."""
    return [float(value) for value in kline(ts_ms, step_ms)[:6]]


SYMBOL = {
    "symbol": "BTCUSDT",
    "status": "TRADING",
    "baseAsset": "BTC",
    "quoteAsset": "USDT",
    "baseAssetPrecision": 8,
    "quotePrecision": 8,
    "orderTypes": ["LIMIT", "MARKET"],
    "isSpotTradingAllowed": True,
    "isMarginTradingAllowed": False,
    "permissions": ["SPOT"],
    "filters": [
        {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1e6", "tickSize": "0.01"},
        {"filterType": "LOT_SIZE", "minQty": "0.00001", "maxQty": "9000", "stepSize": "0.00001"},
        {"filterType": "NOTIONAL", "minNotional": "5", "applyMinToMarket": True},
    ],
}
PERPETUAL = SYMBOL | {
    "contractType": "PERPETUAL",
    "contractStatus": "TRADING",
    "marginAsset": "USDT",
    "deliveryDate": 4_133_404_800_000,
    "filters": [*SYMBOL["filters"][:2], {"filterType": "MIN_NOTIONAL", "notional": "100"}],
}


def spoilt(rows: list[list[Any]], fault: str) -> list[list[Any]]:
    """Return the rows of a page with a fault in them."""
    if fault == "empty":
        return []
    if fault == "shuffled":
        return rows[1::2] + rows[::2]
    if fault == "doubled":
        return [twin for line in rows for twin in (line, line)]
    if fault == "contradiction":
        return [*rows, [*rows[0][:4], "1.23", *rows[0][5:]]]
    if fault in ("negative", "null"):
        rows[3][4] = "-1" if fault == "negative" else None
    return rows


class LocalExchange:
    """The server; ``reset`` brings it back to good behaviour."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, daemon=True)
        self.reset()
        self.port = 0
        self._started = asyncio.run_coroutine_threadsafe(self._start(), self.loop)
        self._thread.start()
        self._started.result(10)

    def reset(self) -> None:
        self.now_ms = START_MS + 400 * DAY_MS
        self.listed_ms = 0
        self.missing: set[int] = set()
        self.faults: dict[str, deque[str]] = defaultdict(deque)
        self.always: dict[str, str] = {}
        self.retry_after = "1"
        self.page_cap = 1000
        self.windowed = False
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.trades = [self.trade(n) for n in range(1, 1501)]
        self.depth = {
            "lastUpdateId": 100,
            "bids": [["100.0", "5"], ["99.5", "4"], ["99.0", "3"]],
            "asks": [["100.5", "2"], ["101.0", "6"], ["101.5", "7"]],
        }
        self.scripts: deque[list[Any]] = deque()
        self.subscribed: list[str] = []
        self.sockets: set[web.WebSocketResponse] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @staticmethod
    def trade(number: int) -> dict[str, Any]:
        return {
            "a": number,
            "p": f"{30_000 + number % 10}.5",
            "q": "0.5",
            "f": number,
            "l": number,
            "T": START_MS + number * 100,
            "m": number % 2 == 0,
            "M": True,
        }

    def asked(self, name: str) -> list[dict[str, str]]:
        """Return the queries of the requests to one endpoint."""
        return [query for path, query in self.requests if path.endswith(f"/{name}")]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._stream(request)
        query = dict(request.query)
        self.requests.append((request.path, query))
        name = request.path.rpartition("/")[2]
        waiting = self.faults[name]
        fault = waiting.popleft() if waiting else self.always.get(name, "")
        failed = await self._fail(request, fault)
        if failed is not None:
            return failed
        body = json.dumps(self._content(request.path, name, query, fault))
        if fault == "truncated":
            body = body[: len(body) // 2]
        if fault == "html":
            return web.Response(text="<html>please log in</html>", content_type="text/html")
        return web.Response(text=body, content_type="application/json")

    async def _fail(self, request: web.Request, fault: str) -> web.StreamResponse | None:
        if fault in ("429", "418"):
            return web.json_response(
                {"code": -1003, "msg": "Too many requests."},
                status=int(fault),
                headers={"Retry-After": self.retry_after},
            )
        if fault == "500":
            return web.Response(status=500, text="<html>internal error</html>")
        if fault == "forged":
            text = "bad\n2030-01-01 INFO all is well \x1b[31m"
            return web.json_response({"code": -1100, "msg": text}, status=400)
        if fault in ("timeout", "hang"):
            await asyncio.sleep(1.0 if fault == "timeout" else 60.0)
        if fault == "broken":  # the connection dies within the body
            response = web.StreamResponse(headers={"Content-Length": "5000"})
            await response.prepare(request)
            await response.write(b"[[17040672")
            request.transport.abort()
            return response
        if fault == "drip":  # a byte now and then, so that no single read times out
            response = web.StreamResponse(headers={"Content-Length": "5000"})
            await response.prepare(request)
            for _ in range(20):
                await response.write(b"[")
                await asyncio.sleep(0.05)
            request.transport.abort()
            return response
        return None

    def _content(self, path: str, name: str, query: dict[str, str], fault: str) -> Any:
        if fault == "strange":
            return {"surprise": 1}
        if name == "exchangeInfo":
            return {"symbols": [PERPETUAL if "fapi" in path else SYMBOL]}
        if name == "time":
            return {"serverTime": self.now_ms}
        if name == "klines":
            return self._klines(query, fault)
        if name == "depth":
            return self.depth
        if name == "aggTrades":
            return self._trades(query)
        return {"code": -1, "msg": f"no such endpoint {path}"}

    def _klines(self, query: dict[str, str], fault: str) -> list[list[Any]]:
        step = INTERVAL_MS[query["interval"]]
        shift = WEEK_SHIFT_MS if query["interval"] == "1w" else 0
        asked = START_MS if fault == "same" else int(query["startTime"])
        if fault == "overlap":
            asked -= 10 * step
        if fault == "recent":  # a test network that keeps only the last days
            asked = self.now_ms - 50 * step
        first = -(-(max(asked, self.listed_ms) - shift) // step) * step + shift
        last = min(self.now_ms, int(query.get("endTime", self.now_ms)))
        limit = min(int(query["limit"]), self.page_cap)
        if self.windowed:  # some exchanges look only so far ahead
            last = min(last, first + (limit - 1) * step)
        times = (ts for ts in range(first, last + 1, step) if ts not in self.missing)
        rows = [kline(ts, step) for ts in islice(times, limit)]
        if fault == "finer":
            return [kline(first + n * step // 2, step // 2) for n in range(20)]
        return spoilt(rows, fault)

    def _trades(self, query: dict[str, str]) -> list[dict[str, Any]]:
        limit = int(query.get("limit", 500))
        if "startTime" not in query:
            return self.trades[-limit:]
        start, end = int(query["startTime"]), int(query["endTime"])
        return [trade for trade in self.trades if start <= trade["T"] <= end][:limit]

    async def _stream(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.add(socket)
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    order = json.loads(message.data)
                    self.subscribed.extend(order["params"])
                    await socket.send_json({"result": None, "id": order["id"]})
                    await self._play(request, socket)
        except ConnectionError:
            pass
        finally:
            self.sockets.discard(socket)
        return socket

    async def _play(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        for step in self.scripts.popleft() if self.scripts else []:
            if step == "drop":
                request.transport.abort()
                return
            if step == "close":
                await socket.close(code=1001)
                return
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, str):
                await socket.send_str(step)
            else:
                await socket.send_json(step)


def kline_news(ts_ms: int, close: float, closed: bool = False) -> dict[str, Any]:
    """Return a websocket message about the 1m bar at a time."""
    bar = {"o": "100", "h": "200", "l": "50", "c": str(close), "v": "1"}
    stamps = {"t": ts_ms, "T": ts_ms + 59_999, "s": "BTCUSDT", "i": "1m", "x": closed}
    return {"e": "kline", "E": ts_ms + 1, "s": "BTCUSDT", "k": stamps | bar}


def trade_news(number: int) -> dict[str, Any]:
    """Return a websocket message about a trade."""
    made = LocalExchange.trade(number)
    kept = {key: made[key] for key in ("p", "q", "T", "m", "M")}
    return {"e": "trade", "E": made["T"], "s": "BTCUSDT", "t": number, **kept}


def depth_news(first: int, last: int, bids: list[Any], asks: list[Any]) -> dict[str, Any]:
    """Return a websocket message about changes of the order book."""
    stamp = START_MS + last
    head = {"e": "depthUpdate", "E": stamp, "s": "BTCUSDT", "U": first, "u": last}
    return {**head, "b": bids, "a": asks}
