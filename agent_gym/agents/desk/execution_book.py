"""What execution believes to hold, fill by fill."""

from __future__ import annotations

from agent_gym.agents.desk.routes import RouteState


class ExecutionBook:
    """Fills by client id, positions by route and symbol.

    A state that is told twice counts once, and one that tells of less than is known (it was
    overtaken on the way) takes nothing back.

    Example:
        >>> book = ExecutionBook()
        >>> book.take("primary", "BTC/USDT", RouteState("s1-1", "partial", 0.4, 100.0))
        0.4
        >>> book.take("primary", "BTC/USDT", RouteState("s1-1", "filled", 1.0, 101.0))
        0.6
        >>> book.position("BTC/USDT")
        1.0
    """

    def __init__(self) -> None:
        self._fills: dict[str, tuple[str, str, RouteState]] = {}
        self._positions: dict[tuple[str, str], float] = {}

    def take(self, route: str, symbol: str, state: RouteState) -> float:
        """Note what a route says of an order; return the units that are new, signed."""
        known = self._fills.get(state.client_id)
        before = 0.0 if known is None else known[2].filled
        if abs(state.filled) <= abs(before):
            return 0.0
        self._fills[state.client_id] = (route, symbol, state)
        new = state.filled - before
        self._positions[route, symbol] = self._positions.get((route, symbol), 0.0) + new
        return new

    def of(self, client_id: str) -> RouteState | None:
        """Return the most that was told of an order's fills, None if nothing traded."""
        known = self._fills.get(client_id)
        return None if known is None else known[2]

    def position(self, symbol: str, route: str | None = None) -> float:
        """Return what is held of a symbol, on one route or on all."""
        return sum(
            held
            for (where, what), held in self._positions.items()
            if what == symbol and route in {None, where}
        )
