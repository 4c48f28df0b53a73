"""The flow of signals through the agents, each id once.

An order is never sent twice: a signal id is claimed before anything is sent, and when an execution
agent gave no clear answer it is asked what it knows before it is sent anything again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Protocol

from msgspec import structs

from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.breaker import CircuitBreaker
from agent_gym.agents.desk.flow_run import Desk, FlowPolicy, PaperFill, SignalRun
from agent_gym.agents.desk.flow_states import STEPS, FlowResult, FlowState, Transition, check_step
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentName, AgentResponse, Decision, Signal
from agent_gym.core.clock import Clock
from agent_gym.core.seeds import Seeds

__all__ = [
    "STEPS",
    "FlowManager",
    "FlowPolicy",
    "FlowResult",
    "FlowState",
    "PaperFill",
    "Transition",
    "check_step",
]


class HasDigest(Protocol):
    """What a flow wants of the context: its fingerprint, which goes with every question."""

    def digest(self) -> str: ...


class FlowManager:
    """Takes decided signals to their end.

    Args:
        io: The agents.
        policy: Deadlines, retries and breakers.
        seeds: Where the jitter of retries is drawn from; each signal has its own draws.
        on_transition: Gets every step once, when it is made.
        on_response: Gets every answer with the time it came.
    """

    def __init__(
        self,
        io: AgentIO,
        policy: FlowPolicy | None = None,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> None:
        policy = policy or FlowPolicy()
        self.breakers: dict[AgentName, CircuitBreaker] = {
            "strategy": CircuitBreaker.by(policy.breaker),
            "risk": CircuitBreaker.by(policy.breaker),
            "execution": CircuitBreaker.by(policy.breaker),
        }
        self.policy = policy
        self._desk = Desk(io, policy, seeds or Seeds(0), self.breakers, on_transition, on_response)
        self._lock = Lock()
        self._claimed: set[str] = set()
        self._running: dict[str, SignalRun] = {}
        self._results: OrderedDict[str, FlowResult] = OrderedDict()

    def run(
        self,
        signal: Signal,
        decision: Decision,
        context: HasDigest,
        clock: Clock,
        *,
        paper: PaperFill | None = None,
    ) -> FlowResult:
        """Take a signal to its end; a repeat gets the first result, and nothing is sent.

        A repeat that comes while the first is on its way is told where that stands. One whose
        result is no longer remembered is rejected as a duplicate. An id stays claimed even when the
        run breaks off: whoever knows that nothing was sent takes a new id.

        Args:
            signal: The signal.
            decision: What the rule table made of it.
            context: Its digest goes with every question.
            clock: Time and waiting.
            paper: Fills the order instead of the execution agent.
        """
        signal_id = signal.signal_id
        run = SignalRun(self._desk, signal, decision, clock)
        with self._lock:
            if signal_id in self._claimed:
                return self._repeat(signal_id)
            self._claimed.add(signal_id)
            self._running[signal_id] = run
        try:
            result = run.go(context.digest() if self.policy.send_digest else "", paper)
        finally:
            with self._lock:
                del self._running[signal_id]
        with self._lock:
            self._results[signal_id] = result
            if len(self._results) > self.policy.remember:
                self._results.popitem(last=False)
        return result

    def _repeat(self, signal_id: str) -> FlowResult:
        if signal_id in self._results:
            return structs.replace(self._results[signal_id], repeated=True)
        running = self._running.get(signal_id)
        state = FlowState.REJECTED if running is None else running.state
        return FlowResult(signal_id, state, RejectCode.DUP_DUPLICATE_ID, repeated=True)
