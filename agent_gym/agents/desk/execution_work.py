"""One order on its way over the routes: send, ask, rest, take back, next rung."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct

from agent_gym.agents.desk.breaker import CircuitBreaker
from agent_gym.agents.desk.execution_book import ExecutionBook
from agent_gym.agents.desk.execution_terms import (
    AttemptFill,
    Ending,
    ExecutionOrder,
    ExecutionPolicy,
    ExecutionReport,
)
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.routes import (
    OrderKind,
    Route,
    RouteBusy,
    RouteDown,
    RouteError,
    RouteOrder,
    RouteRefused,
    RouteState,
    RouteTimeout,
)
from agent_gym.agents.desk.view import Quote
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.seeds import Seeds

Phase: TypeAlias = Literal["send", "ask", "rest", "cancel", "done"]
WHOLE = 1e-9  # relative; what is left of an order below it is rounding
CANCEL_AGAIN_NS = 5 * SECOND_NS
GRACE_NS = 60 * SECOND_NS  # the desk takes an order back itself; the venue's own limit is a net
LONGEST_WAIT_S = 30.0
MOST_STEPS = 16  # in one poll; more would be a circle


class Tools(Struct, frozen=True):
    """What all orders of one execution share."""

    routes: tuple[Route, ...]
    policy: ExecutionPolicy
    breakers: dict[str, CircuitBreaker]
    book: ExecutionBook
    seeds: Seeds


class OrderWork:
    """The state of one order; ``step`` moves it as far as it goes now."""

    def __init__(self, order: ExecutionOrder, tools: Tools, now_ns: int) -> None:
        self.order = order
        self.phase: Phase = "send"
        self.ids: list[str] = []
        self._tools = tools
        self._policy = tools.policy
        kinds: tuple[OrderKind, ...] = ("market",) if order.limit_price is None else ("limit",)
        if tools.policy.use_market and "market" not in kinds and not order.immediate:
            kinds += ("market",)
        self._rungs = [(route, kind) for kind in kinds for route in tools.routes]
        self._rung = 0
        self._rng: np.random.Generator | None = None
        self._started_ns = now_ns
        self._deadline_ns = now_ns + round(tools.policy.deadline_s * SECOND_NS)
        self._ready_ns = now_ns
        self._since_ns = now_ns
        self._tries = 0
        self._sent: RouteOrder | None = None
        self._taken_back_ns: int | None = None
        self._seen_ns = now_ns
        self._orders = 0
        self._rounds = 0
        self._code: RejectCode | None = None
        self._refused = False
        self._stop = False
        self._retries = 0
        self._fallbacks = 0
        self._used: list[tuple[str, OrderKind]] = []
        self._arrivals: dict[str, tuple[str, OrderKind]] = {}
        self._first_failure_ns: int | None = None
        self._done_ns: int | None = None

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do: no order rests and none is in doubt."""
        return self.phase == "done"

    @property
    def rest(self) -> float:
        """Return the units still wanted, signed; rounding counts as none."""
        left = self.order.quantity - self._filled()
        return 0.0 if abs(left) <= WHOLE * abs(self.order.quantity) else left

    def withdraw(self) -> None:
        """Go no further than it must to be certain."""
        self._stop = True

    def step(self, now_ns: int, quote: Quote | None) -> None:
        """Do what can be done now."""
        for _ in range(MOST_STEPS):
            before = (self.phase, self._rung, self._tries, self._fallbacks)
            if self.phase == "send":
                self._send(now_ns, quote)
            elif self.phase == "ask":
                self._ask(now_ns)
            elif self.phase == "rest":
                self._watch(now_ns)
            elif self.phase == "cancel":
                self._take_back(now_ns)
            if self.phase == "done" or before == (
                self.phase,
                self._rung,
                self._tries,
                self._fallbacks,
            ):
                return

    def _send(self, now_ns: int, quote: Quote | None) -> None:
        spent = self._orders >= self._policy.max_attempts and self._sent is None
        if self._stop or now_ns >= self._deadline_ns or spent:
            self._finish(now_ns)
            return
        if now_ns < self._ready_ns:
            return
        route, kind = self._rungs[self._rung]
        if kind == "market" and self._too_far(quote):
            self._code = RejectCode.EXEC_SLIPPAGE_EXCEEDED
            self._ready_ns = now_ns + self._wait_ns(1)
        elif not self._tools.breakers[route.name].allows(now_ns):
            self._code = RejectCode.AGENT_UNAVAILABLE
            self._next_rung(now_ns)
        else:
            self._submit(route, self._sent or self._new_order(kind, now_ns), now_ns)

    def _submit(self, route: Route, order: RouteOrder, now_ns: int) -> None:
        if self._sent is None:
            self._used.append((route.name, order.kind))
        result = self._call(lambda: route.submit(order, now_ns), now_ns)
        if isinstance(result, RouteState):
            self._arrived(order)
            self._begin_rest(result, now_ns)
        elif isinstance(result, RouteTimeout):
            self._arrived(order)  # perhaps; what is not certain counts as if it had
            self.phase = "ask"
        elif isinstance(result, RouteBusy):
            self._again(now_ns, result.retry_after_ns)
        elif isinstance(result, RouteRefused) and not result.code.retryable:
            self._code, self._refused = result.code, True
            self._finish(now_ns)
        else:
            self._next_rung(now_ns)

    def _ask(self, now_ns: int) -> None:
        """Find out what became of an order that got no answer; until then nothing else is done."""
        route, order = self._rungs[self._rung][0], self._order()
        result = self._call(lambda: route.state(order.client_id, now_ns), now_ns)
        if not isinstance(result, RouteState):
            return
        if result.status != "unknown":
            self._begin_rest(result, now_ns)
            return
        self.phase = "send"
        if order.good_until_ns is not None and now_ns >= order.good_until_ns:
            self._next_rung(now_ns)
        else:
            self._again(now_ns, self._wait_ns(self._tries + 1))

    def _watch(self, now_ns: int) -> None:
        route, order = self._rungs[self._rung][0], self._order()
        if now_ns > self._seen_ns:
            result = self._call(lambda: route.state(order.client_id, now_ns), now_ns)
            if isinstance(result, RouteState):
                self._settle(result, now_ns)
        if self.phase != "rest":
            return
        policy = self._policy
        wait_s = policy.limit_wait_s if order.kind == "limit" else policy.market_wait_s
        waited = now_ns - self._since_ns >= round(wait_s * SECOND_NS)
        told = self._stop and now_ns > self._since_ns
        if waited or told or now_ns >= self._deadline_ns:
            self.phase = "cancel"
            self._taken_back_ns = None

    def _take_back(self, now_ns: int) -> None:
        """Cancel what rests, again and again until the route says that it rests no more."""
        route, order = self._rungs[self._rung][0], self._order()
        asked_ns = self._taken_back_ns
        if asked_ns is not None:  # the venue has the cancel; it may take a while to act
            result = self._call(lambda: route.state(order.client_id, now_ns), now_ns)
            if isinstance(result, RouteState):
                self._settle(result, now_ns)
            if self.phase != "cancel" or now_ns - asked_ns < CANCEL_AGAIN_NS:
                return
        result = self._call(lambda: route.cancel(order.client_id, now_ns), now_ns)
        if isinstance(result, RouteState):
            self._taken_back_ns = now_ns
        elif isinstance(result, RouteRefused):  # too late, most likely
            result = self._call(lambda: route.state(order.client_id, now_ns), now_ns)
        if isinstance(result, RouteState):
            self._settle(result, now_ns)

    def _begin_rest(self, state: RouteState, now_ns: int) -> None:
        self.phase = "rest"
        self._since_ns = now_ns
        self._settle(state, now_ns)

    def _settle(self, state: RouteState, now_ns: int) -> None:
        """Book what a route says; an order that rests no more leads to the next rung or the end."""
        self._seen_ns = now_ns
        self._tools.book.take(self._rungs[self._rung][0].name, self.order.symbol, state)
        if state.is_live:
            return
        if state.status == "rejected":
            self._fail(RejectCode.EXEC_EXCHANGE_REJECT, now_ns)
        if self.rest == 0.0:
            self._finish(now_ns)
        else:
            self._next_rung(now_ns)

    def _call(self, act: Callable[[], RouteState], now_ns: int) -> RouteState | RouteError:
        """Make one request; its failure is an answer too, and the route's breaker hears of it."""
        breaker = self._tools.breakers[self._rungs[self._rung][0].name]
        try:
            state = act()
        except (RouteTimeout, RouteDown) as error:
            breaker.failure(now_ns)
            late = isinstance(error, RouteTimeout)
            self._fail(RejectCode.AGENT_TIMEOUT if late else RejectCode.AGENT_UNAVAILABLE, now_ns)
            return error
        except RouteBusy as error:
            self._fail(RejectCode.AGENT_UNAVAILABLE, now_ns)
            return error
        except RouteRefused as error:
            breaker.success(now_ns)
            if self.phase == "send":
                self._fail(error.code, now_ns)
            return error
        breaker.success(now_ns)
        return state

    def _fail(self, code: RejectCode, now_ns: int) -> None:
        self._code = code
        if self._first_failure_ns is None:
            self._first_failure_ns = now_ns

    def _again(self, now_ns: int, wait_ns: int) -> None:
        """Send the same order once more after a wait, or give the rung up."""
        self._tries += 1
        if self._tries > self._policy.max_retries:
            self._next_rung(now_ns)
            return
        self._retries += 1
        self._ready_ns = now_ns + max(1, wait_ns)

    def _next_rung(self, now_ns: int) -> None:
        """Go on; after the last rung come the market orders once more, each time a bit later."""
        self.phase = "send"
        self._sent = None
        self._tries = 0
        self._fallbacks += 1
        self._ready_ns = now_ns
        self._rung += 1
        if self._rung == len(self._rungs):
            self._rung = len(self._rungs) - len(self._tools.routes)
            self._rounds += 1
            self._ready_ns = now_ns + self._wait_ns(self._rounds)

    def _new_order(self, kind: OrderKind, now_ns: int) -> RouteOrder:
        policy, order = self._policy, self.order
        wait_s = policy.limit_wait_s if kind == "limit" else policy.market_wait_s
        return RouteOrder(
            client_id=f"{order.signal_id}-{self._orders + 1}",
            symbol=order.symbol,
            quantity=self.rest,
            kind=kind,
            price=order.limit_price if kind == "limit" else None,
            reduce_only=order.reduce_only,
            good_until_ns=now_ns + round(wait_s * SECOND_NS) + GRACE_NS,
        )

    def _arrived(self, order: RouteOrder) -> None:
        """Note that an order may be at a venue: from now on its name belongs to it."""
        if self._sent is None:
            self._sent = order
            self._stop = self._stop or self.order.immediate
            self._orders += 1
            self.ids.append(order.client_id)
            self._arrivals[order.client_id] = (self._rungs[self._rung][0].name, order.kind)

    def _order(self) -> RouteOrder:
        assert self._sent is not None
        return self._sent

    def _filled(self) -> float:
        states = [self._tools.book.of(name) for name in self.ids]
        return sum(state.filled for state in states if state is not None)

    def _too_far(self, quote: Quote | None) -> bool:
        """Return whether a market order would pay too much; without a quote nobody can tell."""
        limit, reference = self._policy.max_slippage_bp, self.order.reference_price
        if limit is None or reference is None or quote is None:
            return False
        touch = quote.ask if self.order.quantity > 0.0 else quote.bid
        return _cost_bp(touch, reference, self.order.quantity) > limit

    def _wait_ns(self, turn: int) -> int:
        policy = self._policy
        if self._rng is None:
            self._rng = self._tools.seeds.child(self.order.signal_id).rng()
        spread = 1.0 + policy.jitter * (2.0 * self._rng.random() - 1.0)
        wait_s = min(policy.backoff_s * 2.0 ** (turn - 1), LONGEST_WAIT_S)
        return round(wait_s * spread * SECOND_NS)

    def _finish(self, now_ns: int) -> None:
        self.phase = "done"
        self._done_ns = now_ns

    def report(self) -> ExecutionReport:
        """Return how it stands."""
        order, states = self.order, [self._tools.book.of(name) for name in self.ids]
        filled = self._filled()
        paid = sum(s.filled * s.average_price for s in states if s and s.average_price is not None)
        average = paid / filled if filled and paid else None
        cost = None
        if average is not None and order.reference_price is not None:
            cost = _cost_bp(average, order.reference_price, order.quantity)
        status, code = self._ending(filled)
        return ExecutionReport(
            signal_id=order.signal_id,
            status=status,
            quantity=order.quantity,
            filled=filled,
            average_price=average,
            fees=sum(s.fees for s in states if s is not None),
            slippage_bp=cost,
            code=code,
            attempts=self._orders,
            retries=self._retries,
            fallbacks=self._fallbacks,
            routes=tuple(route for route, _ in self._used),
            kinds=tuple(kind for _, kind in self._used),
            fills=self._fills(),
            started_ns=self._started_ns,
            first_failure_ns=self._first_failure_ns,
            done_ns=self._done_ns,
        )

    def _fills(self) -> tuple[AttemptFill, ...]:
        book = self._tools.book
        return tuple(
            AttemptFill(name, route, kind, 0.0 if (told := book.of(name)) is None else told.filled)
            for name, (route, kind) in self._arrivals.items()
        )

    def _ending(self, filled: float) -> tuple[Ending, RejectCode | None]:
        if self.phase != "done":
            return "working", None
        if self.rest == 0.0:
            return "filled", None
        if filled:
            return "partial", RejectCode.EXEC_PARTIAL_EXPIRED
        code = self._code or RejectCode.EXEC_PARTIAL_EXPIRED
        refused = self._refused or code is RejectCode.EXEC_EXCHANGE_REJECT
        return ("rejected" if refused else "unfilled"), code


def _cost_bp(price: float, reference: float, quantity: float) -> float:
    return (1.0 if quantity > 0.0 else -1.0) * 1e4 * (price - reference) / reference
