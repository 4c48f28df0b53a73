"""The states of a signal and the steps there are between them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentResponse
from agent_gym.core.errors import AgentError


class FlowState(StrEnum):
    """Where a signal stands; the last four are ends."""

    NEW = "new"
    FILTERED = "filtered"
    PLANNED = "planned"
    RISK_OK = "risk_ok"
    SUBMITTED = "submitted"
    FILLED = "filled"
    PARTIAL = "partial"
    FAILED = "failed"
    REJECTED = "rejected"

    @property
    def is_end(self) -> bool:
        """Return whether nothing comes after it.

        Example:
            >>> FlowState.PARTIAL.is_end, FlowState.SUBMITTED.is_end
            (True, False)
        """
        return not STEPS[self]


_S = FlowState
STEPS: dict[FlowState, frozenset[FlowState]] = {
    _S.NEW: frozenset({_S.FILTERED, _S.REJECTED}),
    _S.FILTERED: frozenset({_S.PLANNED, _S.REJECTED}),
    _S.PLANNED: frozenset({_S.RISK_OK, _S.REJECTED, _S.FAILED}),
    _S.RISK_OK: frozenset({_S.SUBMITTED, _S.FAILED}),
    _S.SUBMITTED: frozenset({_S.FILLED, _S.PARTIAL, _S.FAILED, _S.REJECTED}),
    _S.FILLED: frozenset(),
    _S.PARTIAL: frozenset(),
    _S.FAILED: frozenset(),
    _S.REJECTED: frozenset(),
}


class Transition(Struct, frozen=True):
    """One step of one signal; ``at_ns`` is the clock's time."""

    signal_id: str
    trace_id: str
    before: FlowState
    after: FlowState
    code: RejectCode | None
    at_ns: int


class FlowResult(Struct, frozen=True):
    """How it ended.

    Attributes:
        signal_id: The signal.
        state: The last state; of a repeat that came while the first was on its way, where that was.
        code: Why it was not filled whole; None if it was.
        responses: Every answer, in order; those to questions about an order's state too.
        retries: Questions that were asked again.
        size: Units that the agents agreed on.
        filled: Units traded.
        avg_price: Mean price of what was traded.
        fees: Paid in quote.
        slippage_bp: As the execution agent tells it.
        rest_cancelled: Whether a rest was taken back; None if none had to be.
        uncertain: The execution agent never said clearly what it did; somebody must look.
        repeated: The id had been here before, nothing was sent.
        latency_ms: On the clock.
    """

    signal_id: str
    state: FlowState
    code: RejectCode | None = None
    responses: tuple[AgentResponse, ...] = ()
    retries: int = 0
    size: float = 0.0
    filled: float = 0.0
    avg_price: float | None = None
    fees: float = 0.0
    slippage_bp: float | None = None
    rest_cancelled: bool | None = None
    uncertain: bool = False
    repeated: bool = False
    latency_ms: float = 0.0


def check_step(before: FlowState, after: FlowState, signal_id: str) -> None:
    """Raise if the table has no such step: the desk itself would be wrong."""
    if after not in STEPS[before]:
        raise AgentError(
            "no such step",
            where=f"signal {signal_id}",
            found=f"{before} -> {after}",
            expected=", ".join(sorted(STEPS[before])) or "none, it has ended",
        )
