"""Orders in the exchange's words: read from a request, checked by filters, written as answers."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from agent_gym.apps.sandbox.errors import ExchangeError, missing, unneeded
from agent_gym.apps.sandbox.market import MS_NS
from agent_gym.apps.sandbox.params import CLIENT_ID, Params
from agent_gym.apps.sandbox.symbols import ORDER_TYPES, Symbol, text
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Fill, Ticket, TicketStatus, Validity, Wish

VALIDITIES: dict[str, Validity] = {"GTC": "gtc", "IOC": "ioc", "FOK": "fok"}
STATUSES = {
    TicketStatus.NEW: "NEW",
    TicketStatus.PARTIAL: "PARTIALLY_FILLED",
    TicketStatus.FILLED: "FILLED",
    TicketStatus.CANCELLED: "CANCELED",
    TicketStatus.EXPIRED: "EXPIRED",
}
RESPONSES = ("ACK", "RESULT", "FULL")
NEEDS = {
    "LIMIT": ("timeInForce", "quantity", "price"),
    "LIMIT_MAKER": ("quantity", "price"),
    "MARKET": (),
    "STOP_LOSS": ("quantity", "stopPrice"),
}
MAY_HAVE = {"MARKET": ("quantity", "quoteOrderQty")}
SHAPES = ("timeInForce", "quantity", "quoteOrderQty", "price", "stopPrice")
NOT_HERE = ("icebergQty", "trailingDelta")


@dataclass(frozen=True, slots=True)
class Request:
    """An order as it was asked for."""

    wish: Wish
    type: str
    cost: Decimal = Decimal(0)

    @classmethod
    def read(cls, params: Params, symbol: Symbol, floor: SpotFloor, account: str) -> Request:
        """Return the order that a request asks for, or raise the exchange's error."""
        side, kind = params.need("side"), params.need("type")
        if side not in ("BUY", "SELL"):
            raise ExchangeError(-1117, "Invalid side.")
        if kind not in ORDER_TYPES:
            raise ExchangeError(-1116, "Invalid orderType.")
        _check_shape(params, kind)
        sign = 1 if side == "BUY" else -1
        client_id = params.text("newClientOrderId", CLIENT_ID) or secrets.token_hex(11)
        if kind == "MARKET":
            return cls._market(params, symbol, floor, account, sign, client_id)
        qty = params.need_decimal("quantity")
        price = params.need_decimal("stopPrice" if kind == "STOP_LOSS" else "price")
        standing = _standing(floor, symbol)
        symbol.check_price(price, standing)
        symbol.check_qty(qty)
        symbol.check_notional(qty * price)
        wish = Wish(
            symbol.name,
            OrderKind.STOP if kind == "STOP_LOSS" else OrderKind.LIMIT,
            float(sign * qty),
            float(price),
            _validity(params),
            kind == "LIMIT_MAKER",
            client_id,
        )
        return cls(wish, kind)

    @classmethod
    def _market(
        cls,
        params: Params,
        symbol: Symbol,
        floor: SpotFloor,
        account: str,
        sign: int,
        client_id: str,
    ) -> Request:
        qty, cost = params.decimal("quantity"), params.decimal("quoteOrderQty")
        if (qty is None) == (cost is None):
            raise missing("quantity") if qty is None else unneeded("quoteOrderQty")
        standing = Decimal(repr(_standing(floor, symbol)))
        if qty is None:
            assert cost is not None
            symbol.check_notional(cost)
            qty = _bought_for(cost, symbol, floor, account, sign)
        symbol.check_qty(qty)
        symbol.check_notional(qty * standing)
        wish = Wish(symbol.name, OrderKind.MARKET, float(sign * qty), client_id=client_id)
        return cls(wish, "MARKET", cost or Decimal(0))


def _check_shape(params: Params, kind: str) -> None:
    for name in NEEDS[kind]:
        params.need(name)
    allowed = {*NEEDS[kind], *MAY_HAVE.get(kind, ())}
    for name in (*SHAPES, *NOT_HERE):
        if name in params and name not in allowed:
            raise unneeded(name)


def _validity(params: Params) -> Validity:
    said = params.text("timeInForce") or "GTC"
    if said not in VALIDITIES:
        raise ExchangeError(-1115, "Invalid timeInForce.")
    return VALIDITIES[said]


def _standing(floor: SpotFloor, symbol: Symbol) -> float:
    return floor.price(symbol.name)


def _bought_for(
    cost: Decimal, symbol: Symbol, floor: SpotFloor, account: str, sign: int
) -> Decimal:
    """Return how much an amount of money buys, fee included, in whole lots."""
    lot = Decimal(repr(symbol.instrument.lot))
    qty = floor.units_for(account, symbol.name, float(cost), buys=sign > 0)
    return (Decimal(repr(qty)) / lot).to_integral_value(ROUND_DOWN) * lot


def order_words(symbol: Symbol, ticket: Ticket, request: Request) -> dict[str, Any]:
    """Return an order as a query answers it."""
    wish = ticket.wish
    stop = wish.kind is OrderKind.STOP
    return {
        "symbol": symbol.id,
        "orderId": ticket.id,
        "orderListId": -1,
        "clientOrderId": wish.client_id,
        "price": text(0.0 if stop else wish.price or 0.0),
        "origQty": text(abs(wish.qty)),
        "executedQty": text(ticket.filled),
        "origQuoteOrderQty": text(float(request.cost)),
        "cummulativeQuoteQty": text(ticket.worth),
        "status": STATUSES[ticket.status],
        "timeInForce": wish.validity.upper(),
        "type": request.type,
        "side": "BUY" if wish.qty > 0.0 else "SELL",
        "stopPrice": text(wish.price or 0.0 if stop else 0.0),
        "icebergQty": text(0.0),
        "time": ticket.created_ns // MS_NS,
        "updateTime": ticket.updated_ns // MS_NS,
        "isWorking": not stop,
        "workingTime": ticket.created_ns // MS_NS,
        "selfTradePreventionMode": "NONE",
    }


def answer_words(
    symbol: Symbol, ticket: Ticket, request: Request, response: str | None
) -> dict[str, Any]:
    """Return an order as the answer to sending it, as long as was asked for."""
    kind = response or ("FULL" if request.type in ("MARKET", "LIMIT") else "ACK")
    if kind not in RESPONSES:
        raise ExchangeError(-1130, "Data sent for parameter 'newOrderRespType' is not valid.")
    words = order_words(symbol, ticket, request)
    words["transactTime"] = words.pop("time")
    del words["updateTime"], words["isWorking"], words["icebergQty"]
    if kind == "ACK":
        short = ("symbol", "orderId", "orderListId", "clientOrderId", "transactTime")
        return {name: words[name] for name in short}
    if kind == "FULL":
        words["fills"] = [
            {
                "price": text(fill.price),
                "qty": text(abs(fill.qty)),
                "commission": text(fill.fee),
                "commissionAsset": symbol.instrument.quote,
                "tradeId": fill.id,
            }
            for fill in ticket.fills
        ]
    return words


def cancel_words(
    symbol: Symbol, ticket: Ticket, request: Request, client_id: str | None
) -> dict[str, Any]:
    """Return an order as the answer to its cancel."""
    words = order_words(symbol, ticket, request)
    words["origClientOrderId"] = words["clientOrderId"]
    words["clientOrderId"] = client_id or secrets.token_hex(11)
    words["transactTime"] = words.pop("updateTime")
    for name in ("time", "isWorking", "workingTime", "icebergQty"):
        del words[name]
    return words


def fill_words(symbol: Symbol, fill: Fill) -> dict[str, Any]:
    """Return a fill as myTrades writes it."""
    return {
        "symbol": symbol.id,
        "id": fill.id,
        "orderId": fill.order,
        "orderListId": -1,
        "price": text(fill.price),
        "qty": text(abs(fill.qty)),
        "quoteQty": text(abs(fill.qty) * fill.price),
        "commission": text(fill.fee),
        "commissionAsset": symbol.instrument.quote,
        "time": fill.ts // MS_NS,
        "isBuyer": fill.qty > 0.0,
        "isMaker": fill.maker,
        "isBestMatch": True,
    }
