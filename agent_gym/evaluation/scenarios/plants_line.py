"""Faults on the way to the venue, in what it charges, and in what the desk is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs
from typing_extensions import override

from agent_gym.agents.desk.routes import (
    Route,
    RouteBusy,
    RouteOrder,
    RouteState,
    RouteTimeout,
)
from agent_gym.agents.desk.view import DeskView
from agent_gym.evaluation.scenarios.plants_plan import one_of
from agent_gym.evaluation.scenarios.sabotage import Sabotage
from agent_gym.exchange.costs import Costs

STORM = 5  # times that a failed order is sent again at once


class AlteredLine:
    """A line that hands everything on; a fault overrides one call."""

    def __init__(self, inner: Route) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        """Return the name of the line."""
        return self.inner.name

    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        """Send an order."""
        return self.inner.submit(order, now_ns)

    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        """Take an order back."""
        return self.inner.cancel(client_id, now_ns)

    def state(self, client_id: str, now_ns: int) -> RouteState:
        """Ask for an order."""
        return self.inner.state(client_id, now_ns)

    def position(self, symbol: str, now_ns: int) -> float:
        """Ask for a position."""
        return self.inner.position(symbol, now_ns)


class DoublingLine(AlteredLine):
    """Sends an order without an answer again under another name."""

    def __init__(self, inner: Route) -> None:
        super().__init__(inner)
        self._names: dict[str, str] = {}

    @override
    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        try:
            return self.inner.submit(order, now_ns)
        except RouteTimeout:
            again = f"{order.client_id}-again"
            self._names[order.client_id] = again
            state = self.inner.submit(structs.replace(order, client_id=again), now_ns)
            return structs.replace(state, client_id=order.client_id)

    @override
    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        state = self.inner.cancel(self._names.get(client_id, client_id), now_ns)
        return structs.replace(state, client_id=client_id)

    @override
    def state(self, client_id: str, now_ns: int) -> RouteState:
        state = self.inner.state(self._names.get(client_id, client_id), now_ns)
        return structs.replace(state, client_id=client_id)


class StormingLine(AlteredLine):
    """Sends a failed order again and again at once."""

    @override
    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        for _ in range(STORM):
            try:
                return self.inner.submit(order, now_ns)
            except (RouteTimeout, RouteBusy):
                continue
        return self.inner.submit(order, now_ns)


class LeavingLine(AlteredLine):
    """Says that an order is taken back and leaves it standing, without an end."""

    @override
    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        return self.inner.submit(structs.replace(order, good_until_ns=None), now_ns)

    @override
    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        return structs.replace(self.inner.state(client_id, now_ns), status="cancelled")


class FlippingLine(AlteredLine):
    """Turns one order in fifty around, and tells nobody."""

    @override
    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        if not one_of(50, order.client_id):
            return self.inner.submit(order, now_ns)
        turned = structs.replace(order, quantity=-order.quantity)
        return _turned(self.inner.submit(turned, now_ns))

    @override
    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        state = self.inner.cancel(client_id, now_ns)
        return _turned(state) if one_of(50, client_id) else state

    @override
    def state(self, client_id: str, now_ns: int) -> RouteState:
        state = self.inner.state(client_id, now_ns)
        return _turned(state) if one_of(50, client_id) else state


def _turned(state: RouteState) -> RouteState:
    return structs.replace(state, filled=-state.filled)


class ForgettingLine(AlteredLine):
    """Tells nothing of what had traded of an order that did not fill whole."""

    @override
    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        return _forgotten(self.inner.cancel(client_id, now_ns))

    @override
    def state(self, client_id: str, now_ns: int) -> RouteState:
        return _forgotten(self.inner.state(client_id, now_ns))


def _forgotten(state: RouteState) -> RouteState:
    whole = state.status == "filled"
    return state if whole else structs.replace(state, filled=0.0, average_price=None, fees=0.0)


class OtherLine(Sabotage):
    """A fault on every line to the venue."""

    def __init__(self, line: Callable[[Route], Route]) -> None:
        self._line = line

    @override
    def route(self, route: Route) -> Route:
        return self._line(route)


class OtherCosts(Sabotage):
    """A fault in what the venue charges: each of the named costs times a factor, plus a term."""

    def __init__(self, factors: Mapping[str, float], more: Mapping[str, int] | None = None) -> None:
        self._factors = factors
        self._more = more or {}

    @override
    def costs(self, costs: Costs) -> Costs:
        update: dict[str, Any] = {n: f * getattr(costs, n) for n, f in self._factors.items()}
        update |= {name: getattr(costs, name) + more for name, more in self._more.items()}
        return costs.model_copy(update=update)


class Slowness(Sabotage):
    """Agents take longer by a factor."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    @override
    def latency_ms(self, latency_ms: float) -> float:
        return self._factor * latency_ms


class WrongRisk(Sabotage):
    """Value at risk is told too small by a factor."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    @override
    def value_at_risk(self, value_at_risk: float) -> float:
        return self._factor * value_at_risk

    @override
    def view(self, view: DeskView) -> DeskView:
        holdings = view.holdings
        told = structs.replace(holdings, value_at_risk=self._factor * holdings.value_at_risk)
        return structs.replace(view, holdings=told)
