"""A rollout: shadow, then a stable share of the agents, then all; and which model answers whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from pydantic import Field
from sqlalchemy import Connection, Row, select

from agent_gym.core.registry import Config
from agent_gym.evaluation.promotion import Monitor
from agent_gym.pipeline.registry.tables import ROLLOUTS

Stage: TypeAlias = Literal["shadow", "canary", "full"]
STAGES: tuple[Stage, ...] = ("shadow", "canary", "full")


class RolloutPolicy(Config):
    """How carefully a model goes live.

    Attributes:
        canary_percent: Share of the agents that a canary answers for.
        min_pairs_shadow: Paired episodes to be seen in shadow before a canary begins.
        min_pairs_canary: Paired episodes to be seen in the canary before it serves all.
        cooldown_s: For how long nothing is deployed after a rollback.
    """

    canary_percent: float = Field(default=10.0, gt=0.0, lt=100.0)
    min_pairs_shadow: int = Field(default=10, ge=0)
    min_pairs_canary: int = Field(default=10, ge=0)
    cooldown_s: float = Field(default=86_400.0, ge=0.0)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One model on its way, and what was seen of it.

    Attributes:
        id: Rollouts are counted from 1.
        model: Hash of the challenger.
        champion: Hash of the champion it was compared with.
        stage: How far it has come.
        status: "open" while it is watched, then "rolled_back" or "replaced".
        percent: Share of the agents in the canary.
        salt: Makes the share another one in every rollout.
        stage_pairs: Paired episodes seen in this stage.
        monitor: The watch over it.
        reason: Why it ended.
    """

    id: int
    model: str
    champion: str
    stage: Stage
    status: str
    percent: float
    salt: str
    stage_pairs: int
    monitor: Monitor
    reason: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values; of the watch only what it says."""
        fields = asdict(self)
        fields["monitor"] = asdict(self.monitor.decision())
        return fields


def in_canary(agent_id: str, salt: str, percent: float) -> bool:
    """Return whether an agent is among the first ``percent`` by a hash of its own.

    Neither the order of a list nor the other agents play a part; who is in at 10 % stays in at 20.

    Example:
        >>> chosen = [in_canary(f"agent-{i}", "rollout 1", 10.0) for i in range(2_000)]
        >>> 150 < sum(chosen) < 250
        True
    """
    digest = blake2b(f"{salt}\0{agent_id}".encode("utf-8", "surrogatepass"), digest_size=8)
    return 100.0 * int.from_bytes(digest.digest(), "big") < percent * 2.0**64


def canary_for(connection: Connection, rollout_id: int | None, agent_id: str) -> str | None:
    """Return the model of a canary that answers for an agent; None if none does."""
    if rollout_id is None:
        return None
    asked = select(ROLLOUTS.c.model, ROLLOUTS.c.stage, ROLLOUTS.c.salt, ROLLOUTS.c.percent)
    row = connection.execute(asked.where(ROLLOUTS.c.id == rollout_id)).one()
    chosen = row.stage == "canary" and in_canary(agent_id, row.salt, row.percent)
    return str(row.model) if chosen else None


def read_rollout(connection: Connection, rollout_id: int | None) -> Rollout | None:
    """Return a rollout; None if there is none."""
    if rollout_id is None:
        return None
    row = connection.execute(select(ROLLOUTS).where(ROLLOUTS.c.id == rollout_id)).one()
    return rollout_of(row)


def rollout_of(row: Row[Any]) -> Rollout:
    """Return a rollout as it was written."""
    return Rollout(
        id=row.id,
        model=row.model,
        champion=row.champion,
        stage=row.stage,
        status=row.status,
        percent=row.percent,
        salt=row.salt,
        stage_pairs=row.stage_pairs,
        monitor=Monitor.from_dict(row.monitor),
        reason=row.reason,
    )
