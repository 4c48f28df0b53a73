"""Agents play snapshots with one model, and every step is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from typing_extensions import override

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.pipeline.automation.kinds import kind_of
from agent_gym.rollouts.batch import Executor, Progress
from agent_gym.rollouts.database import (
    FEATURE_NAMES,
    LlmCallRecord,
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import run_episode

GROUP_TIMEOUT_S = 600.0


class RecordedPlay(Job):
    """All agents on one snapshot, some times each: one group of comparable trajectories."""

    snapshot: Path
    model: Path = Field(description="folder of the policy that decides")
    agents: tuple[str, ...] = Field(min_length=1)
    repeats: int = Field(ge=1, description="episodes of each agent")
    run_id: str
    seed: int = Field(ge=0)
    url: str | None = None
    folder: Path = Field(description="of the trajectory store")

    @override
    def run(self) -> dict[str, Any]:
        """Play and record; an episode that fails is a recorded row."""
        kind = kind_of(self.model)
        agent: Any = kind.player(self.model)
        world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=self.snapshot, text=kind.text))
        seeds = Seeds(self.seed).child("recorded play", self.run_id, world.snapshot.id)
        names = list(world.start(TRADER, seeds).feature_names)
        returns, failed, steps = [], 0, 0
        with (
            TrajectoryStore.open(self.url, folder=self.folder) as store,
            TrajectoryRecorder(store) as recorder,
        ):
            for name in self.agents:
                for k in range(self.repeats):
                    recorder.begin(
                        TrajectoryContext(
                            agent=name,
                            agent_version=agent.version,
                            snapshot_id=world.snapshot.id,
                            seed=k,
                            run_id=self.run_id,
                            details={
                                FEATURE_NAMES: names,
                                "scenario": world.snapshot.config.scenario,
                            },
                        )
                    )
                    team = Independent({TRADER: agent})
                    episode = f"{self.run_id}-{world.snapshot.id[:12]}-{name}-{k}"
                    result = run_episode(world, team, episode, seeds.child(name, k), [recorder])
                    recorder.add_calls(
                        LlmCallRecord(**call.as_record()) for call in getattr(agent, "calls", ())
                    )
                    steps += result.steps
                    failed += result.status != "ok"
                    returns.append(result.total_reward.get(TRADER, 0.0))
        return {
            "status": "ok",
            "snapshot": world.snapshot.id,
            "scenario": world.snapshot.config.scenario,
            "trajectories": len(returns),
            "failed": failed,
            "steps": steps,
            "mean_return": sum(returns) / len(returns),
        }

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the snapshot and the folder of the policy."""
        return (self.snapshot, self.model)

    @override
    def writes(self) -> tuple[Path, ...]:
        """Return the folder of the trajectory store."""
        return (self.folder,)


@dataclass(frozen=True, slots=True)
class Recording:
    """Who plays, in which processes, how often, and where it is recorded."""

    store: TrajectoryStore
    executor: Executor
    agents: tuple[str, ...]
    repeats: int
    seed: int = 0

    def play(
        self,
        model: Path,
        snapshots: Sequence[Path],
        run_id: str,
        progress: Progress | None = None,
    ) -> list[dict[str, Any]]:
        """Play all snapshots; return a row for each, in their order.

        What had to wait while the database was away follows now, if it is back.
        """
        url = self.store.database.url.render_as_string(hide_password=False)
        jobs = [
            RecordedPlay(
                snapshot=path,
                model=model,
                agents=self.agents,
                repeats=self.repeats,
                run_id=run_id,
                seed=self.seed,
                url=url,
                folder=self.store.folder,
            )
            for path in snapshots
        ]
        episodes = len(self.agents) * self.repeats
        patience_s = max(GROUP_TIMEOUT_S, kind_of(model).episode_timeout_s * episodes)
        rows = list(self.executor.run(jobs, progress, timeout_s=patience_s).rows)
        self.store.deliver()
        return rows


def refuse_if_nothing(played: Sequence[dict[str, Any]]) -> None:
    """Raise if not a single snapshot could be played and recorded."""
    lost = [row for row in played if row["status"] != "ok"]
    if len(lost) == len(played):
        raise StoreError(
            "nothing could be played and recorded",
            where=f"{len(lost)} snapshots",
            found=lost[0].get("error") or lost[0]["status"],
        )
