"""The three agents that a desk asks, as a scenario plays them: slow, failing, and remembering."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.desk.answers import AgentTimedOut
from agent_gym.agents.desk.schemas import AgentName, AgentRequest
from agent_gym.core.clock import Clock
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds

ATTEMPTS = 4  # times that are drawn for one question; more attempts begin again
AGENTS: tuple[AgentName, ...] = ("strategy", "risk", "execution")


class AgentLatency(Config):
    """How long an agent takes to answer: log-normal."""

    median: float = Field(default=80.0, gt=0.0, description="ms")
    sigma: float = Field(default=0.4, ge=0.0, le=3.0, description="of the logarithm")


class Execution(NamedTuple):
    """One order that the execution agent really carried out."""

    signal_id: str
    time_ns: int
    symbol: str
    quantity: float
    price: float
    attempt: int


@dataclass(slots=True)
class Chances:
    """What each agent draws for each signal and attempt, whoever asks in which order.

    ``latency_ms`` and ``luck`` have a row a signal, a column an attempt, for each agent.
    """

    latency_ms: dict[str, list[list[float]]]
    luck: dict[str, list[list[float]]]
    failure_share: float
    partial_share: float

    @classmethod
    def draw(
        cls, latency: AgentLatency, failure_share: float, partial_share: float, n: int, seeds: Seeds
    ) -> Chances:
        """Draw for so many signals."""
        times: dict[str, list[list[float]]] = {}
        luck: dict[str, list[list[float]]] = {}
        for agent in AGENTS:
            normal = seeds.child("latency", agent).rng().standard_normal((n, ATTEMPTS))
            times[agent] = (latency.median * np.exp(latency.sigma * normal)).tolist()
            luck[agent] = seeds.child("faults", agent).rng().random((n, ATTEMPTS)).tolist()
        return cls(times, luck, failure_share, partial_share)


@dataclass(slots=True)
class Counterparty:
    """An agent that says yes, after its time, unless it is out of luck."""

    name: AgentName
    chances: Chances
    rows: Mapping[str, int]
    slowness: Callable[[float], float]
    asked: int = 0

    def answer(self, request: AgentRequest, clock: Clock) -> dict[str, Any]:
        """Wait, then agree; a share of questions ends in an error or gets no answer."""
        luck = self._wait(request, clock)
        if luck < 0.5 * self.chances.failure_share:
            raise AgentError("the agent fell over")
        if luck < self.chances.failure_share:
            clock.sleep_s(request.deadline_ms / 1e3)
            raise AgentTimedOut("no answer in time")
        return {"status": "ok"}

    def _wait(self, request: AgentRequest, clock: Clock) -> float:
        """Take the time that was drawn, and return the luck that was."""
        self.asked += 1
        row, attempt = self.rows[request.signal.signal_id], (request.attempt - 1) % ATTEMPTS
        latency_ms = self.slowness(self.chances.latency_ms[self.name][row][attempt])
        if latency_ms > request.deadline_ms:
            clock.sleep_s(request.deadline_ms / 1e3)
            raise AgentTimedOut("no answer in time")
        clock.sleep_s(latency_ms / 1e3)
        return self.chances.luck[self.name][row][attempt]


@dataclass(slots=True)
class ExecutionCounterparty(Counterparty):
    """The agent that trades: it fills at the touch and keeps a book of what it really did.

    Of the questions that get no answer, half were carried out all the same. It knows nothing of
    ids that come twice: whoever sends an order again gets it carried out again. ``fresh`` holds
    what was traded since it was last emptied.
    """

    touch: Callable[[str, float, int], float] = field(kw_only=True)
    fee_rate: float = field(default=0.0, kw_only=True)
    book: dict[str, list[Execution]] = field(default_factory=dict, kw_only=True)
    fresh: list[Execution] = field(default_factory=list, kw_only=True)
    resting: dict[str, float] = field(default_factory=dict, kw_only=True)

    @override
    def answer(self, request: AgentRequest, clock: Clock) -> dict[str, Any]:
        """Carry out an order, whole or in part."""
        luck = self._wait(request, clock)
        share = self.chances.failure_share
        if luck < 0.25 * share:
            raise AgentError("the order was not understood")
        if luck < share:
            if luck < 0.6 * share:
                self._trade(request, 1.0, clock)
            clock.sleep_s(request.deadline_ms / 1e3)
            raise AgentTimedOut("no answer in time")
        partly = luck > 1.0 - self.chances.partial_share
        self._trade(request, 0.5 if partly else 1.0, clock)
        return self._report(request)

    def state(self, request: AgentRequest, clock: Clock) -> dict[str, Any] | None:
        """Say what became of an order, None if it never came."""
        return self._report(request) if request.signal.signal_id in self.book else None

    def cancel(self, request: AgentRequest, clock: Clock) -> dict[str, Any]:
        """Take back what rests."""
        self.resting.pop(request.signal.signal_id, None)
        return self._report(request)

    def _trade(self, request: AgentRequest, share: float, clock: Clock) -> None:
        signal = request.signal
        sign = 1.0 if signal.params.side == "buy" else -1.0
        quantity = sign * share * request.size
        price = self.touch(signal.symbol, quantity, clock.now_ns())
        name, now_ns = signal.signal_id, clock.now_ns()
        done = Execution(name, now_ns, signal.symbol, quantity, price, request.attempt)
        self.book.setdefault(name, []).append(done)
        self.fresh.append(done)
        if share < 1.0:
            self.resting[signal.signal_id] = (1.0 - share) * request.size

    def _report(self, request: AgentRequest) -> dict[str, Any]:
        name = request.signal.signal_id
        done = self.book.get(name, [])
        filled = sum(abs(each.quantity) for each in done)
        worth = sum(abs(each.quantity) * each.price for each in done)
        payload = {
            "filled": filled,
            "avg_price": worth / filled if filled else None,
            "fees": self.fee_rate * worth,
            "rest": self.resting.get(name, 0.0),
        }
        return {"status": "ok", "payload": payload}
