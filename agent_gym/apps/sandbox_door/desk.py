"""The calls of an agent that trades on a sandbox exchange."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from agent_gym.apps.sandbox_door import answers
from agent_gym.apps.sandbox_door.arguments import (
    BarsOf,
    BookOf,
    FillsOf,
    Of,
    OfAny,
    OrderOf,
    Place,
    PlacePair,
    StepBy,
)
from agent_gym.apps.sandbox_door.client import SandboxClient
from agent_gym.apps.sandbox_door.errors import ExchangeRefusal
from agent_gym.apps.tool_desk import Call, Nothing, ToolDesk
from agent_gym.core.errors import AgentGymError


class ExchangeDesk(ToolDesk):
    """Carries out the calls of one account; the exchange decides what comes of them."""

    def __init__(self, client: SandboxClient) -> None:
        self._client = client
        super().__init__(self._market_calls() | self._account_calls() | self._session_calls())

    @override
    def told(self, error: AgentGymError) -> dict[str, Any]:
        """Return an error; of the exchange's own with its code and its words."""
        said = super().told(error)
        if isinstance(error, ExchangeRefusal):
            said |= {"code": error.code, "msg": error.msg}
        return said

    def _market_calls(self) -> dict[str, Call]:
        return {
            "exchange_info": Call(
                "What is traded, and the filters that orders must pass.", Nothing, self._info
            ),
            "bars": Call(
                "Bars of a symbol. The last one has only opened: its close is the price now.",
                BarsOf,
                self._bars,
            ),
            "price": Call("Price, best bid and ask, and the change of 24 hours.", Of, self._price),
            "order_book": Call("Bids and asks, the best first.", BookOf, self._book),
        }

    def _account_calls(self) -> dict[str, Call]:
        return {
            "account": Call("Your balances and the fees you pay.", Nothing, self._account),
            "place_order": Call(
                "Send an order. A MARKET order trades at once; others rest or wait for a price.",
                Place,
                self._place,
            ),
            "place_oco": Call(
                "Send a pair of orders of which one cancels the other: a target and a stop.",
                PlacePair,
                self._place_pair,
            ),
            "cancel_order": Call(
                "Take an open order back, and the other one of a pair.", OrderOf, self._cancel
            ),
            "order": Call("What has become of an order.", OrderOf, self._order),
            "open_orders": Call("Your orders that rest or wait.", OfAny, self._open_orders),
            "fills": Call("Your trades in a symbol, the newest last.", FillsOf, self._fills),
        }

    def _session_calls(self) -> dict[str, Call]:
        client = self._client
        return {
            "clock": Call(
                "Simulated time, the bar, and whether it is over. With speed null the clock "
                "stands until step.",
                Nothing,
                lambda _: client.session("GET", "clock"),
            ),
            "step": Call(
                "Let bars pass on a clock that stands; resting orders trade meanwhile.",
                StepBy,
                lambda asked: client.session("POST", "step", {"bars": asked.bars}),
            ),
            "score": Call(
                "Your equity, return, drawdown, fills and fees at the last close.",
                Nothing,
                lambda _: client.session("GET", "score"),
            ),
            "leave": Call(
                "Let other accounts go on without you, where bars pass for all together.",
                Nothing,
                lambda _: client.session("POST", "leave"),
            ),
            "finish": Call(
                "End the session for everybody before its last bar; it cannot be undone.",
                Nothing,
                lambda _: client.session("POST", "finish"),
            ),
            "results": Call(
                "All figures, and where the report is, once the session is over and written.",
                Nothing,
                lambda _: client.session("GET", "results"),
            ),
        }

    def _info(self, _asked: Nothing) -> dict[str, Any]:
        found = self._client.ask("publicGetExchangeInfo")
        return {"symbols": [answers.symbol_of(row) for row in found["symbols"]]}

    def _bars(self, asked: BarsOf) -> dict[str, Any]:
        interval = asked.interval or self._client.interval()
        params = {"symbol": asked.symbol, "interval": interval, "limit": asked.limit}
        return answers.bars_of(asked.symbol, interval, self._client.ask("publicGetKlines", params))

    def _price(self, asked: Of) -> dict[str, Any]:
        return answers.price_of(self._client.ask("publicGetTicker24hr", asked.model_dump()))

    def _book(self, asked: BookOf) -> dict[str, Any]:
        return answers.book_of(asked.symbol, self._client.ask("publicGetDepth", asked.model_dump()))

    def _account(self, _asked: Nothing) -> dict[str, Any]:
        return answers.account_of(self._client.ask("privateGetAccount"))

    def _place(self, asked: Place) -> dict[str, Any]:
        return answers.order_of(self._client.ask("privatePostOrder", asked.params()))

    def _place_pair(self, asked: PlacePair) -> dict[str, Any]:
        return answers.pair_of(self._client.ask("privatePostOrderListOco", asked.params()))

    def _cancel(self, asked: OrderOf) -> dict[str, Any]:
        found = self._client.ask("privateDeleteOrder", asked.model_dump())
        return answers.pair_of(found) if "orderReports" in found else answers.order_of(found)

    def _order(self, asked: OrderOf) -> dict[str, Any]:
        return answers.order_of(self._client.ask("privateGetOrder", asked.model_dump()))

    def _open_orders(self, asked: OfAny) -> dict[str, Any]:
        found = self._client.ask("privateGetOpenOrders", asked.model_dump(exclude_none=True))
        return {"orders": [answers.order_of(row) for row in found]}

    def _fills(self, asked: FillsOf) -> dict[str, Any]:
        found = self._client.ask("privateGetMyTrades", asked.model_dump())
        return {"fills": [answers.fill_of(row) for row in found]}
