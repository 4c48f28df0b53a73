"""What a client asks for: an order read from a request, and checked by the filters."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

from agent_gym.apps.sandbox.errors import NO_ICEBERG, ExchangeError, missing, neither, unneeded
from agent_gym.apps.sandbox.params import CLIENT_ID, Params
from agent_gym.apps.sandbox.symbols import ORDER_TYPES, Symbol
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Validity, Wish

VALIDITIES: dict[str, Validity] = {"GTC": "gtc", "IOC": "ioc", "FOK": "fok"}
KINDS = {
    "MARKET": OrderKind.MARKET,
    "LIMIT": OrderKind.LIMIT,
    "LIMIT_MAKER": OrderKind.LIMIT,
    "STOP_LOSS": OrderKind.STOP,
    "STOP_LOSS_LIMIT": OrderKind.STOP_LIMIT,
    "TAKE_PROFIT": OrderKind.TAKE,
    "TAKE_PROFIT_LIMIT": OrderKind.TAKE_LIMIT,
}
NEEDS = {
    "LIMIT": ("timeInForce", "quantity", "price"),
    "LIMIT_MAKER": ("quantity", "price"),
    "MARKET": (),
    "STOP_LOSS": ("quantity",),
    "STOP_LOSS_LIMIT": ("timeInForce", "quantity", "price"),
    "TAKE_PROFIT": ("quantity",),
    "TAKE_PROFIT_LIMIT": ("timeInForce", "quantity", "price"),
}
RESPONSES = ("ACK", "RESULT", "FULL")
TRIGGERS = ("stopPrice", "trailingDelta")
SHAPES = ("timeInForce", "quantity", "quoteOrderQty", "price", *TRIGGERS)


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
        qty, price = params.need_decimal("quantity"), params.decimal("price")
        stop, trail = params.decimal("stopPrice"), params.whole("trailingDelta")
        standing = floor.price(symbol.name)
        for one in (price, stop):
            if one is not None:
                symbol.check_price(one, standing)
        if trail is not None:
            symbol.check_trail(trail)
        symbol.check_qty(qty)
        symbol.check_notional(qty * (price or stop or Decimal(repr(standing))))
        limit, trigger = (None if one is None else float(one) for one in (price, stop))
        plain = KINDS[kind] in (OrderKind.STOP, OrderKind.TAKE)
        wish = Wish(
            symbol.name,
            KINDS[kind],
            float(sign * qty),
            trigger if plain else limit,
            _validity(params),
            kind == "LIMIT_MAKER",
            client_id,
            None if plain else trigger,
            float(trail or 0),
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
        standing = Decimal(repr(floor.price(symbol.name)))
        if qty is None:
            assert cost is not None
            symbol.check_notional(cost)
            qty = _bought_for(cost, symbol, floor, account, sign)
        symbol.check_qty(qty)
        symbol.check_notional(qty * standing)
        wish = Wish(symbol.name, OrderKind.MARKET, float(sign * qty), client_id=client_id)
        return cls(wish, "MARKET", cost or Decimal(0))


def response_of(params: Params) -> str | None:
    """Return how long an answer is wanted; what is not known is refused before anything is done."""
    said = params.text("newOrderRespType")
    if said is not None and said not in RESPONSES:
        raise ExchangeError(-1130, "Data sent for parameter 'newOrderRespType' is not valid.")
    return said


def _check_shape(params: Params, kind: str) -> None:
    """Refuse a request without what its type needs, or with what it has no use for."""
    for name in NEEDS[kind]:
        params.need(name)
    waits = KINDS[kind].waits
    if waits and not any(name in params for name in TRIGGERS):
        raise neither(*(params.called(name) for name in TRIGGERS))
    if "icebergQty" in params:
        raise NO_ICEBERG
    more = ("quantity", "quoteOrderQty") if kind == "MARKET" else TRIGGERS if waits else ()
    for name in SHAPES:
        if name in params and name not in {*NEEDS[kind], *more}:
            raise unneeded(params.called(name))


def _validity(params: Params) -> Validity:
    said = params.text("timeInForce") or "GTC"
    if said not in VALIDITIES:
        raise ExchangeError(-1115, "Invalid timeInForce.")
    return VALIDITIES[said]


def _bought_for(
    cost: Decimal, symbol: Symbol, floor: SpotFloor, account: str, sign: int
) -> Decimal:
    """Return how much an amount of money buys, fee included, in whole lots."""
    lot = Decimal(repr(symbol.instrument.lot))
    qty = floor.units_for(account, symbol.name, float(cost), buys=sign > 0)
    return (Decimal(repr(qty)) / lot).to_integral_value(ROUND_DOWN) * lot
