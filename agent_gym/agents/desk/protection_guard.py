"""One protective order at a venue: placed, watched and taken back over a line that may fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from agent_gym.agents.desk.routes import (
    Route,
    RouteBusy,
    RouteDown,
    RouteError,
    RouteOrder,
    RouteRefused,
    RouteState,
    RouteTimeout,
)

Role: TypeAlias = Literal["stop", "take_profit", "exit"]
GuardPhase: TypeAlias = Literal["unsent", "doubtful", "live", "ended"]
WHOLE = 1e-9  # relative; a difference below it is rounding


class Guard:
    """An order that may only make a position smaller.

    ``doubtful`` is one whose sending got no answer: it is asked for before it is sent again, under
    the same name, so there are never two of it. ``lost`` is one that ended without being asked to.
    """

    def __init__(self, role: Role, order: RouteOrder) -> None:
        self.role = role
        self.order = order
        self.phase: GuardPhase = "unsent"
        self.filled = 0.0
        self.price_paid: float | None = None
        self.fees = 0.0
        self.is_lost = False
        self.is_retiring = False
        self.failed_cancels = 0
        self._is_cancelled = False

    @property
    def rest(self) -> float:
        """Return the units that it still guards, signed like the order."""
        return self.order.quantity - self.filled

    def fits(self, quantity: float, price: float | None) -> bool:
        """Return whether it guards this much at this price."""
        same_price = self.order.price == price
        return same_price and abs(self.rest - quantity) <= WHOLE * max(
            abs(quantity), abs(self.rest)
        )

    def place(self, route: Route, now_ns: int, tries: int) -> float:
        """Send it; return the units that traded at once. A doubtful one is asked for first."""
        for _ in range(tries):
            if self.phase == "doubtful":
                found = self._call(lambda: route.state(self.order.client_id, now_ns))
                if not isinstance(found, RouteState):
                    return 0.0
                if found.status != "unknown":
                    return self._take(found)
            answer = self._call(lambda: route.submit(self.order, now_ns))
            if isinstance(answer, RouteState):
                return self._take(answer)
            if isinstance(answer, RouteTimeout):
                self.phase = "doubtful"
                continue
            if isinstance(answer, RouteRefused):
                self.phase, self.is_lost = "ended", True
            return 0.0  # down or busy: it never left, and asking again at once is no use
        return 0.0

    def watch(self, route: Route, now_ns: int, tries: int) -> float:
        """Ask how it stands; return the units that traded since, signed like the order."""
        if self.phase in {"unsent", "doubtful"}:
            return self.place(route, now_ns, tries)
        state = self._call(lambda: route.state(self.order.client_id, now_ns))
        return self._take(state) if isinstance(state, RouteState) else 0.0

    def take_back(self, route: Route, now_ns: int) -> float:
        """Cancel it; return the units that traded first. Call again until it has ended."""
        self.is_retiring = True
        if self.phase == "unsent":
            self.phase = "ended"
            return 0.0
        first = 0.0
        if self._is_cancelled:  # the venue has the cancel; it may take a while to act
            first = self.watch(route, now_ns, 1)
            if self.phase == "ended":
                return first
        answer = self._call(lambda: route.cancel(self.order.client_id, now_ns))
        self._is_cancelled = isinstance(answer, RouteState)
        if isinstance(answer, RouteRefused):  # too late, or never there
            answer = self._call(lambda: route.state(self.order.client_id, now_ns))
        if not isinstance(answer, RouteState):
            self.failed_cancels += 1
            return first
        return first + self._take(answer)

    def _take(self, state: RouteState) -> float:
        new = state.filled - self.filled
        if abs(state.filled) > abs(self.filled):
            self.filled, self.fees, self.price_paid = state.filled, state.fees, state.average_price
        else:
            new = 0.0
        self.phase = "live" if state.is_live else "ended"
        whole = abs(self.rest) <= WHOLE * abs(self.order.quantity)
        self.is_lost = not state.is_live and not whole and not self.is_retiring
        return new

    @staticmethod
    def _call(act: Callable[[], RouteState]) -> RouteState | RouteError:
        try:
            return act()
        except (RouteTimeout, RouteDown, RouteBusy, RouteRefused) as error:
            return error
