"""``BenchmarkRunner``: any registered agent or team on any snapshots, in parallel, limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from agent_gym.agents.team import Independent
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref, configure, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent, Team
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark import baselines
from agent_gym.evaluation.benchmark.correctness import correctness
from agent_gym.evaluation.benchmark.episode import (
    A2ABot,
    TimedAgent,
    WatchedWorld,
    play_bot,
    play_team,
)
from agent_gym.evaluation.benchmark.metrics import score, validate
from agent_gym.evaluation.benchmark.optimum import BayesOptimum
from agent_gym.markets.snapshot.sealed import load_truth, truth_path
from agent_gym.rollouts.batch import Executor, Progress
from agent_gym.rollouts.choice import make_executor
from agent_gym.rollouts.jobs import Job, files_named
from agent_gym.rollouts.play import EpisodeResult, Failure, Status

OPTIMUM = "optimum"
IMPORTS = (baselines.__name__,)


class BenchmarkJob(Job):
    """One episode of one player on one snapshot, scored after it from the sealed truth.

    Without an agent and without a team the attainable optimum plays.
    """

    player: str
    snapshot: Path
    agent: Ref | None = None
    team: Ref | None = None
    seed: int = Field(default=0, ge=0)
    world: dict[str, Any] = Field(default_factory=dict, description="parameters of the world")
    max_steps: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=1)
    details: bool = Field(default=False, description="also correctness of actions, and equity")

    @model_validator(mode="after")
    def _one_player(self) -> Self:
        if self.agent is not None and self.team is not None:
            raise ValueError("name either an agent or a team")
        return self

    @override
    def run(self) -> dict[str, Any]:
        """Play and score; what the player does wrong is the row's status."""
        rules = configure(
            BenchmarkWorldConfig, self.world | {"snapshot": self.snapshot}, where="world"
        )
        watched = WatchedWorld(BenchmarkWorld(rules), self.max_steps)
        seeds, episode = Seeds(self.seed), f"{self.player}-{watched.world.snapshot.id}"
        player = self._player(watched.world)
        timing: dict[str, float] | None = None
        if isinstance(player, A2ABot):
            result = play_bot(watched, player, episode, seeds, self.max_calls)
        elif self.team is not None:
            result = play_team(watched, cast(Team, player), episode, seeds)
        else:
            timed = TimedAgent(cast(Agent, player), SystemClock())
            result = play_team(watched, Independent({TRADER: timed}), episode, seeds)
            timing = timed.timing() if timed.seconds else None
        return self._row(watched, result) | {"timing": timing}

    @override
    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return the row of an episode whose process was lost."""
        return self._head() | {"status": status, "error": failure, "steps": 0, "return": None}

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the snapshot with its truth, and the models of the player."""
        truth = truth_path(self.snapshot)
        agent = () if self.agent is None else files_named("agent", self.agent)
        team = () if self.team is None else files_named("team", self.team)
        return (self.snapshot, *((truth,) if truth.exists() else ()), *agent, *team)

    def _player(self, world: BenchmarkWorld) -> object:
        if self.team is not None:
            return make("team", self.team)
        if self.agent is not None:
            return make("agent", self.agent)
        return BayesOptimum(world.snapshot, world.config)

    def _head(self) -> dict[str, Any]:
        return {"player": self.player, "snapshot": self.snapshot.name, "seed": self.seed}

    def _row(self, watched: WatchedWorld, result: EpisodeResult) -> dict[str, Any]:
        snapshot = watched.world.snapshot
        row = self._head() | {
            "scenario_id": f"benchmark-{snapshot.id}",
            "scenario": snapshot.config.scenario,
            "status": result.status,
            "error": result.error,
            "steps": result.steps,
            "return": result.total_reward.get(TRADER),
        }
        if result.status != "ok":
            return row
        truth, account = load_truth(truth_path(self.snapshot), snapshot), watched.account()
        metrics = score(account, truth)
        row |= {"metrics": metrics, "problems": validate(metrics, account, truth)}
        if self.details:
            row["correctness"] = correctness(snapshot, truth, account.floor.actions)
            row["pnlHistory"] = [value - account.equity[0] for value in account.equity]
        return row


class RunnerConfig(Config):
    """How many at a time, and how long anything may take."""

    workers: int = Field(default=1, ge=1)
    timeout_s: float = Field(default=60.0, gt=0.0, description="wall time of one episode")
    max_steps: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=1, description="calls of a bot in an episode")
    world: dict[str, Any] = Field(default_factory=dict, description="parameters of the world")
    details: bool = False
    optimum: bool = Field(default=True, description="let the yardstick play, too")
    seed: int = Field(default=0, ge=0, description="of agents that draw")
    imports: tuple[str, ...] = Field(default=(), description="modules that register agents")


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The rows of all episodes; a failed episode is a row with its status."""

    rows: tuple[dict[str, Any], ...]

    def summary(self) -> list[dict[str, Any]]:
        """Return a line for each player: its mean return, and as a share of the optimum's.

        Only snapshots on which both ended well are compared.
        """
        best = {row["snapshot"]: row for row in self.rows if row["player"] == OPTIMUM}
        players = dict.fromkeys(row["player"] for row in self.rows)
        return [self._line(player, best) for player in players]

    def _line(self, player: str, best: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        rows = [row for row in self.rows if row["player"] == player]
        good = [row for row in rows if row["status"] == "ok"]
        paired = [row for row in good if best.get(row["snapshot"], row)["status"] == "ok"]
        attainable = [best[row["snapshot"]]["return"] for row in paired if row["snapshot"] in best]
        total = float(np.sum(attainable)) if attainable else 0.0
        own = float(np.sum([row["return"] for row in paired]))
        return {
            "player": player,
            "episodes": len(rows),
            "failed": len(rows) - len(good),
            "mean_return": float(np.mean([row["return"] for row in good])) if good else None,
            "share_of_optimum": own / total if total > 0.0 else None,
            "mean_drawdown": _mean([row["metrics"]["maxDrawdown"] for row in good]),
            "accuracy": _mean([row["metrics"]["predictionMetrics"]["accuracy"] for row in good]),
            "optimality": _mean([row["metrics"]["optimalityScore"] for row in good]),
            "invalid_calls": sum(row["metrics"]["invalidCalls"] for row in good),
        }


class BenchmarkRunner:
    """Plays players on snapshots; rows do not depend on the number of workers.

    Args:
        config: How long anything may take.
        executor: Whose processes play, if not ``workers`` of its own; it must import ``IMPORTS``.
    """

    def __init__(
        self, config: RunnerConfig | None = None, executor: Executor | None = None
    ) -> None:
        self.config, self._executor = config or RunnerConfig(), executor

    def run(
        self,
        snapshots: Sequence[Path],
        agents: Mapping[str, Ref],
        *,
        teams: Mapping[str, Ref] | None = None,
        progress: Progress | None = None,
    ) -> BenchmarkReport:
        """Play every agent and team on every snapshot; names are free, but for the optimum's."""
        jobs = self.jobs(snapshots, agents, teams or {})
        config = self.config
        imports = (*IMPORTS, *config.imports)
        executor = self._executor or make_executor(config.workers, imports=imports)
        batch = executor.run(jobs, progress, timeout_s=config.timeout_s)
        return BenchmarkReport(tuple(batch.rows))

    def jobs(
        self, snapshots: Sequence[Path], agents: Mapping[str, Ref], teams: Mapping[str, Ref]
    ) -> list[BenchmarkJob]:
        """Return the episodes to play, players in the order given, the optimum last."""
        names = [*agents, *teams, *([OPTIMUM] if self.config.optimum else [])]
        if len(set(names)) != len(names) or OPTIMUM in {*agents, *teams}:
            raise ConfigError("two players have one name", found=", ".join(names))
        config = self.config
        return [
            BenchmarkJob(
                player=name,
                snapshot=path,
                agent=agents.get(name),
                team=teams.get(name),
                seed=config.seed,
                world=config.world,
                max_steps=config.max_steps,
                max_calls=config.max_calls,
                details=config.details,
            )
            for name in names
            for path in snapshots
        ]


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
