"""Orders that are sent in pairs: one cancels the other."""

from __future__ import annotations

import secrets
from typing import Any

from agent_gym.apps.sandbox.errors import (
    BAD_PRICES,
    CANCEL_REJECTED,
    DUPLICATE_ORDER,
    UNKNOWN_LIST,
    ExchangeError,
    neither,
)
from agent_gym.apps.sandbox.orders import answer_words, list_words
from agent_gym.apps.sandbox.params import CLIENT_ID, Params
from agent_gym.apps.sandbox.requests import Request, response_of
from agent_gym.apps.sandbox.symbols import Symbol
from agent_gym.apps.sandbox.trading import Trading
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.spot_records import Pair, Wish

COMMON = {name: name for name in ("symbol", "side", "quantity")}
LIMIT_LEG = COMMON | {
    "price": "price",
    "newClientOrderId": "limitClientOrderId",
    "icebergQty": "limitIcebergQty",
}
STOP_LEG = COMMON | {
    "price": "stopLimitPrice",
    "stopPrice": "stopPrice",
    "trailingDelta": "trailingDelta",
    "timeInForce": "stopLimitTimeInForce",
    "newClientOrderId": "stopClientOrderId",
    "icebergQty": "stopIcebergQty",
}
PARTS = ("type", "price", "stopPrice", "trailingDelta", "timeInForce", "icebergQty")
STOPS = ("STOP_LOSS", "STOP_LOSS_LIMIT")
PROFITS = ("LIMIT_MAKER", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT")
MISPLACED = {  # what must not lie on a side: code and words for (side, what it is)
    ("BUY", "LIMIT_MAKER"): (-1165, "A limit order in a buy OCO must be below."),
    ("SELL", "LIMIT_MAKER"): (-1166, "A limit order in a sell OCO must be above."),
    ("BUY", "STOP"): (-1196, "A stop loss order in a buy OCO must be above."),
    ("SELL", "STOP"): (-1197, "A stop loss order in a sell OCO must be below."),
    ("BUY", "TAKE"): (-1198, "A take profit order in a buy OCO must be below."),
    ("SELL", "TAKE"): (-1199, "A take profit order in a sell OCO must be above."),
}


class OrderLists:
    """The requests of accounts about pairs of orders."""

    def __init__(self, trading: Trading) -> None:
        self._trading, self._market = trading, trading.market
        self._floor, self._symbols = trading.market.floor, trading.market.symbols

    def place_old(self, account: str, params: Params) -> dict[str, Any]:
        """Send a pair as ``POST /api/v3/order/oco`` takes it: a limit and a stop."""
        kind = "STOP_LOSS_LIMIT" if "stopLimitPrice" in params else "STOP_LOSS"
        limit = params.part(LIMIT_LEG, type="LIMIT_MAKER")
        stop = params.part(STOP_LEG, type=kind)
        params.need("price")
        return self._place(account, params, (stop, limit))

    def place(self, account: str, params: Params) -> dict[str, Any]:
        """Send a pair as ``POST /api/v3/orderList/oco`` takes it: one above, one below."""
        side = params.need("side")
        legs: list[Params] = []
        kinds: list[str] = []
        for place in ("above", "below"):
            kind = params.need(f"{place}Type")
            if kind not in (*STOPS, *PROFITS):
                raise ExchangeError(-1158, "Order type not supported in OCO.")
            names = {name: f"{place}{name[0].upper()}{name[1:]}" for name in PARTS}
            names |= COMMON | {"newClientOrderId": f"{place}ClientOrderId"}
            legs.append(params.part(names))
            kinds.append(kind)
        _check_sides(side, *kinds)
        return self._place(account, params, (legs[0], legs[1]))

    def _place(self, account: str, params: Params, legs: tuple[Params, Params]) -> dict[str, Any]:
        symbol = self._symbols.need(params)
        response = response_of(params)
        client_id = params.text("listClientOrderId", CLIENT_ID) or secrets.token_hex(11)
        first, second = (Request.read(leg, symbol, self._floor, account) for leg in legs)
        self._check_prices(symbol, (first.wish, second.wish))
        self._trading.check_room(account, symbol, [first, second])
        if any(pair.client_id == client_id for pair in self._mine(account) if pair.live):
            raise DUPLICATE_ORDER
        wishes, now_ns = (first.wish, second.wish), self._trading.now_ns
        pair, changes = self._trading.attempt(
            lambda: self._floor.place_pair(account, wishes, client_id, now_ns)
        )
        reports = []
        for ticket, request in zip(pair.tickets, (first, second), strict=True):
            self._trading.keep(ticket, request)
            reports.append(answer_words(symbol, ticket, request, response or "RESULT"))
        self._trading.tell(changes)
        return self._words(pair) | {"orderReports": reports}

    def query(self, account: str, params: Params) -> dict[str, Any]:
        """Return a pair."""
        number, name = params.whole("orderListId"), params.text("origClientOrderId", CLIENT_ID)
        if number is None and name is None:
            raise neither("origClientOrderId", "orderListId")
        for pair in reversed(self._mine(account)):
            if pair.client_id == name or (name is None and pair.id == number):
                return self._words(pair)
        raise UNKNOWN_LIST

    def cancel(self, account: str, params: Params) -> dict[str, Any]:
        """Take a pair back."""
        symbol = self._symbols.need(params)
        number, name = params.whole("orderListId"), params.text("listClientOrderId", CLIENT_ID)
        if number is None and name is None:
            raise neither("orderListId", "listClientOrderId")
        client_id = params.text("newClientOrderId", CLIENT_ID)
        for pair in self._mine(account):
            named = pair.id == number or (number is None and pair.client_id == name)
            if not named or not pair.live or pair.symbol != symbol.name:
                continue
            live = next(ticket for ticket in pair.tickets if ticket.status.live)
            return self._trading.cancelled(live, client_id)
        raise CANCEL_REJECTED

    def open(self, account: str, _params: Params) -> list[dict[str, Any]]:
        """Return the pairs that can still trade."""
        return [self._words(pair) for pair in self._mine(account) if pair.live]

    def all(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return pairs, open or not, oldest first."""
        limit, first = params.limit(500, 1000), params.whole("fromId")
        found = [pair for pair in self._mine(account) if pair.id >= (first or 0)]
        shown = found[-limit:] if first is None else found[:limit]
        return [self._words(pair) for pair in shown]

    def _mine(self, account: str) -> list[Pair]:
        return [pair for pair in self._floor.pairs.values() if pair.account == account]

    def _words(self, pair: Pair) -> dict[str, Any]:
        return list_words(pair, self._symbols.named(pair.symbol), self._market.now_ms)

    def _check_prices(self, symbol: Symbol, wishes: tuple[Wish, Wish]) -> None:
        """Refuse a pair that does not have the price of this moment between its orders."""
        standing = self._floor.price(symbol.name)
        for wish in wishes:
            price = wish.hit_price if wish.kind.waits else wish.limit_price
            if price is None:  # it trails from here
                continue
            stops = wish.kind in (OrderKind.STOP, OrderKind.STOP_LIMIT)
            above = (wish.qty > 0.0) == stops
            if not (price > standing if above else price < standing):
                raise BAD_PRICES


def _check_sides(side: str, above: str, below: str) -> None:
    """Refuse two limits, two stops, or one where the other belongs."""
    if above == below == "LIMIT_MAKER":
        raise ExchangeError(-1168, "At least one OCO order must be contingent.")
    wrong_above, wrong_below = (STOPS, PROFITS) if side == "SELL" else (PROFITS, STOPS)
    for kind, wrong in ((above, wrong_above), (below, wrong_below)):
        if kind in wrong and side in ("BUY", "SELL"):
            what = "LIMIT_MAKER" if kind == "LIMIT_MAKER" else kind.split("_")[0]
            raise ExchangeError(*MISPLACED[side, what])
