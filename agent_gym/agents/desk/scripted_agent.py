"""An agent that plays a part: it takes its time on the clock and says what the script says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from pydantic import Field

from agent_gym.agents.desk.answers import AgentTimedOut
from agent_gym.agents.desk.schemas import AgentRequest, AgentResponse
from agent_gym.core.clock import Clock
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds

Line: TypeAlias = Mapping[str, Any] | AgentResponse | Exception
Script: TypeAlias = Sequence[Line] | Callable[[AgentRequest], Line]
BATCH = 1024


class Latency(Config):
    """How long an agent takes: log-normal around a median; sigma 0 is always the median."""

    median_ms: float = Field(default=20.0, ge=0.0)
    sigma: float = Field(default=0.0, ge=0.0)


class ScriptedAgent:
    """Answers from a script, for simulation and tests.

    Args:
        script: Answers in turn (the last one again and again), or a function of the request. An
            exception is raised. Without a script all is well, and an order is filled whole.
        latency: A Latency, or times in ms in turn (the last one again and again).
        seeds: Where latencies are drawn from; one draw a question, answered or not.

    An answer that would take longer than the deadline is a timeout, and the clock stands at the
    deadline. What it has been asked is in ``asked``, which counts questions.

    Example:
        >>> from agent_gym.core.clock import ManualClock
        >>> from agent_gym.agents.desk.schemas import Signal, SignalParams
        >>> clock, signal = ManualClock(), Signal("s1", "momentum", SignalParams(0.1), 0.0)
        >>> agent = ScriptedAgent([{"status": "ok"}], Latency(median_ms=20))
        >>> agent.answer(AgentRequest("t", "risk", signal, 0.1, "", 50.0), clock), clock.now_ns()
        ({'status': 'ok'}, 20000000)
    """

    def __init__(
        self,
        script: Script | None = None,
        latency: Latency | Sequence[float] = Latency(),  # noqa: B008 - a frozen config
        seeds: Seeds | None = None,
    ) -> None:
        self.asked = 0
        self._script = script
        self._latency = latency
        self._rng = (seeds or Seeds(0)).rng()
        self._drawn: list[float] = []

    def answer(self, request: AgentRequest, clock: Clock) -> Mapping[str, Any] | AgentResponse:
        """Wait on the clock, then answer as the script says."""
        number = self.asked
        self.asked += 1
        latency_ms = self._latency_ms(number)
        line = self._line(request, number)
        if latency_ms > request.deadline_ms:
            clock.sleep_s(request.deadline_ms / 1e3)
            raise AgentTimedOut("no answer in time")
        clock.sleep_s(latency_ms / 1e3)
        if isinstance(line, Exception):
            raise line
        return line

    def _line(self, request: AgentRequest, number: int) -> Line:
        if self._script is None:
            if request.agent != "execution":
                return {"status": "ok"}
            payload = {"filled": request.size, "avg_price": request.signal.params.price}
            return {"status": "ok", "payload": payload}
        if callable(self._script):
            return self._script(request)
        return self._script[min(number, len(self._script) - 1)]

    def _latency_ms(self, number: int) -> float:
        latency = self._latency
        if not isinstance(latency, Latency):
            return float(latency[min(number, len(latency) - 1)])
        if latency.sigma == 0.0:
            return latency.median_ms
        if not self._drawn:  # drawn many at once, because one by one is slow
            draws = np.exp(latency.sigma * self._rng.standard_normal(BATCH))
            self._drawn = (latency.median_ms * draws)[::-1].tolist()
        drawn = self._drawn.pop()
        return drawn if math.isfinite(drawn) else latency.median_ms
