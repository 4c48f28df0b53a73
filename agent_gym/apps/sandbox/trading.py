"""What an account may ask: its balances, its orders, its fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_gym.apps.sandbox.errors import (
    CANCEL_REJECTED,
    DUPLICATE_ORDER,
    REFUSALS,
    UNKNOWN_ORDER,
    ExchangeError,
    filter_failure,
    missing,
)
from agent_gym.apps.sandbox.market import MS_NS, MarketData
from agent_gym.apps.sandbox.orders import (
    Request,
    answer_words,
    cancel_words,
    fill_words,
    order_words,
)
from agent_gym.apps.sandbox.params import CLIENT_ID, Params
from agent_gym.apps.sandbox.symbols import MOST_ORDERS, Symbol, text
from agent_gym.core.errors import VenueError
from agent_gym.exchange.costs import BPS
from agent_gym.exchange.spot_records import Change, Refused, Ticket

Told = Callable[[list[Change]], None]


class Trading:
    """The requests of accounts.

    Args:
        market: What everybody sees, and the floor behind it.
        tell: Called with what has changed.
    """

    def __init__(self, market: MarketData, tell: Told) -> None:
        self._market, self._floor, self._symbols = market, market.floor, market.symbols
        self._tell = tell
        self.requests: dict[int, Request] = {}
        self._named: dict[tuple[str, str], int] = {}

    # The account.

    def account(self, account: str, params: Params) -> dict[str, Any]:
        """Return balances and fees."""
        maker, taker = self._rates()
        hide = params.text("omitZeroBalances") == "true"
        balances = [
            {"asset": asset, "free": text(one.free), "locked": text(one.locked)}
            for asset, one in self._floor.balances(account).items()
            if not hide or one.free or one.locked
        ]
        return {
            "makerCommission": round(maker / BPS),
            "takerCommission": round(taker / BPS),
            "buyerCommission": 0,
            "sellerCommission": 0,
            "commissionRates": {
                "maker": text(maker),
                "taker": text(taker),
                "buyer": text(0.0),
                "seller": text(0.0),
            },
            "canTrade": not self._floor.finished,
            "canWithdraw": False,
            "canDeposit": False,
            "brokered": False,
            "requireSelfTradePrevention": False,
            "preventSor": False,
            "updateTime": self._floor.opened_ns // MS_NS,
            "accountType": "SPOT",
            "balances": balances,
            "permissions": ["SPOT"],
            "uid": 1 + list(self._floor.marks).index(account),
        }

    def commission(self, _account: str, params: Params) -> dict[str, Any]:
        """Return the fees of a symbol."""
        maker, taker = self._rates()
        rates = {"maker": text(maker), "taker": text(taker), "buyer": "0", "seller": "0"}
        return {"symbol": self._symbols.need(params).id, "standardCommission": rates}

    def trade_fees(self, _account: str, params: Params) -> list[dict[str, Any]]:
        """Return the fees of symbols."""
        maker, taker = self._rates()
        return [
            {"symbol": one.id, "makerCommission": text(maker), "takerCommission": text(taker)}
            for one in self._symbols.chosen(params)
        ]

    def coins(self, account: str, _params: Params) -> list[dict[str, Any]]:
        """Return the assets; nothing comes in or goes out here."""
        return [
            {
                "coin": asset,
                "name": asset,
                "free": text(one.free),
                "locked": text(one.locked),
                "trading": True,
                "depositAllEnable": False,
                "withdrawAllEnable": False,
                "isLegalMoney": False,
                "networkList": [],
            }
            for asset, one in self._floor.balances(account).items()
        ]

    # Orders.

    def place(self, account: str, params: Params) -> dict[str, Any]:
        """Send an order."""
        symbol, request = self._request(account, params)
        response = params.text("newOrderRespType")
        ticket, changes = self._attempt(
            lambda: self._floor.place(account, request.wish, self._now_ns)
        )
        self.requests[ticket.id] = request
        self._named[account, request.wish.client_id] = ticket.id
        self._tell(changes)
        return answer_words(symbol, ticket, request, response)

    def test(self, account: str, params: Params) -> dict[str, Any]:
        """Check an order without sending it."""
        _, request = self._request(account, params)
        self._attempt(lambda: self._floor.check(account, request.wish))
        return {}

    def cancel(self, account: str, params: Params) -> dict[str, Any]:
        """Take an order back."""
        symbol = self._symbols.need(params)
        ticket = self._find(account, symbol, params)
        if ticket is None:
            raise CANCEL_REJECTED
        return self._cancelled(account, symbol, ticket, params.text("newClientOrderId", CLIENT_ID))

    def replace(self, account: str, params: Params) -> dict[str, Any]:
        """Take an order back and send another; if the first fails the second is not sent."""
        mode = params.need("cancelReplaceMode")
        if mode not in ("STOP_ON_FAILURE", "ALLOW_FAILURE"):
            raise ExchangeError(-1130, "Data sent for parameter 'cancelReplaceMode' is not valid.")
        old = Params(
            {
                "symbol": params.need("symbol"),
                "orderId": params.text("cancelOrderId") or "",
                "origClientOrderId": params.text("cancelOrigClientOrderId") or "",
            }
        )
        said: dict[str, Any] = {"cancelResult": "SUCCESS", "newOrderResult": "NOT_ATTEMPTED"}
        try:
            said["cancelResponse"] = self.cancel(account, old)
        except ExchangeError as error:
            said |= {"cancelResult": "FAILURE", "cancelResponse": error.as_dict()}
            if mode == "STOP_ON_FAILURE":
                raise ExchangeError(-2022, "Order cancel-replace failed.", 400, said) from error
        try:
            said["newOrderResponse"] = self.place(account, params)
        except ExchangeError as error:
            said |= {"newOrderResult": "FAILURE", "newOrderResponse": error.as_dict()}
        else:
            said["newOrderResult"] = "SUCCESS"
        if "FAILURE" in (said["cancelResult"], said["newOrderResult"]):
            whole = said["cancelResult"] == said["newOrderResult"]
            code, words = (-2022, "failed") if whole else (-2021, "partially failed")
            raise ExchangeError(code, f"Order cancel-replace {words}.", 400 if whole else 409, said)
        return said

    def cancel_all(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Take all orders of a symbol back."""
        symbol = self._symbols.need(params)
        live = [one for one in self._floor.open_tickets(account) if one.wish.symbol == symbol.name]
        if not live:
            raise CANCEL_REJECTED
        return [self._cancelled(account, symbol, ticket, None) for ticket in live]

    def query(self, account: str, params: Params) -> dict[str, Any]:
        """Return an order."""
        symbol = self._symbols.need(params)
        ticket = self._find(account, symbol, params)
        if ticket is None:
            raise UNKNOWN_ORDER
        return self.words(ticket)

    def open_orders(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return the orders that can still trade."""
        chosen = {one.name for one in self._symbols.chosen(params)}
        live = self._floor.open_tickets(account)
        return [self.words(one) for one in live if one.wish.symbol in chosen]

    def all_orders(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return orders of a symbol, open or not, oldest first."""
        symbol, limit = self._symbols.need(params), params.limit(500, 1000)
        first, start, end = (params.whole(name) for name in ("orderId", "startTime", "endTime"))
        found = [
            one
            for one in self._floor.tickets.values()
            if one.account == account
            and one.wish.symbol == symbol.name
            and one.id >= (first or 0)
            and _within(one.created_ns, start, end)
        ]
        newest = first is None and start is None
        return [self.words(one) for one in (found[-limit:] if newest else found[:limit])]

    def my_trades(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return the fills of a symbol, oldest first."""
        symbol, limit = self._symbols.need(params), params.limit(500, 1000)
        order, first = params.whole("orderId"), params.whole("fromId")
        start, end = params.whole("startTime"), params.whole("endTime")
        found = [
            one
            for one in self._floor.fills
            if one.account == account
            and one.symbol == symbol.name
            and order in (None, one.order)
            and one.id >= (first or 0)
            and _within(one.ts, start, end)
        ]
        newest = first is None and start is None
        return [fill_words(symbol, one) for one in (found[-limit:] if newest else found[:limit])]

    def words(self, ticket: Ticket) -> dict[str, Any]:
        """Return an order as a query answers it."""
        symbol = self._symbols.named(ticket.wish.symbol)
        return order_words(symbol, ticket, self.requests[ticket.id])

    # How it is done.

    @property
    def _now_ns(self) -> int:
        return self._market.now_ms * MS_NS

    def _rates(self) -> tuple[float, float]:
        costs = self._floor.venue.costs
        return costs.maker_bps * BPS, costs.taker_bps * BPS

    def _request(self, account: str, params: Params) -> tuple[Symbol, Request]:
        symbol = self._symbols.need(params)
        request = Request.read(params, symbol, self._floor, account)
        live = self._floor.open_tickets(account)
        if any(one.wish.client_id == request.wish.client_id for one in live):
            raise DUPLICATE_ORDER
        if sum(one.wish.symbol == symbol.name for one in live) >= MOST_ORDERS:
            raise filter_failure("MAX_NUM_ORDERS")
        return symbol, request

    def _attempt(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Refused as refused:
            raise REFUSALS[refused.reason] from refused
        except VenueError as error:
            raise ExchangeError(-1013, error.what) from error

    def _find(self, account: str, symbol: Symbol, params: Params) -> Ticket | None:
        number, name = params.whole("orderId"), params.text("origClientOrderId", CLIENT_ID)
        if number is None and name is None:
            raise missing("orderId")
        if number is None:
            number = self._named.get((account, name or ""), 0)
        found = self._floor.ticket(account, number)
        if found is None or found.wish.symbol != symbol.name:
            return None
        return found

    def _cancelled(
        self, account: str, symbol: Symbol, ticket: Ticket, client_id: str | None
    ) -> dict[str, Any]:
        _, changes = self._attempt(lambda: self._floor.cancel(account, ticket.id, self._now_ns))
        self._tell(changes)
        return cancel_words(symbol, ticket, self.requests[ticket.id], client_id)


def _within(at_ns: int, start_ms: int | None, end_ms: int | None) -> bool:
    at_ms = at_ns // MS_NS
    return at_ms >= (start_ms or 0) and (end_ms is None or at_ms <= end_ms)
