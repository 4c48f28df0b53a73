"""Bringing an order to the market over several routes, without ever trading it twice.

The ladder: a limit order on each route in turn, then a market order on each. Execution goes on to
the next rung only when it is certain what became of the last one: after a timeout it asks first,
and an order that still rests is taken back first. It works in steps on the time it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_gym.agents.desk.breaker import CircuitBreaker
from agent_gym.agents.desk.execution_book import ExecutionBook
from agent_gym.agents.desk.execution_terms import (
    AttemptFill,
    ExecutionOrder,
    ExecutionPolicy,
    ExecutionReport,
)
from agent_gym.agents.desk.execution_work import OrderWork, Tools
from agent_gym.agents.desk.routes import Route
from agent_gym.agents.desk.view import Quote
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds

__all__ = [
    "AttemptFill",
    "ExecutionBook",
    "ExecutionOrder",
    "ExecutionPolicy",
    "ExecutionReport",
    "RoutedExecution",
]


class RoutedExecution:
    """Works orders over routes; the first route is the primary.

    Args:
        routes: Lines to venues, best first.
        policy: Patience, retries and the limit to slippage.
        seeds: Where the jitter of retries is drawn from; each order has its own draws.

    ``book`` is what it believes to hold; ``breakers`` has one for each route.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        policy: ExecutionPolicy | None = None,
        seeds: Seeds | None = None,
    ) -> None:
        names = [route.name for route in routes]
        if not names or len(set(names)) != len(names):
            raise ConfigError("routes need different names, one at least", found=names)
        self.policy = policy or ExecutionPolicy()
        self.book = ExecutionBook()
        self.breakers = {name: CircuitBreaker.by(self.policy.breaker) for name in names}
        self._tools = Tools(tuple(routes), self.policy, self.breakers, self.book, seeds or Seeds(0))
        self._working: dict[str, OrderWork] = {}
        self._reports: dict[str, ExecutionReport] = {}

    def start(
        self, order: ExecutionOrder, now_ns: int, quotes: Mapping[str, Quote] | None = None
    ) -> ExecutionReport | None:
        """Take an order on and make the first step; a repeated signal id starts nothing."""
        known = order.signal_id in self._working or order.signal_id in self._reports
        if not known:
            self._working[order.signal_id] = OrderWork(order, self._tools, now_ns)
            self._step(order.signal_id, now_ns, quotes or {})
        return self._reports.get(order.signal_id)

    def poll(
        self, now_ns: int, quotes: Mapping[str, Quote] | None = None
    ) -> tuple[ExecutionReport, ...]:
        """Make a step for every order on its way; return those that have come to their end."""
        ended = [self._step(name, now_ns, quotes or {}) for name in tuple(self._working)]
        return tuple(report for report in ended if report is not None)

    def withdraw(self, signal_id: str, now_ns: int) -> None:
        """Take back what still rests and go no further; the report comes when that is certain."""
        if signal_id in self._working:
            self._working[signal_id].withdraw()
            self._step(signal_id, now_ns, {})

    def report(self, signal_id: str) -> ExecutionReport | None:
        """Return how an order ended, or how it stands; None if it was never started."""
        work = self._working.get(signal_id)
        return self._reports.get(signal_id) if work is None else work.report()

    @property
    def working(self) -> tuple[str, ...]:
        """Return the signals whose orders are on their way."""
        return tuple(self._working)

    def _step(self, name: str, now_ns: int, quotes: Mapping[str, Quote]) -> ExecutionReport | None:
        work = self._working[name]
        work.step(now_ns, quotes.get(work.order.symbol))
        if not work.is_done:
            return None
        del self._working[name]
        report = work.report()
        self._reports[name] = report
        return report
