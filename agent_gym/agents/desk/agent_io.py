"""The door to the three agents: asks, waits no longer than allowed, and turns all into records.

An agent is a plain callable, an async callable, or an object with ``answer(request, clock)``. A
callable in this process cannot be cut off: it is late when it comes back late. One that may hang
belongs into a process of its own (ProcessAgent).
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast, get_args, runtime_checkable

from msgspec import structs

from agent_gym.agents.desk.answers import (
    AgentTimedOut,
    AgentUnreachable,
    AnswerBroken,
    as_response,
    failure,
)
from agent_gym.agents.desk.async_line import AsyncLine
from agent_gym.agents.desk.redaction import Redactor
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import AgentName, AgentRequest, AgentResponse, plain
from agent_gym.agents.desk.scripted_agent import ScriptedAgent
from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError

__all__ = ["Agent", "AgentIO", "Answer", "RemoteAgent", "ScriptedAgent"]

Answer: TypeAlias = AgentResponse | Mapping[str, Any]
Asked: TypeAlias = Callable[[AgentRequest, Clock], object]
RECORDS_KEPT = 10_000
ROUNDING_MS = 1e-3  # clocks give seconds as floats


@runtime_checkable
class RemoteAgent(Protocol):
    """An agent that is asked with a clock to wait on.

    An execution agent may also have ``state(request, clock)`` (what it knows of the order of this
    signal; None if it never saw it) and ``cancel(request, clock)`` (take back what still rests).
    An attribute ``verbs`` says which of the three it can do, if not all that it has.
    """

    def answer(self, request: AgentRequest, clock: Clock) -> Answer: ...


Agent: TypeAlias = (
    Callable[[AgentRequest], Answer] | Callable[[AgentRequest], Awaitable[Answer]] | RemoteAgent
)


class AgentIO:
    """Sends questions to registered agents; never raises what an agent did.

    Args:
        sink: Gets every question with what became of it; by default the last ones are kept in
            ``records``.
        redactor: Takes secrets out of answers before anything sees them.
    """

    def __init__(
        self,
        sink: Callable[[AgentRequest, AgentResponse], None] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self.records: deque[tuple[AgentRequest, AgentResponse]] = deque(maxlen=RECORDS_KEPT)
        self.redactor = redactor or Redactor()
        self._sink = sink or self._keep
        self._agents: dict[tuple[str, str], Asked] = {}
        self._line = AsyncLine()

    def register(self, name: AgentName, agent: Agent) -> None:
        """Put an agent under its name; a second one takes the place of the first."""
        if name not in get_args(AgentName):
            raise ConfigError("no such agent", found=name, expected=", ".join(get_args(AgentName)))
        for verb in ("answer", "state", "cancel"):
            self._agents.pop((name, verb), None)
        if isinstance(agent, RemoteAgent):
            for verb in getattr(agent, "verbs", ("answer", "state", "cancel")):
                if (method := getattr(agent, verb, None)) is not None:
                    self._agents[name, verb] = self._timed(method)
            return
        if not callable(agent):
            raise ConfigError("an agent is a callable or has answer()", found=type(agent).__name__)
        self._agents[name, "answer"] = self._untimed(agent)

    def can(self, name: AgentName, verb: str) -> bool:
        """Return whether an agent can be asked this (``answer``, ``state`` or ``cancel``)."""
        return (name, verb) in self._agents

    def send(self, request: AgentRequest, clock: Clock) -> AgentResponse:
        """Ask an agent; a failure, a hang and nonsense are answers with a status and a code."""
        response = self._ask("answer", request, clock)
        assert response is not None
        return response

    def ask_state(self, request: AgentRequest, clock: Clock) -> AgentResponse | None:
        """Ask what became of an earlier question; None if the agent never saw it."""
        return self._ask("state", request, clock)

    def cancel(self, request: AgentRequest, clock: Clock) -> AgentResponse:
        """Take back what still rests of an earlier question."""
        response = self._ask("cancel", request, clock)
        assert response is not None
        return response

    def close(self) -> None:
        """End the thread of async agents."""
        self._line.close()

    def _ask(self, verb: str, request: AgentRequest, clock: Clock) -> AgentResponse | None:
        begun_s = clock.monotonic_s()
        agent = self._agents.get((request.agent, verb))
        late: object = None
        try:
            if agent is None:
                raise AgentUnreachable(f"no {request.agent} agent that can {verb}")
            answer = agent(request, clock)
            took_ms = 1e3 * (clock.monotonic_s() - begun_s)
            if answer is None and verb == "state":
                self._sink(request, _unseen(request, took_ms))
                return None
            response = as_response(answer, request, took_ms)
            if took_ms > request.deadline_ms + ROUNDING_MS:
                late = plain(response) | {"latency_ms": took_ms}
                raise AgentTimedOut("the answer came too late")
        except AgentTimedOut as error:
            response = failure(request, "timeout", RejectCode.AGENT_TIMEOUT, error.what, 0.0)
        except AgentUnreachable as error:
            response = failure(request, "error", RejectCode.AGENT_UNAVAILABLE, str(error), 0.0)
        except AnswerBroken as error:
            response = failure(request, "error", error.code, str(error), 0.0)
        except Exception as error:  # noqa: BLE001 - the border at which an agent's failure is a record
            why = f"{type(error).__name__}: {error}"
            response = failure(request, "error", RejectCode.AGENT_ERROR, why, 0.0)
        return self._noted(request, response, late, 1e3 * (clock.monotonic_s() - begun_s))

    def _noted(
        self, request: AgentRequest, response: AgentResponse, late: object, took_ms: float
    ) -> AgentResponse:
        payload = response.payload if late is None else response.payload | {"late": late}
        clean = self.redactor.payload(payload)
        if clean is not response.payload or response.status != "ok":
            response = structs.replace(response, payload=clean, latency_ms=took_ms)
        self._sink(request, response)
        return response

    def _keep(self, request: AgentRequest, response: AgentResponse) -> None:
        self.records.append((request, response))

    def _timed(self, method: Callable[[AgentRequest, Clock], object]) -> Asked:
        if not inspect.iscoroutinefunction(method):
            return method
        return lambda request, clock: self._line.run(
            cast("Awaitable[Any]", method(request, clock)), request.deadline_ms / 1e3
        )

    def _untimed(self, agent: Callable[[AgentRequest], object]) -> Asked:
        def asked(request: AgentRequest, clock: Clock) -> object:
            answer = agent(request)
            if inspect.isawaitable(answer):
                return self._line.run(answer, request.deadline_ms / 1e3)
            return answer

        return asked


def _unseen(request: AgentRequest, took_ms: float) -> AgentResponse:
    """Return the record of an answer that says: this order never came here."""
    return AgentResponse(
        request.trace_id, request.agent, "ok", None, {"unseen": True}, took_ms, request.attempt
    )
