"""Writing down what the desk learns: one place for the context and the log, in the same words."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, structs

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.flow import FlowResult, FlowState, PaperFill, Transition, check_step
from agent_gym.agents.desk.log import CoreAgentLogger
from agent_gym.agents.desk.logic import trace_id
from agent_gym.agents.desk.redaction import Redactor
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import (
    AgentRequest,
    AgentResponse,
    FilterResult,
    Label,
    Outcome,
    Rejection,
    Signal,
)
from agent_gym.agents.desk.view import DeskView
from agent_gym.core.clock import SECOND_NS


class DeskRecords:
    """The desk's hand that writes: secrets out, then into the context, then into the log."""

    def __init__(
        self, context: RecentContext, redactor: Redactor, logger: CoreAgentLogger | None = None
    ) -> None:
        self.context = context
        self._redactor = redactor
        self._logger = logger
        if logger is not None:
            redactor.join(logger.redactor)  # one for both, or the log would tell another story
            logger.redactor = redactor
        self._store: dict[str, Any] = {
            "signal": context.store_signal,
            "features": context.store_features,
            "result": context.store_filter_result,
            "rejection": context.store_rejection,
            "decision": context.store_decision,
            "response": context.store_response,
            "pnl": context.store_pnl,
            "outcome": context.store_outcome,
        }

    def store(self, kind: str, record: Struct, now_ns: int) -> None:
        """Keep a record that has just become known."""
        known_at = now_ns / SECOND_NS
        self._store[kind](record, known_at)
        if self._logger is not None:
            self._logger.stored(kind, record, known_at, clean=True)

    def response(self, response: AgentResponse, at_ns: int) -> None:
        """Keep an answer; the door of the agents has cleaned it."""
        self.store("response", response, at_ns)

    def transition(self, step: Transition) -> None:
        """Write a step of the flow into the log."""
        if self._logger is not None:
            self._logger.transition(step)

    def step(
        self,
        signal_id: str,
        after: FlowState,
        code: RejectCode | None,
        now_ns: int,
        before: FlowState = FlowState.NEW,
    ) -> None:
        """Make a step outside the flow: into it, or past it."""
        check_step(before, after, signal_id)
        if self._logger is not None:
            trace = trace_id(signal_id)
            self._logger.transition(Transition(signal_id, trace, before, after, code, now_ns))

    def trouble(self, signal_id: str, why: str, now_ns: int) -> None:
        """Write down that the desk itself is set up wrongly."""
        if self._logger is not None:
            self._logger.trouble(signal_id, why, now_ns)

    def clean_signal(self, signal: Signal) -> Signal:
        """Return a signal without secrets."""
        clean, params = self._redactor.is_clean, signal.params
        if (
            clean(signal.signal_id)
            and clean(signal.strategy)
            and clean(signal.source)
            and clean(params.base)
            and clean(params.quote)
            and (signal.features is None or all(map(clean, signal.features)))
        ):
            return signal
        return msgspec.convert(self._redactor.value(msgspec.to_builtins(signal)), Signal)

    def clean_result(self, result: FilterResult) -> FilterResult:
        """Return what the filter said without secrets: it may quote what came in."""
        signal_id, detail = (
            self._redactor.text(result.signal_id),
            self._redactor.text(result.detail),
        )
        if (signal_id, detail) == (result.signal_id, result.detail):
            return result
        return structs.replace(result, signal_id=signal_id, detail=detail)


def rejection_of(
    result: FilterResult, code: RejectCode, signal: Signal | None, now_ns: int
) -> Rejection:
    """Return why a signal was not traded."""
    by_filter = not result.accepted
    return Rejection(
        result.signal_id,
        code,
        now_ns / SECOND_NS,
        result.detail if by_filter else code.text,
        result.stage if by_filter else None,
        "" if signal is None else signal.strategy,
    )


def trade_outcome(flow: FlowResult, *, paper: bool) -> Outcome:
    """Return what is known of a trade when the flow ends; win or loss is known later."""
    label: Label = "flat"
    if flow.filled == 0.0:
        label = "rejected" if flow.state is FlowState.REJECTED else "unfilled"
    return Outcome(
        flow.signal_id,
        label,
        filled=flow.filled,
        avg_price=flow.avg_price,
        fees=flow.fees,
        slippage_bp=flow.slippage_bp,
        counterfactual=paper,
    )


def paper_fill(view: DeskView) -> PaperFill:
    """Return what fills orders on paper, at the touch of the quote at hand."""

    def fill(request: AgentRequest) -> AgentResponse:
        quote = view.quotes.get(request.signal.symbol)
        payload: dict[str, Any] = {"filled": 0.0, "paper": True}
        if quote is not None:
            touch = quote.ask if request.signal.params.side == "buy" else quote.bid
            payload = {"filled": request.size, "avg_price": touch, "paper": True}
        return AgentResponse(
            request.trace_id, "execution", "ok", None, payload, attempt=request.attempt
        )

    return fill
