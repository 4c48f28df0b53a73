"""``SimulationA2AInterface``: the market place as calls, for bots in any language.

A call never ends an episode: what is not valid is counted and answered with the reason. The clock
is not here; the runner moves it with ``BenchmarkWorld.end_tick``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.registry import configure
from agent_gym.envs.benchmark.calls import (
    MALFORMED,
    METHODS,
    OVER,
    REFUSED,
    TOO_MANY,
    UNKNOWN_METHOD,
    WRONG_PARAMETERS,
    BuyShares,
    ClosePosition,
    CreatePost,
    JoinGroup,
    OpenPosition,
    Reply,
    SellShares,
)
from agent_gym.envs.benchmark.floor import Floor
from agent_gym.envs.benchmark.records import ActionRecord, ActionType, Position
from agent_gym.envs.benchmark.views import Views
from agent_gym.envs.benchmark.world import BenchmarkWorld
from agent_gym.exchange.prediction import Side

KINDS: dict[str, ActionType] = {
    "a2a.buyShares": "buy_prediction",
    "a2a.sellShares": "sell_prediction",
    "a2a.openPosition": "open_perp",
    "a2a.closePosition": "close_perp",
    "a2a.createPost": "create_post",
    "a2a.joinGroup": "join_group",
}


class SimulationA2AInterface:
    """The 14 calls over one episode of a BenchmarkWorld, which must have been reset.

    Example:
        >>> len(METHODS)
        14
    """

    def __init__(self, world: BenchmarkWorld, *, max_calls: int | None = None) -> None:
        self._world = world
        self._max_calls = max_calls
        self._views = Views(world)
        self.calls: Counter[str] = Counter()
        self._tick, self._made = -1, 0
        views = self._views
        self._doors: dict[str, Callable[[Any], dict[str, Any]]] = {
            "a2a.getPredictions": lambda _: views.predictions(),
            "a2a.buyShares": self._buy,
            "a2a.sellShares": self._sell,
            "a2a.getPerpetuals": lambda _: views.perpetuals(),
            "a2a.openPosition": self._open,
            "a2a.closePosition": self._close,
            "a2a.getFeed": lambda _: views.feed(),
            "a2a.createPost": self._post,
            "a2a.getChats": lambda _: views.chats(),
            "a2a.joinGroup": self._join,
            "a2a.getBalance": lambda _: views.balance(),
            "a2a.getPortfolio": lambda _: views.portfolio(),
            "a2a.getPositions": lambda _: views.positions(),
            "a2a.getDashboard": lambda _: views.dashboard(),
        }

    @property
    def invalid(self) -> int:
        """Return how many calls were not valid."""
        return self._floor.invalid

    @property
    def records(self) -> tuple[ActionRecord, ...]:
        """Return what was done and tried so far; whether it was right is not in there."""
        return tuple(self._floor.actions)

    @property
    def _floor(self) -> Floor:
        return self._world.floor

    def handle(self, request: Any) -> dict[str, Any]:
        """Answer a JSON-RPC request."""
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            self._floor.refuse("query_state", "not a JSON-RPC request")
            return Reply(code=MALFORMED, error="a request has a method").as_json_rpc(None)
        reply = self.call(request["method"], request.get("params"))
        return reply.as_json_rpc(request.get("id"))

    def call(self, method: str, params: Any = None) -> Reply:
        """Carry out one call; a reply always comes back."""
        self.calls[method if method in METHODS else "unknown"] += 1
        kind = KINDS.get(method, "query_state")
        problem = self._problem(method, params)
        if problem is not None:
            self._floor.refuse(kind, problem.error or "")
            return problem
        before = self._floor.invalid
        try:
            given = configure(METHODS[method], params or {}, where=method)
        except ConfigError as error:
            self._floor.refuse(kind, str(error))
            return Reply(code=WRONG_PARAMETERS, error=str(error))
        try:
            return Reply(result=self._doors[method](given))
        except VenueError as error:
            if self._floor.invalid == before:  # the floor has counted its own refusals
                self._floor.refuse(kind, str(error))
            return Reply(code=REFUSED, error=str(error))

    def _problem(self, method: str, params: Any) -> Reply | None:
        """Say what is wrong with a call before its parameters are looked at."""
        if self._tick != self._floor.tick:
            self._tick, self._made = self._floor.tick, 0
        self._made += 1
        limit = self._world.config.calls_per_tick
        if method not in METHODS:
            known = ", ".join(METHODS)
            return Reply(code=UNKNOWN_METHOD, error=f"no such method; known: {known}")
        if self._made > limit:
            return Reply(code=TOO_MANY, error=f"more than {limit} calls in one tick")
        if self._max_calls is not None and self.calls.total() > self._max_calls:
            return Reply(code=TOO_MANY, error=f"more than {self._max_calls} calls in the episode")
        if params is not None and not isinstance(params, dict):
            return Reply(code=WRONG_PARAMETERS, error="parameters are given by name")
        if self._floor.finished and method in KINDS:
            return Reply(code=OVER, error="the episode is over")
        return None

    def _buy(self, call: BuyShares) -> dict[str, Any]:
        m, side = self._question(call.marketId), _side(call.outcome)
        trade = self._floor.buy_shares(m, side, call.amount)
        where = self._floor.book.open[call.marketId, call.outcome]
        return {
            "shares": trade.shares,
            "avgPrice": trade.average_price,
            "fee": trade.fee,
            "positionId": where.id,
        }

    def _sell(self, call: SellShares) -> dict[str, Any]:
        m = self._question(call.marketId)
        held = self._floor.held[m]
        sides = [name for name, n in (("YES", held.yes), ("NO", held.no)) if n > 0.0]
        chosen = call.outcome or (sides[0] if len(sides) == 1 else None)
        if chosen is None:
            what = "say which outcome to sell" if sides else "there is nothing to sell"
            raise VenueError(what, where=call.marketId)
        trade = self._floor.sell_shares(m, _side(chosen), call.shares)
        return {"proceeds": -trade.cost - trade.fee, "fee": trade.fee, "shares": -trade.shares}

    def _open(self, call: OpenPosition) -> dict[str, Any]:
        floor, m = self._floor, self._perpetual(call.ticker)
        limit = self._world.config.max_leverage
        if call.leverage > limit:
            raise VenueError("the venue does not lend so much", found=call.leverage, expected=limit)
        free = floor.desk.account.equity - floor.margin_used()
        if call.size > free:
            raise VenueError(
                "more than the free margin", where=call.ticker, found=call.size, expected=free
            )
        market, side = floor.snapshot.market_ids[m], call.side
        if (market, "SHORT" if side == "LONG" else "LONG") in floor.book.open:
            raise VenueError("there is a position on the other side; close it first", where=market)
        notional = call.size * call.leverage
        floor.order_perpetual(m, notional if side == "LONG" else -notional, closing=False)
        where = floor.book.position(market, side, floor.tick)
        return self._on_its_way(m, where)

    def _close(self, call: ClosePosition) -> dict[str, Any]:
        floor = self._floor
        where = floor.book.by_id(call.positionId)
        if where is None:
            raise VenueError("there is no such open position", found=call.positionId)
        m = floor.snapshot.market_ids.index(where.market)
        if m < floor.n_questions:
            trade = floor.sell_shares(m, _side(where.side))
            return {"pnl": where.flow, "exitPrice": trade.average_price, "status": "closed"}
        self._must_be_free(m)
        if where.size == 0.0:
            raise VenueError("the position has not been opened yet", found=call.positionId)
        floor.order_perpetual(m, 0.0, closing=True)
        return self._on_its_way(m, where)

    def _post(self, call: CreatePost) -> dict[str, Any]:
        if call.marketId is not None and call.marketId not in self._floor.snapshot.market_ids:
            raise VenueError("there is no such market", found=call.marketId)
        self._floor.note("create_post")
        return {"postId": self._views.write(call.content, call.marketId)}

    def _join(self, call: JoinGroup) -> dict[str, Any]:
        if call.groupId not in {group.id for group in self._floor.snapshot.groups}:
            raise VenueError("there is no such group", found=call.groupId)
        self._floor.note("join_group")
        self._views.joined.add(call.groupId)
        return {"joined": call.groupId}

    def _on_its_way(self, m: int, where: Position) -> dict[str, Any]:
        """Describe an order that fills in the next tick; its price is known then."""
        return {
            "positionId": where.id,
            "status": "fills in the next tick",
            "indicativePrice": self._floor.prices[m],
            "entryPrice": where.entry_price,
        }

    def _must_be_free(self, m: int) -> None:
        if m - self._floor.n_questions in self._floor.desk.waiting:
            raise VenueError(
                "an order of this perpetual is on its way", remedy="Wait for the next tick"
            )

    def _question(self, name: str) -> int:
        ids = self._floor.snapshot.market_ids[: self._floor.n_questions]
        if name not in ids:
            raise VenueError("there is no such prediction market", found=name)
        return ids.index(name)

    def _perpetual(self, name: str) -> int:
        for place, one in enumerate(self._floor.snapshot.perpetuals):
            if name in (one.ticker, one.id):
                m = self._floor.n_questions + place
                self._must_be_free(m)
                return m
        raise VenueError("there is no such perpetual", found=name)


def _side(outcome: str) -> Side:
    return cast(Side, outcome.lower())
