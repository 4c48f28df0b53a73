"""Routed execution in the part of the execution agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_gym.agents.desk.answers import AgentTimedOut
from agent_gym.agents.desk.execution import ExecutionOrder, ExecutionReport, RoutedExecution
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentRequest
from agent_gym.agents.desk.view import Quote
from agent_gym.core.clock import Clock

Quotes = Callable[[int], Mapping[str, Quote]]


class RoutedExecutionAgent:
    """Works each order over the routes until it is done or its deadline has come.

    It knows every signal it was sent, so a question asked again looks at the same order and starts
    no second one.

    Args:
        execution: What trades.
        quotes: The market at a time, for the limit to slippage and the reference price.
        poll_s: How often it looks; it waits on the clock in between.
    """

    def __init__(
        self, execution: RoutedExecution, quotes: Quotes | None = None, poll_s: float = 0.25
    ) -> None:
        self.execution = execution
        self._quotes = quotes or (lambda _: {})
        self._poll_s = poll_s

    def answer(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Trade; past the deadline the order goes on, and ``state`` tells how."""
        now_ns = clock.now_ns()
        quotes = self._quotes(now_ns)
        signal, params = request.signal, request.signal.params
        if params.tif == "fok":  # routes cannot promise all or nothing
            return {"status": "reject", "code": RejectCode.EXEC_EXCHANGE_REJECT.value}
        side = 1.0 if params.side == "buy" else -1.0
        quote = quotes.get(signal.symbol)
        reference = params.price if quote is None else quote.mid
        order = ExecutionOrder(
            signal.signal_id,
            signal.symbol,
            side * request.size,
            params.price,
            reference,
            immediate=params.tif == "ioc",
        )
        self.execution.start(order, now_ns, quotes)
        return self._until_done(request, clock)

    def state(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any] | None:
        """Say how an order stands; None if it was never sent here."""
        self._poll(clock)
        report = self.execution.report(request.signal.signal_id)
        return None if report is None else _words(report)

    def cancel(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        """Take back what rests, and answer when it is certain how much had traded."""
        self.execution.withdraw(request.signal.signal_id, clock.now_ns())
        return self._until_done(request, clock)

    def _until_done(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any]:
        until_s = clock.monotonic_s() + request.deadline_ms / 1e3
        while True:
            report = self.execution.report(request.signal.signal_id)
            if report is not None and report.status != "working":
                return _words(report)
            left_s = until_s - clock.monotonic_s()
            if left_s <= 0.0:
                raise AgentTimedOut("the order is still on its way")
            clock.sleep_s(min(self._poll_s, left_s))
            self._poll(clock)

    def _poll(self, clock: Clock) -> None:
        now_ns = clock.now_ns()
        self.execution.poll(now_ns, self._quotes(now_ns))


def _words(report: ExecutionReport) -> Mapping[str, Any]:
    payload = {
        "filled": abs(report.filled),
        "avg_price": report.average_price,
        "fees": report.fees,
        "slippage_bp": report.slippage_bp,
        "rest": abs(report.quantity - report.filled) if report.status == "working" else 0.0,
        "attempts": report.attempts,
        "retries": report.retries,
    }
    if report.filled == 0.0 and report.code is not None:  # it is certain that nothing traded
        return {"status": "reject", "code": report.code.value, "payload": payload}
    return {"status": "ok", "payload": payload}
