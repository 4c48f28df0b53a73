"""Orders in the exchange's words: what a client is told of them."""

from __future__ import annotations

import secrets
from typing import Any

from agent_gym.apps.sandbox.market import MS_NS
from agent_gym.apps.sandbox.requests import Request
from agent_gym.apps.sandbox.symbols import Symbol, text
from agent_gym.exchange.spot_records import Fill, Pair, Ticket, TicketStatus

STATUSES = {
    TicketStatus.NEW: "NEW",
    TicketStatus.PARTIAL: "PARTIALLY_FILLED",
    TicketStatus.FILLED: "FILLED",
    TicketStatus.CANCELLED: "CANCELED",
    TicketStatus.EXPIRED: "EXPIRED",
}
NO_LIST = -1


def order_words(symbol: Symbol, ticket: Ticket, request: Request) -> dict[str, Any]:
    """Return an order as a query answers it."""
    wish = ticket.wish
    words = {
        "symbol": symbol.id,
        "orderId": ticket.id,
        "orderListId": NO_LIST if ticket.list_id is None else ticket.list_id,
        "clientOrderId": wish.client_id,
        "price": text(wish.limit_price or 0.0),
        "origQty": text(abs(wish.qty)),
        "executedQty": text(ticket.filled),
        "origQuoteOrderQty": text(float(request.cost)),
        "cummulativeQuoteQty": text(ticket.worth),
        "status": STATUSES[ticket.status],
        "timeInForce": wish.validity.upper(),
        "type": request.type,
        "side": "BUY" if wish.qty > 0.0 else "SELL",
        "stopPrice": text(wish.hit_price or 0.0),
        "icebergQty": text(0.0),
        "time": ticket.created_ns // MS_NS,
        "updateTime": ticket.updated_ns // MS_NS,
        "isWorking": ticket.works,
        "workingTime": working_ms(ticket),
        "selfTradePreventionMode": "NONE",
    }
    return words | ({"trailingDelta": round(wish.trail_bps)} if wish.trail_bps else {})


def working_ms(ticket: Ticket) -> int:
    """Return since when an order is in the market, -1 if it waits for a price."""
    since_ns = ticket.hit_ns if ticket.wish.kind.waits else ticket.created_ns
    return -1 if since_ns is None else since_ns // MS_NS


def list_words(pair: Pair, symbol: Symbol, now_ms: int) -> dict[str, Any]:
    """Return a pair of orders as a query answers it."""
    live = pair.live
    return {
        "orderListId": pair.id,
        "contingencyType": "OCO",
        "listStatusType": "EXEC_STARTED" if live else "ALL_DONE",
        "listOrderStatus": "EXECUTING" if live else "ALL_DONE",
        "listClientOrderId": pair.client_id,
        "transactionTime": now_ms,
        "symbol": symbol.id,
        "orders": [
            {"symbol": symbol.id, "orderId": one.id, "clientOrderId": one.wish.client_id}
            for one in pair.tickets
        ],
    }


def answer_words(
    symbol: Symbol, ticket: Ticket, request: Request, response: str | None
) -> dict[str, Any]:
    """Return an order as the answer to sending it, as long as was asked for."""
    kind = response or ("FULL" if request.type in ("MARKET", "LIMIT") else "ACK")
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


def fill_words(symbol: Symbol, fill: Fill, list_id: int | None) -> dict[str, Any]:
    """Return a fill as myTrades writes it."""
    return {
        "symbol": symbol.id,
        "id": fill.id,
        "orderId": fill.order,
        "orderListId": NO_LIST if list_id is None else list_id,
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
