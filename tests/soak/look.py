"""What the observer sees at one moment: plain values, read from what anybody can read."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Calls:
    """The stored ticks of one agent, counted by the database."""

    count: int
    distinct: int
    lowest: int
    highest: int


@dataclass
class Acknowledged:
    """What somebody was told is kept, and so has to be there.

    Attributes:
        trajectories: Number of steps by id.
        ticks: Agent and number of each tick that was answered for.
        granted: Points that an agent was surely given, by agent.
        asked: Points that it was given at most: some answers were never seen.
        answers: HTTP statuses and how often.
        wrong: Answers that should never be given, in words.
    """

    trajectories: dict[str, int] = field(default_factory=dict)
    ticks: set[tuple[str, int]] = field(default_factory=set)
    granted: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Rows:
    """One state of the database.

    Attributes:
        agents: Tick, points and status by id.
        calls: Stored ticks by agent.
        ticks: Every stored tick that was acknowledged and is looked for: agent and number.
        trajectories: Rows with trajectory_id, n_steps, status, terminated, truncated,
            total_reward, final_balance, final_pnl, step_file, first_row.
        step_files: Number of rows and state by hash.
        pointers: The rows that say who is champion.
        models: Status by model.
        serving: Models that are in full service.
        history: The chain, in order: position, at_ns, event, data, previous_hash, hash.
        batches: Batches that are under way.
    """

    agents: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: dict[str, Calls] = field(default_factory=dict)
    ticks: set[tuple[str, int]] = field(default_factory=set)
    trajectories: list[dict[str, Any]] = field(default_factory=list)
    step_files: dict[str, dict[str, Any]] = field(default_factory=dict)
    pointers: list[dict[str, Any]] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    serving: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)


@dataclass
class Service:
    """What the service says of itself, and the system of its process.

    Attributes:
        life: Number of the process; counters begin anew with each.
        counters: Values by name and labels.
        answers: What ``/api/verify`` says; None if it was not asked.
        rss_mb: Memory.
        files: Open files.
    """

    life: int = 0
    counters: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Any] | None = None
    rss_mb: float = 0.0
    files: int = 0


@dataclass
class Look:
    """Everything that is seen at one moment; None for what could not be read just then.

    Attributes:
        waiting: Steps of the trajectories that wait in the outbox, by id.
        broken: Files that are not whole, in words.
        unsigned: Models that are not what was signed, in words.
        orphans: Processes that nobody looks after, by age in seconds.
        jobs: Trainings that have not ended, by their status.
        final: All faults are over, and there was time to recover.
    """

    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    rows: Rows | None = None
    service: Service | None = None
    waiting: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    orphans: dict[str, float] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)
    final: bool = False
