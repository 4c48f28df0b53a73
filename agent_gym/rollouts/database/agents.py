"""The agents of the service: a tick costs points, and who has none left is paused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.events import event_row
from agent_gym.rollouts.database.model_tables import AgentStatus, Event, ServiceAgent
from agent_gym.rollouts.database.outbox import insert_new
from agent_gym.rollouts.database.records import AgentRecord, plain_values

AGENT_TICK = "agent-tick"


class TickTaken(StoreError):
    """Somebody else has played this tick already, or the agent is paused."""


@dataclass(frozen=True, slots=True)
class PlayedTick:
    """A tick that an agent has played.

    Attributes:
        tick: Its number: where the agent stood.
        cost_points: What it costs; no more is taken than there is.
        policy_version: The model that answered; None if none did.
        state: What the agent's market needs to go on; as it was if not given.
        snapshot_id: The market that is played; as it was if not given.
        call: What was asked and answered; an event of the agent if given.
    """

    tick: int
    cost_points: int
    policy_version: str | None
    state: dict[str, Any] | None = None
    snapshot_id: str | None = None
    call: dict[str, Any] | None = None


class ServiceAgents:
    """The agents that a service keeps alive."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, agent: AgentRecord) -> ServiceAgent:
        """Keep a new agent; one that is there already stays as it is."""
        now = self._clock.now_ns()
        row = agent.model_dump() | {"tick": 0, "created_ns": now, "updated_ns": now}
        with self._database.writing() as connection:
            insert_new(connection, ServiceAgent, [row], "agent_id")
        return self.get(agent.agent_id)

    def get(self, agent_id: str) -> ServiceAgent:
        """Return an agent."""
        with self._database.reading() as session:
            found = session.get(ServiceAgent, agent_id)
        if found is None:
            raise ConfigError("there is no such agent", found=agent_id)
        return found

    def all(self, status: AgentStatus | None = None) -> tuple[ServiceAgent, ...]:
        """Return the agents, by id."""
        chosen = select(ServiceAgent).order_by(ServiceAgent.agent_id)
        if status is not None:
            chosen = chosen.where(ServiceAgent.status == status)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen))

    def advance(self, agent_id: str, played: PlayedTick) -> ServiceAgent:
        """Keep that an agent has played the tick it stood at.

        The points are taken, the tick is counted and the call is written down together, once: the
        same again finds that the agent has moved on, and is refused. An agent without points left
        is paused.

        Raises:
            TickTaken: The agent is paused, or stands elsewhere.
        """
        if played.cost_points < 0:
            raise ConfigError(
                "a tick cannot give points", found=played.cost_points, expected="0 or more"
            )
        with self._database.writing() as connection:
            found = self._locked(connection, agent_id)
            if found.status != "active" or found.tick != played.tick:
                raise TickTaken(
                    "the agent is not where this tick begins",
                    where=agent_id,
                    found=f"{found.status} at tick {found.tick}",
                    expected=f"active at tick {played.tick}",
                )
            left = max(0, found.points - played.cost_points)
            values: dict[str, Any] = {
                "tick": played.tick + 1,
                "points": left,
                "policy_version": played.policy_version,
                "status": "active" if left else "paused",
            }
            if played.state is not None:
                values["state"] = plain_values(played.state)
            if played.snapshot_id is not None:
                values["snapshot_id"] = played.snapshot_id
            self._change(connection, agent_id, values)
            if played.call is not None:
                row = event_row(AGENT_TICK, agent_id, played.call, self._clock.now_ns())
                connection.execute(insert(Event), [row])
        return self.get(agent_id)

    def add_points(self, agent_id: str, points: int) -> ServiceAgent:
        """Give an agent points; it stays paused until set_status() says otherwise."""
        if points < 0:
            raise ConfigError("points are given, not taken", found=points, expected="0 or more")
        with self._database.writing() as connection:
            found = self._locked(connection, agent_id)
            self._change(connection, agent_id, {"points": found.points + points})
        return self.get(agent_id)

    def set_status(self, agent_id: str, status: AgentStatus) -> ServiceAgent:
        """Pause an agent, or let it go on; without points it cannot."""
        with self._database.writing() as connection:
            found = self._locked(connection, agent_id)
            if status == "active" and not found.points:
                raise ConfigError(
                    "an agent without points cannot go on", found=agent_id, remedy="Give it points"
                )
            self._change(connection, agent_id, {"status": status})
        return self.get(agent_id)

    def _locked(self, connection: Connection, agent_id: str) -> Any:
        chosen = select(ServiceAgent.status, ServiceAgent.tick, ServiceAgent.points)
        found = connection.execute(
            chosen.where(ServiceAgent.agent_id == agent_id).with_for_update()
        ).one_or_none()
        if found is None:
            raise ConfigError("there is no such agent", found=agent_id)
        return found

    def _change(self, connection: Connection, agent_id: str, values: dict[str, Any]) -> None:
        changed = values | {"updated_ns": self._clock.now_ns()}
        chosen = update(ServiceAgent).where(ServiceAgent.agent_id == agent_id)
        connection.execute(chosen.values(changed))
