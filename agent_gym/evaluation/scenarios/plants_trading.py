"""Faults in the desk's execution, its protections and its breakers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from agent_gym.agents.desk.breaker import CircuitBreaker
from agent_gym.agents.desk.execution import RoutedExecution
from agent_gym.agents.desk.protection import DrawdownBreaker, ProtectionKeeper
from agent_gym.agents.desk.protection_guard import Role
from agent_gym.agents.desk.routes import Route
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.plants_plan import AlteredPlan


class LonelyPlan(AlteredPlan):
    """Only the first route is ever used."""

    @override
    def make_execution(
        self, routes: Sequence[Route], seeds: Seeds | None = None
    ) -> RoutedExecution:
        return self.inner.make_execution(routes[:1], seeds)


class _StuckBreaker(CircuitBreaker):
    """A success while half open does not close it."""

    @override
    def success(self, now_ns: int) -> None:
        return


class StuckPlan(AlteredPlan):
    """A breaker that has opened once stays half open for ever."""

    @override
    def make_execution(
        self, routes: Sequence[Route], seeds: Seeds | None = None
    ) -> RoutedExecution:
        execution = self.inner.make_execution(routes, seeds)
        policy = self.config.execution.breaker
        for name in execution.breakers:
            execution.breakers[name] = _StuckBreaker(
                policy.failures, policy.window_s, policy.open_s
            )
        return execution


class _LazyKeeper(ProtectionKeeper):
    """Places a stop once and never fits it to the position."""

    @override
    def _guard(
        self, symbol: str, book: Any, wanted: tuple[Role, float | None], now_ns: int
    ) -> None:
        if wanted[0] == "stop" and "stop" in book.guards:
            return
        super()._guard(symbol, book, wanted, now_ns)


class _StoplessKeeper(ProtectionKeeper):
    """Places no stops."""

    @override
    def _guard(
        self, symbol: str, book: Any, wanted: tuple[Role, float | None], now_ns: int
    ) -> None:
        if wanted[0] != "stop":
            super()._guard(symbol, book, wanted, now_ns)


class _BlindKeeper(ProtectionKeeper):
    """Never asks what became of its guards."""

    @override
    def _watch(self, symbol: str, book: Any, now_ns: int) -> None:
        return


class OtherKeeperPlan(AlteredPlan):
    """Positions are looked after by another keeper."""

    keeper: type[ProtectionKeeper]

    @override
    def make_protection(self, route: Route, prefix: str = "guard") -> ProtectionKeeper:
        return self.keeper(route, self.config.protection, prefix)


class LazyPlan(OtherKeeperPlan):
    """Stops are not resized."""

    keeper = _LazyKeeper


class StoplessPlan(OtherKeeperPlan):
    """There are no stops."""

    keeper = _StoplessKeeper


class BlindPlan(OtherKeeperPlan):
    """Guards are placed and forgotten."""

    keeper = _BlindKeeper


class _LateBreaker(DrawdownBreaker):
    """Judges the equity of the bar before."""

    _told: float | None = None

    @override
    def on_bar(self, bar: int, equity: float, now_ns: int) -> bool:
        last, self._told = self._told, equity
        return super().on_bar(bar, equity if last is None else last, now_ns)


class LatePlan(AlteredPlan):
    """The drawdown breaker is a bar late."""

    @override
    def make_breaker(self, keepers: Sequence[ProtectionKeeper] = ()) -> DrawdownBreaker:
        return _LateBreaker(self.config.protection.drawdown_limit, keepers)
