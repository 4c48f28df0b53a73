"""Rounds of ticks: what came of each agent, one round after another, none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Literal, TypeAlias

from agent_gym.pipeline.runtime.calls import TickCall
from agent_gym.rollouts.database import ServiceAgent
from agent_gym.rollouts.play import Failure

RowStatus: TypeAlias = Literal["played", "lost", "failed", "repeated"]


@dataclass(frozen=True, slots=True)
class TickRow:
    """What one tick of one agent came to.

    Attributes:
        agent_id: Who.
        status: "played"; "lost" if the agent gave no decision and the tick passed without one;
            "failed" if it could not be played at all; "repeated" if it had been played before.
        tick: The tick that comes next.
        points: What is left.
        agent_status: "paused" once nothing is left.
        snapshot_id: The market.
        t: The tick of that market that was played.
        model: Hash of the model that really answered.
        reward: What the tick brought.
        error: What went wrong.
    """

    agent_id: str
    status: RowStatus
    tick: int
    points: int
    agent_status: str
    snapshot_id: str | None = None
    t: int | None = None
    model: str | None = None
    reward: float | None = None
    error: Failure | None = None

    @classmethod
    def of(cls, agent: ServiceAgent, status: RowStatus, *, error: Failure | None = None) -> TickRow:
        """Return the row of an agent that was not moved."""
        return cls(
            agent_id=agent.agent_id,
            status=status,
            tick=agent.tick,
            points=agent.points,
            agent_status=agent.status,
            snapshot_id=agent.snapshot_id,
            error=error,
        )

    @classmethod
    def played(cls, agent: ServiceAgent, call: TickCall) -> TickRow:
        """Return the row of an agent that was."""
        return cls(
            agent_id=agent.agent_id,
            status="played" if call.status == "answered" else "lost",
            tick=agent.tick,
            points=agent.points,
            agent_status=agent.status,
            snapshot_id=call.snapshot_id,
            t=call.t,
            model=call.model,
            reward=call.reward,
            error=call.error,
        )


@dataclass(frozen=True, slots=True)
class TickRound:
    """One tick of all active agents."""

    call_id: str | None
    rows: tuple[TickRow, ...]

    def count(self, status: RowStatus) -> int:
        """Return how many agents it came to that for."""
        return sum(row.status == status for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


class Rounds:
    """Lets one round run at a time; the same call meanwhile gets the same round."""

    def __init__(self) -> None:
        self._turn, self._lock = Lock(), Lock()
        self._under_way: dict[str | None, Future[TickRound]] = {}

    def once(self, call_id: str | None, play: Callable[[], TickRound]) -> TickRound:
        """Return the round that is under way for this call, or play one."""
        mine = Future[TickRound]()
        with self._lock:
            found = self._under_way.setdefault(call_id, mine)
        if found is not mine:
            return found.result()
        try:
            with self._turn:
                mine.set_result(play())
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[call_id]
        return mine.result()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold back all rounds."""
        with self._turn:
            yield
