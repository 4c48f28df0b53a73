"""The counter: which request is answered by what, who may ask, and how much it weighs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from agent_gym.apps.sandbox.access import read_params, signed_part
from agent_gym.apps.sandbox.accounts import Accounts
from agent_gym.apps.sandbox.errors import NOT_FOUND, UNKNOWN, ExchangeError
from agent_gym.apps.sandbox.lists import OrderLists
from agent_gym.apps.sandbox.params import Params
from agent_gym.apps.sandbox.session import Session
from agent_gym.evaluation.session import score_so_far

Security: TypeAlias = Literal["none", "key", "signed"]
Answer: TypeAlias = Callable[[str, Params], Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One kind of request; ``moves`` marks those whose answer changes with every bar."""

    answer: Answer
    security: Security = "signed"
    weight: int = 1
    orders: int = 0
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: bytes = b""
    body: bytes = b""
    api_key: str | None = None
    client: str = "local"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    body: bytes
    headers: dict[str, str]


class Desk:
    """Answers requests of a session, over HTTP and over the websocket API alike."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.endpoints = _rest(session)
        self.methods = _socket_methods(self.endpoints)

    def handle(self, asked: Asked) -> Reply:
        """Answer a request; whatever goes wrong is an answer, too."""
        headers: dict[str, str] = {}
        try:
            self.session.catch_up()
            endpoint = self.endpoints.get((asked.method, asked.path))
            if endpoint is None:
                raise NOT_FOUND
            headers |= self.session.limits.weigh(asked.client, endpoint.weight)
            given = read_params(asked.query, asked.body)
            payload = signed_part(asked.query, asked.body)
            found = self.ask(endpoint, given, payload, asked.api_key, headers)
            return Reply(200, _json(found), headers)
        except ExchangeError as error:
            if error.status == 429:
                headers["Retry-After"] = "1"
            return Reply(error.status, _json(error.as_dict()), headers)
        except ValueError as error:  # parameters that cannot be read, such as too many
            log.info("a request could not be read: %s", error)
            refused = ExchangeError(-1101, "Too many parameters sent for this endpoint.")
            return Reply(400, _json(refused.as_dict()), headers)
        except Exception:  # the border of a request: it becomes an answer and a line of the log
            log.exception("unforeseen error in %s %.200r", asked.method, asked.path)
            return Reply(500, _json(UNKNOWN.as_dict()), headers)

    def ask(
        self,
        endpoint: Endpoint,
        given: dict[str, str],
        payload: bytes,
        api_key: str | None,
        headers: dict[str, str],
    ) -> Any:
        """Check who asks, and answer."""
        params, account = Params(given), ""
        if endpoint.security != "none":
            key = self.session.access.account_of(api_key)
            account = key.name
            if endpoint.security == "signed":
                self.session.access.check_signed(key, payload, params)
        if endpoint.moves:
            self.session.asked(str(id(endpoint)), *sorted(f"{k}={v}" for k, v in given.items()))
        if not endpoint.orders:
            return endpoint.answer(account, params)
        try:
            headers |= self.session.limits.count_orders(account, endpoint.orders)
            return endpoint.answer(account, params)
        except ExchangeError:
            self.session.refused[account] += 1
            raise


def _rest(session: Session) -> dict[tuple[str, str], Endpoint]:
    """Return the table of requests."""
    market, trading, control = session.market, session.trading, _Control(session)
    accounts, lists = Accounts(market), OrderLists(trading)

    def public(answer: Callable[[Params], Any], weight: int = 1) -> Endpoint:
        return Endpoint(lambda _account, params: answer(params), "none", weight)

    def moving(answer: Callable[[Params], Any], weight: int) -> Endpoint:
        return replace(public(answer, weight), moves=True)

    v3 = {
        ("GET", "ping"): public(market.ping),
        ("GET", "time"): public(control.time),
        ("GET", "exchangeInfo"): public(market.exchange_info, 20),
        ("GET", "depth"): moving(market.depth, 5),
        ("GET", "trades"): moving(market.trades, 25),
        ("GET", "historicalTrades"): moving(market.trades, 25),
        ("GET", "aggTrades"): moving(market.aggregate_trades, 4),
        ("GET", "klines"): moving(market.klines, 2),
        ("GET", "uiKlines"): moving(market.klines, 2),
        ("GET", "avgPrice"): moving(market.average_price, 2),
        ("GET", "ticker/24hr"): moving(market.ticker_day, 2),
        ("GET", "ticker/price"): moving(market.ticker_price, 2),
        ("GET", "ticker/bookTicker"): moving(market.ticker_book, 2),
        ("GET", "account"): Endpoint(accounts.account, weight=20),
        ("GET", "account/commission"): Endpoint(accounts.commission, weight=20),
        ("POST", "order"): Endpoint(trading.place, orders=1),
        ("POST", "order/test"): Endpoint(trading.test),
        ("POST", "order/cancelReplace"): Endpoint(trading.replace, orders=1),
        ("DELETE", "order"): Endpoint(trading.cancel),
        ("GET", "order"): Endpoint(trading.query, weight=4),
        ("GET", "openOrders"): Endpoint(trading.open_orders, weight=6),
        ("DELETE", "openOrders"): Endpoint(trading.cancel_all),
        ("GET", "allOrders"): Endpoint(trading.all_orders, weight=20),
        ("GET", "myTrades"): Endpoint(trading.my_trades, weight=20),
        ("POST", "order/oco"): Endpoint(lists.place_old, orders=2),
        ("POST", "orderList/oco"): Endpoint(lists.place, orders=2),
        ("GET", "orderList"): Endpoint(lists.query, weight=4),
        ("DELETE", "orderList"): Endpoint(lists.cancel),
        ("GET", "openOrderList"): Endpoint(lists.open, weight=6),
        ("GET", "allOrderList"): Endpoint(lists.all, weight=20),
        ("GET", "rateLimit/order"): Endpoint(control.order_counts, weight=40),
        ("POST", "userDataStream"): Endpoint(control.listen, "key", 2),
        ("PUT", "userDataStream"): Endpoint(control.keep_listening, "key", 2),
        ("DELETE", "userDataStream"): Endpoint(control.stop_listening, "key", 2),
    }
    table = {(method, f"/api/v3/{path}"): one for (method, path), one in v3.items()}
    # What clients ask besides; a sandbox has spot, and nothing comes in or goes out.
    table |= {
        ("GET", "/sapi/v1/system/status"): public(lambda _: {"status": 0, "msg": "normal"}),
        ("GET", "/sapi/v1/capital/config/getall"): Endpoint(accounts.coins, weight=10),
        ("GET", "/sapi/v1/asset/tradeFee"): Endpoint(accounts.trade_fees),
        ("GET", "/sapi/v1/margin/allPairs"): Endpoint(control.nothing, "key"),
        ("GET", "/sapi/v1/margin/isolated/allPairs"): Endpoint(control.nothing, "key"),
        ("GET", "/fapi/v1/exchangeInfo"): public(control.no_symbols),
        ("GET", "/dapi/v1/exchangeInfo"): public(control.no_symbols),
        ("GET", "/sandbox/clock"): public(control.clock),
        ("POST", "/sandbox/step"): Endpoint(control.step, "key", 0),
        ("POST", "/sandbox/leave"): Endpoint(control.leave, "key", 0),
        ("POST", "/sandbox/finish"): Endpoint(control.finish, "key", 0),
        ("GET", "/sandbox/score"): Endpoint(control.score, "key", 0),
        ("GET", "/sandbox/results"): Endpoint(control.results, "key", 0),
    }
    return table


class _Control:
    """Requests about the session itself: the clock, the listen keys, the end."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def time(self, params: Params) -> Any:
        """Tell the simulated time, and remember that it was told."""
        self._session.access.time_was_told()
        return self._session.market.time(params)

    def clock(self, _params: Params) -> Any:
        """Tell where the session stands."""
        return self._session.state()

    def step(self, account: str, params: Params) -> Any:
        """Let bars pass."""
        bars = params.whole("bars")
        self._session.step(1 if bars is None else bars, account)
        return self._session.state()

    def leave(self, account: str, _params: Params) -> Any:
        """Let the others go on alone."""
        self._session.leave(account)
        return self._session.state()

    def finish(self, _account: str, _params: Params) -> Any:
        """End the session; the results are written after this."""
        self._session.finish()
        return self._session.state()

    def score(self, account: str, _params: Params) -> Any:
        """Tell an account how it stands, and how many of its orders were refused."""
        session = self._session
        return score_so_far(session.floor, account) | {"refused": session.refused[account]}

    def results(self, account: str, _params: Params) -> Any:
        """Tell an account what it came to, as soon as that is written."""
        told = self._session.result
        return {"ready": told is not None, "results": (told or {}).get(account)}

    def order_counts(self, account: str, _params: Params) -> Any:
        """Tell how many orders an account has sent of late."""
        return self._session.limits.order_counts(account)

    def listen(self, account: str, _params: Params) -> Any:
        """Give a listen key."""
        return {"listenKey": self._session.feed.listen_key(account)}

    def keep_listening(self, account: str, params: Params) -> Any:
        """Let a listen key live on."""
        self._session.feed.keep(account, params.need("listenKey"))
        return {}

    def stop_listening(self, account: str, params: Params) -> Any:
        """Take a listen key back."""
        self._session.feed.close(account, params.need("listenKey"))
        return {}

    def nothing(self, _account: str, _params: Params) -> Any:
        """There is none of it here."""
        return []

    def no_symbols(self, _params: Params) -> Any:
        """There are no derivatives here."""
        return self._session.market.exchange_info(Params({})) | {"symbols": []}


_METHODS = {
    "ping": ("GET", "ping"),
    "time": ("GET", "time"),
    "exchangeInfo": ("GET", "exchangeInfo"),
    "depth": ("GET", "depth"),
    "trades.recent": ("GET", "trades"),
    "trades.historical": ("GET", "historicalTrades"),
    "trades.aggregate": ("GET", "aggTrades"),
    "klines": ("GET", "klines"),
    "uiKlines": ("GET", "uiKlines"),
    "avgPrice": ("GET", "avgPrice"),
    "ticker.24hr": ("GET", "ticker/24hr"),
    "ticker.price": ("GET", "ticker/price"),
    "ticker.book": ("GET", "ticker/bookTicker"),
    "account.status": ("GET", "account"),
    "account.commission": ("GET", "account/commission"),
    "order.place": ("POST", "order"),
    "order.test": ("POST", "order/test"),
    "order.cancel": ("DELETE", "order"),
    "order.cancelReplace": ("POST", "order/cancelReplace"),
    "order.status": ("GET", "order"),
    "openOrders.status": ("GET", "openOrders"),
    "openOrders.cancelAll": ("DELETE", "openOrders"),
    "allOrders": ("GET", "allOrders"),
    "myTrades": ("GET", "myTrades"),
    "orderList.place": ("POST", "order/oco"),
    "orderList.place.oco": ("POST", "orderList/oco"),
    "orderList.status": ("GET", "orderList"),
    "orderList.cancel": ("DELETE", "orderList"),
    "openOrderLists.status": ("GET", "openOrderList"),
    "allOrderLists": ("GET", "allOrderList"),
    "account.rateLimits.orders": ("GET", "rateLimit/order"),
    "userDataStream.start": ("POST", "userDataStream"),
    "userDataStream.ping": ("PUT", "userDataStream"),
    "userDataStream.stop": ("DELETE", "userDataStream"),
}


def _socket_methods(table: dict[tuple[str, str], Endpoint]) -> dict[str, Endpoint]:
    return {name: table[method, f"/api/v3/{path}"] for name, (method, path) in _METHODS.items()}


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
