"""What is written down of every tick: who was asked, which model answered, what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config
from agent_gym.rollouts.database import AGENT_TICK, ServiceAgent, TrajectoryStore

Ending: TypeAlias = Literal["answered", "lost"]
PAGE = 1_000
KEPT_CALLS = 100


class TickCall(Config):
    """One tick of one agent, as it is stored.

    The market is rebuilt from the actions alone; whoever replays them gets the same rewards.

    Attributes:
        tick: Number of the tick in the agent's life.
        episode: Number of the market it walks through; from 0.
        t: Number of the tick in that market.
        snapshot_id: Which market.
        status: "lost" if the agent gave no decision; its tick passed without one.
        action: The targets; None if there was no decision.
        model: Hash of the model that really answered; None if none did.
        kind: Kind of that model.
        served: Hash of the model that had to answer.
        position: Length of the registry's history that says so.
        asked_ns: When it was asked who answers.
        reward: What the tick brought.
        over: The market has ended.
        signals: What the agent said with its decision.
        rationale: Its words.
        latency_ms: How long it took to decide.
        error: Why it gave no decision.
    """

    tick: int = Field(ge=0)
    episode: int = Field(ge=0)
    t: int = Field(ge=0)
    snapshot_id: str
    status: Ending
    action: tuple[float, ...] | None
    model: str | None
    kind: str
    served: str
    position: int
    asked_ns: int
    reward: float
    over: bool
    signals: dict[str, float] = Field(default_factory=dict)
    rationale: str | None = None
    latency_ms: float | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call with the number and the time of its event."""

    event_id: int
    agent_id: str
    at_ns: int
    call: TickCall


class Standing(Config):
    """Where an agent stands in its market.

    Attributes:
        episode: Number of the market; -1 before the first.
        t: The tick of it that comes next.
        over: It has ended.
        before: The last event before this market began.
        call_ids: Names of the calls that moved the agent, the last ones.
    """

    episode: int = -1
    t: int = 0
    over: bool = True
    before: int = 0
    call_ids: tuple[str, ...] = ()

    def named(self, call_id: str | None) -> tuple[str, ...]:
        """Return the names with one more, as many as are kept."""
        return self.call_ids if call_id is None else (*self.call_ids, call_id)[-KEPT_CALLS:]

    @classmethod
    def of(cls, agent: ServiceAgent) -> Self:
        """Read it from the row of an agent."""
        try:
            return cls.model_validate(agent.state)
        except ValidationError as error:
            raise DataError(
                "the state of an agent cannot be read",
                where=f"agent {agent.agent_id}",
                found=error.errors(include_url=False)[0]["msg"],
                remedy="Add the agent under another id",
            ) from error


def stored_calls(
    store: TrajectoryStore, *, agent_id: str | None = None, after: int = 0
) -> Iterator[StoredCall]:
    """Yield the calls of one agent, or of all, oldest first."""
    while True:
        found = store.events.after(after, kind=AGENT_TICK, subject=agent_id, limit=PAGE)
        for event in found:
            try:
                call = TickCall.model_validate(event.data)
            except ValidationError as error:
                raise DataError(
                    "a stored call cannot be read",
                    where=f"event {event.id}",
                    found=error.errors(include_url=False)[0]["msg"],
                ) from error
            yield StoredCall(event.id, event.subject, event.at_ns, call)
        if len(found) < PAGE:
            return
        after = found[-1].id
