"""One signal on its way: who is asked, how often, and what the answers come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from pydantic import Field

from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.answers import failure
from agent_gym.agents.desk.breaker import BreakerPolicy, CircuitBreaker
from agent_gym.agents.desk.flow_states import FlowResult, FlowState, Transition, check_step
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentName, AgentRequest, AgentResponse, Decision, Signal
from agent_gym.core.clock import Clock
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds

WHOLE = 1e-9  # relative; what is left of an order below it is rounding
_S, _C = FlowState, RejectCode
PaperFill: TypeAlias = Callable[[AgentRequest], AgentResponse]


class FlowPolicy(Config):
    """How long a signal may take and how often an agent is asked."""

    deadline_ms: float = Field(default=5_000.0, gt=0.0, description="for the whole signal")
    strategy_ms: float = Field(default=500.0, gt=0.0, description="for one answer")
    risk_ms: float = Field(default=500.0, gt=0.0, description="for one answer")
    execution_ms: float = Field(default=2_000.0, gt=0.0, description="for one answer")
    max_retries: int = Field(default=2, ge=0, le=2)
    backoff_ms: float = Field(default=50.0, ge=0.0, description="before the first retry; doubles")
    jitter: float = Field(default=0.5, ge=0.0, le=1.0, description="share the wait varies by")
    require_risk: bool = Field(default=True, description="no order without the risk agent's word")
    send_digest: bool = Field(default=True, description="whether agents get the context's digest")
    breaker: BreakerPolicy = BreakerPolicy()
    remember: int = Field(default=10_000, ge=1, description="results kept for repeats")


class Desk(Struct, frozen=True):
    """What every run of a flow shares."""

    io: AgentIO
    policy: FlowPolicy
    seeds: Seeds
    breakers: Mapping[AgentName, CircuitBreaker]
    on_transition: Callable[[Transition], None] | None
    on_response: Callable[[AgentResponse, int], None] | None


class SignalRun:
    """The run of one signal from filtered to its end."""

    def __init__(self, desk: Desk, signal: Signal, decision: Decision, clock: Clock) -> None:
        self.state = _S.FILTERED
        self._desk = desk
        self._policy = desk.policy
        self._signal = signal
        self._decision = decision
        self._clock = clock
        self._begun_s = clock.monotonic_s()
        self._digest = ""
        self._paper: PaperFill | None = None
        self._responses: list[AgentResponse] = []
        self._retries = 0
        self._unseen = False
        self._settling = False  # to know what became of an order matters more than the deadline
        self._rng: np.random.Generator | None = None

    def go(self, digest: str, paper: PaperFill | None) -> FlowResult:
        """Ask the agents of the route in turn."""
        self._digest, self._paper = digest, paper
        decision = self._decision
        if decision.action in {"reject", "defer"}:
            return self._end(_S.REJECTED, decision.code or _C.OPS_CONFIG_ERROR)
        route = decision.route
        before = route[: route.index("execution")] if "execution" in route else ()
        if "execution" not in route or (self._policy.require_risk and "risk" not in before):
            return self._end(_S.REJECTED, _C.OPS_CONFIG_ERROR)
        self._move(_S.PLANNED)
        size = decision.size
        for agent in before:
            response = self._ask(agent, size)
            if response.status != "ok":
                return self._end(_end_by(response.code), response.code)
            agreed = self._agreed(response.payload, size)
            if agreed is None:
                return self._end(_S.FAILED, _C.AGENT_CONTRADICTORY)
            size = agreed
        self._move(_S.RISK_OK)
        return self._execute(size)

    def _agreed(self, payload: Mapping[str, Any], size: float) -> float | None:
        """Return the size after an agent's word: smaller at most; None if it contradicts."""
        if payload.get("side", self._signal.params.side) != self._signal.params.side:
            return None
        agreed = payload.get("size")
        if agreed is None:
            return size
        return float(agreed) if 0.0 < agreed <= size * (1.0 + WHOLE) else None

    def _execute(self, size: float) -> FlowResult:
        response = self._ask("execution", size)
        if self.state is _S.RISK_OK:  # the breaker or the deadline kept it from being sent
            return self._end(_S.FAILED, response.code, size)
        if response.status in {"timeout", "error"}:
            response = self._clear_up(response, size)
        code = response.code
        if response.status == "reject":
            return self._end(_end_by(code), code, size)
        if response.status != "ok" or response.payload.get("filled") is None:
            return self._end(_S.FAILED, code or _C.AGENT_ERROR, size, uncertain=not self._unseen)
        return self._filled(response, size)

    def _clear_up(self, response: AgentResponse, size: float) -> AgentResponse:
        """Find out what became of an order that got no clear answer; only then send it again."""
        io, attempt = self._desk.io, response.attempt
        if self._paper is not None or not io.can("execution", "state"):
            return self._late(response)
        self._settling = True
        asked = 0
        while asked <= self._policy.max_retries:
            known = io.ask_state(self._request("execution", size, attempt), self._clock)
            asked += 1
            if known is None:  # it never arrived: sending it again is safe
                if attempt > self._policy.max_retries or not self._wait(attempt):
                    self._unseen = True
                    return response
                attempt += 1
                self._settling = False
                response = self._send("execution", size, attempt)
                self._settling = True
                if response.status not in {"timeout", "error"}:
                    return response
                asked = 0
                continue
            self._note(known)
            if known.status not in {"timeout", "error"}:
                return known
            self._wait(asked, whatever=True)
        return self._withdraw(response, size, attempt)

    def _late(self, response: AgentResponse) -> AgentResponse:
        """Take a late answer as the truth about the order, if there is one."""
        late = response.payload.get("late")
        if not isinstance(late, Mapping) or late.get("status") not in {"ok", "reject"}:
            return response
        code = None if late.get("code") is None else RejectCode(late["code"])
        payload = dict(late.get("payload", {}))
        return AgentResponse(
            response.trace_id, "execution", late["status"], code, payload, 0.0, response.attempt
        )

    def _withdraw(self, response: AgentResponse, size: float, attempt: int) -> AgentResponse:
        """Take the order back, wherever it is; what it says then is the truth if it is clear."""
        answer = self._cancel(size, attempt)
        return answer if answer is not None else response

    def _cancel(self, size: float, attempt: int) -> AgentResponse | None:
        io = self._desk.io
        if self._paper is not None or not io.can("execution", "cancel"):
            return None
        self._settling = True
        for turn in range(1 + self._policy.max_retries):
            answer = io.cancel(self._request("execution", size, attempt), self._clock)
            self._note(answer)
            if answer.status == "ok" and answer.payload.get("filled") is not None:
                return answer
            if turn < self._policy.max_retries:
                self._wait(turn + 1, whatever=True)
        return None

    def _filled(self, response: AgentResponse, size: float) -> FlowResult:
        """Read what was traded; a rest that still stands in the market is taken back."""
        cancelled: bool | None = None
        if float(response.payload.get("rest") or 0.0) > 0.0:
            answer = self._cancel(size, response.attempt)
            cancelled = answer is not None
            response = response if answer is None else answer
        filled = float(response.payload["filled"])
        left_open = cancelled is False
        if filled < 0.0 or filled > size * (1.0 + WHOLE):
            state, code = _S.FAILED, _C.AGENT_CONTRADICTORY
        elif filled >= size * (1.0 - WHOLE):
            return self._end(_S.FILLED, None, size, traded=response, cancelled=cancelled)
        elif filled > 0.0:
            state, code = _S.PARTIAL, _C.EXEC_PARTIAL_EXPIRED
        else:
            state, code = _S.FAILED, _C.EXEC_PARTIAL_EXPIRED
        return self._end(
            state, code, size, traded=response, cancelled=cancelled, uncertain=left_open
        )

    def _ask(self, agent: AgentName, size: float) -> AgentResponse:
        """Ask until the answer is good or final; after an unclear one no order is sent again."""
        attempt = 1
        while True:
            response = self._send(agent, size, attempt)
            unclear = agent == "execution" and response.status in {"timeout", "error"}
            code = response.code
            if code is None or not code.retryable or unclear:
                return response
            if attempt > self._policy.max_retries or not self._wait(attempt):
                return response
            attempt += 1

    def _send(self, agent: AgentName, size: float, attempt: int) -> AgentResponse:
        request = self._request(agent, size, attempt)
        paper = self._paper if agent == "execution" else None
        breaker = self._desk.breakers[agent]
        if request.deadline_ms <= 0.0:
            response = failure(request, "timeout", _C.AGENT_TIMEOUT, "no time is left", 0.0)
        elif paper is None and not breaker.allows(self._clock.now_ns()):
            response = failure(request, "error", _C.AGENT_UNAVAILABLE, "the breaker is open", 0.0)
        else:
            if agent == "execution" and self.state is _S.RISK_OK:
                self._move(_S.SUBMITTED)
            if paper is not None:
                response = paper(request)
            else:
                response = self._desk.io.send(request, self._clock)
                if response.status in {"timeout", "error"}:
                    breaker.failure(self._clock.now_ns())
                else:
                    breaker.success(self._clock.now_ns())
        self._retries += attempt > 1
        self._note(response)
        return response

    def _request(self, agent: AgentName, size: float, attempt: int) -> AgentRequest:
        policy = self._policy
        own_ms: float = (
            policy.execution_ms
            if agent == "execution"
            else (policy.risk_ms if agent == "risk" else policy.strategy_ms)
        )
        deadline_ms = own_ms if self._settling else min(own_ms, self._left_ms())
        return AgentRequest(
            self._decision.trace_id or self._signal.signal_id,
            agent,
            self._signal,
            size,
            self._digest,
            deadline_ms,
            attempt,
        )

    def _left_ms(self) -> float:
        return self._policy.deadline_ms - 1e3 * (self._clock.monotonic_s() - self._begun_s)

    def _wait(self, turn: int, *, whatever: bool = False) -> bool:
        """Wait before turn + 1; False at once if the signal's time would be over by then."""
        policy = self._policy
        if self._rng is None:
            self._rng = self._desk.seeds.child(self._signal.signal_id).rng()
        spread = 1.0 + policy.jitter * (2.0 * self._rng.random() - 1.0)
        wait_ms = policy.backoff_ms * 2.0 ** (turn - 1) * spread
        if not whatever and wait_ms >= self._left_ms():
            return False
        self._clock.sleep_s(wait_ms / 1e3)
        return True

    def _note(self, response: AgentResponse) -> None:
        self._responses.append(response)
        if self._desk.on_response is not None:
            self._desk.on_response(response, self._clock.now_ns())

    def _move(self, after: FlowState, code: RejectCode | None = None) -> None:
        signal_id = self._signal.signal_id
        check_step(self.state, after, signal_id)
        before, self.state = self.state, after
        if self._desk.on_transition is not None:
            trace_id = self._decision.trace_id or signal_id
            now_ns = self._clock.now_ns()
            self._desk.on_transition(Transition(signal_id, trace_id, before, after, code, now_ns))

    def _end(
        self,
        state: FlowState,
        code: RejectCode | None,
        size: float = 0.0,
        *,
        traded: AgentResponse | None = None,
        cancelled: bool | None = None,
        uncertain: bool = False,
    ) -> FlowResult:
        self._move(state, code)
        payload = {} if traded is None else traded.payload
        return FlowResult(
            signal_id=self._signal.signal_id,
            state=state,
            code=code,
            responses=tuple(self._responses),
            retries=self._retries,
            size=size,
            filled=float(payload.get("filled") or 0.0),
            avg_price=payload.get("avg_price"),
            fees=float(payload.get("fees") or 0.0),
            slippage_bp=payload.get("slippage_bp"),
            rest_cancelled=cancelled,
            uncertain=uncertain,
            latency_ms=1e3 * (self._clock.monotonic_s() - self._begun_s),
        )


def _end_by(code: RejectCode | None) -> FlowState:
    """Return the end that a code leads to: agents fail, everything else is a refusal."""
    return _S.FAILED if code is None or code.family == "agent" else _S.REJECTED
