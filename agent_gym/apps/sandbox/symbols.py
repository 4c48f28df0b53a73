"""The symbols of the sandbox: how they are called, and the filters that orders must pass."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agent_gym.apps.sandbox.errors import UNKNOWN_SYMBOL, filter_failure
from agent_gym.apps.sandbox.params import SYMBOL, Params
from agent_gym.core.errors import ConfigError
from agent_gym.exchange.venue import Venue
from agent_gym.markets.instrument import Instrument

ORDER_TYPES = (
    "LIMIT",
    "LIMIT_MAKER",
    "MARKET",
    "STOP_LOSS",
    "STOP_LOSS_LIMIT",
    "TAKE_PROFIT",
    "TAKE_PROFIT_LIMIT",
)
LARGEST_QTY, LARGEST_PRICE, LARGEST_NOTIONAL = 9_000_000, 1_000_000_000, 9_000_000_000
MULTIPLIER_UP, MULTIPLIER_DOWN = Decimal(5), Decimal("0.2")
MOST_ORDERS, MOST_WAITING_ORDERS = 200, 5
SHORTEST_TRAIL, LONGEST_TRAIL = 10, 2_000


def text(value: float) -> str:
    """Return a number as the exchange writes it.

    Example:
        >>> text(0.1), text(68_232.710086)
        ('0.10000000', '68232.71008600')
    """
    return f"{value:.8f}"


@dataclass(frozen=True, slots=True)
class Symbol:
    """An instrument under the name that the exchange gives it."""

    id: str
    instrument: Instrument

    @property
    def name(self) -> str:
        """Return what the venue calls it."""
        return self.instrument.symbol

    def check_qty(self, qty: Decimal) -> None:
        """Refuse a quantity off the grid."""
        step = Decimal(repr(self.instrument.lot))
        if qty < step or qty > LARGEST_QTY or qty % step:
            raise filter_failure("LOT_SIZE")

    def check_price(self, price: Decimal, standing: float) -> None:
        """Refuse a price off the grid, or far from the market."""
        tick = Decimal(repr(self.instrument.tick))
        if price < tick or price > LARGEST_PRICE or price % tick:
            raise filter_failure("PRICE_FILTER")
        middle = Decimal(repr(standing))
        if not middle * MULTIPLIER_DOWN <= price <= middle * MULTIPLIER_UP:
            raise filter_failure("PERCENT_PRICE_BY_SIDE")

    def check_trail(self, trail_bps: int) -> None:
        """Refuse a stop that would follow too close, or too far."""
        if not SHORTEST_TRAIL <= trail_bps <= LONGEST_TRAIL:
            raise filter_failure("TRAILING_DELTA")

    def check_notional(self, worth: Decimal) -> None:
        """Refuse an order that is worth too little, or too much."""
        if worth < Decimal(repr(self.instrument.min_notional)) or worth > LARGEST_NOTIONAL:
            raise filter_failure("NOTIONAL")

    def describe(self, *, is_open: bool) -> dict[str, Any]:
        """Return the entry of exchangeInfo."""
        one = self.instrument
        return {
            "symbol": self.id,
            "status": "TRADING" if is_open else "BREAK",
            "baseAsset": one.base,
            "baseAssetPrecision": 8,
            "quoteAsset": one.quote,
            "quotePrecision": 8,
            "quoteAssetPrecision": 8,
            "baseCommissionPrecision": 8,
            "quoteCommissionPrecision": 8,
            "orderTypes": list(ORDER_TYPES),
            "icebergAllowed": False,
            "ocoAllowed": True,
            "otoAllowed": False,
            "quoteOrderQtyMarketAllowed": True,
            "allowTrailingStop": True,
            "cancelReplaceAllowed": True,
            "amendAllowed": False,
            "isSpotTradingAllowed": True,
            "isMarginTradingAllowed": False,
            "filters": self._filters(),
            "permissions": [],
            "permissionSets": [["SPOT"]],
            "defaultSelfTradePreventionMode": "NONE",
            "allowedSelfTradePreventionModes": ["NONE"],
        }

    def _filters(self) -> list[dict[str, Any]]:
        one = self.instrument
        return [
            {
                "filterType": "PRICE_FILTER",
                "minPrice": text(one.tick),
                "maxPrice": text(LARGEST_PRICE),
                "tickSize": text(one.tick),
            },
            {
                "filterType": "LOT_SIZE",
                "minQty": text(one.lot),
                "maxQty": text(LARGEST_QTY),
                "stepSize": text(one.lot),
            },
            {
                "filterType": "PERCENT_PRICE_BY_SIDE",
                "bidMultiplierUp": str(MULTIPLIER_UP),
                "bidMultiplierDown": str(MULTIPLIER_DOWN),
                "askMultiplierUp": str(MULTIPLIER_UP),
                "askMultiplierDown": str(MULTIPLIER_DOWN),
                "avgPriceMins": 5,
            },
            {
                "filterType": "NOTIONAL",
                "minNotional": text(one.min_notional),
                "applyMinToMarket": True,
                "maxNotional": text(LARGEST_NOTIONAL),
                "applyMaxToMarket": False,
                "avgPriceMins": 5,
            },
            {
                "filterType": "TRAILING_DELTA",
                "minTrailingAboveDelta": SHORTEST_TRAIL,
                "maxTrailingAboveDelta": LONGEST_TRAIL,
                "minTrailingBelowDelta": SHORTEST_TRAIL,
                "maxTrailingBelowDelta": LONGEST_TRAIL,
            },
            {"filterType": "MAX_NUM_ORDERS", "maxNumOrders": MOST_ORDERS},
            {"filterType": "MAX_NUM_ALGO_ORDERS", "maxNumAlgoOrders": MOST_WAITING_ORDERS},
        ]


class SymbolBook:
    """The symbols of a venue by the exchange's names."""

    def __init__(self, venue: Venue) -> None:
        found = [venue.instrument(name) for name in venue.symbols]
        self.all = tuple(Symbol((one.base + one.quote).upper(), one) for one in found)
        self._by_id = {one.id: one for one in self.all}
        self._by_name = {one.name: one for one in self.all}
        if len(self._by_id) != len(self.all):
            raise ConfigError(
                "two symbols have the same name without the slash", found=venue.symbols
            )

    def named(self, name: str) -> Symbol:
        """Return a symbol by the venue's name."""
        return self._by_name[name]

    def find(self, symbol_id: str) -> Symbol:
        """Return a symbol by the exchange's name."""
        if symbol_id not in self._by_id:
            raise UNKNOWN_SYMBOL
        return self._by_id[symbol_id]

    def need(self, params: Params) -> Symbol:
        """Return the symbol that a request is about."""
        return self.find(params.need("symbol", SYMBOL))

    def chosen(self, params: Params) -> tuple[Symbol, ...]:
        """Return the symbols that a request names, all if it names none."""
        single = params.text("symbol", SYMBOL)
        if single is not None:
            return (self.find(single),)
        several = params.text("symbols")
        if several is None:
            return self.all
        names = [name.strip(' "') for name in several.strip("[]").split(",")]
        return tuple(self.find(name) for name in names)
