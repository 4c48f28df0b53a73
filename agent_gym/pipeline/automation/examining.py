"""Champion and challenger on the same snapshots: the evidence for the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.evaluation.benchmark.runner import IMPORTS, BenchmarkRunner, RunnerConfig
from agent_gym.evaluation.promotion import Figures, Pair
from agent_gym.pipeline.automation.kinds import kind_of
from agent_gym.rollouts.batch import Executor, Progress
from agent_gym.rollouts.executor import LocalExecutor

CHAMPION, CHALLENGER = "champion", "challenger"
RUINED = 0.01
WALL_TIME = "timing"


@dataclass(frozen=True, slots=True)
class Duel:
    """Both sides on some snapshots; a side whose episode failed has no pair there."""

    pairs: tuple[Pair, ...]
    figures: Figures
    failed: tuple[str, ...]


def duel(
    champion: Path,
    challenger: Path,
    snapshots: Sequence[Path],
    executor: Executor,
    progress: Progress | None = None,
) -> Duel:
    """Let both play every snapshot, each with its best action.

    Args:
        champion: Folder of its policy.
        challenger: Folder of its policy.
        snapshots: What is played.
        executor: Whose processes play; no figure but the time of a decision depends on it.
        progress: Told after each episode.
    """
    rows = _played({CHAMPION: champion, CHALLENGER: challenger}, snapshots, executor, progress)
    by_side: dict[str, dict[str, dict[str, Any]]] = {CHAMPION: {}, CHALLENGER: {}}
    for row in rows:
        by_side[row["player"]][row["snapshot"]] = row
    failed = tuple(
        f"{row['player']} on {row['snapshot']}: {(row['error'] or {}).get('what', row['status'])}"
        for row in rows
        if row["status"] != "ok"
    )
    pairs = tuple(
        Pair(
            snapshot_id=own["scenario_id"].removeprefix("benchmark-"),
            slice=own["scenario"],
            champion=other["return"],
            challenger=own["return"],
        )
        for name, own in by_side[CHALLENGER].items()
        if own["status"] == "ok" == (other := by_side[CHAMPION][name])["status"]
    )
    good = [row for row in by_side[CHALLENGER].values() if row["status"] == "ok"]
    return Duel(pairs, _figures(good), failed)


def replay_equal(model: Path, snapshot: Path) -> bool:
    """Say whether two new processes play an episode alike, whatever time they take."""
    executor = LocalExecutor(1, imports=IMPORTS, fresh=True)
    first, second = (
        _without_time(_played({CHALLENGER: model}, [snapshot], executor)[0]) for _ in range(2)
    )
    return first == second


def _played(
    models: dict[str, Path],
    snapshots: Sequence[Path],
    executor: Executor,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    kinds = {name: kind_of(path) for name, path in models.items()}
    agents = {name: kinds[name].best(path) for name, path in models.items()}
    world = {"text": True} if any(kind.text for kind in kinds.values()) else {}
    patience_s = max(kind.episode_timeout_s for kind in kinds.values())
    config = RunnerConfig(optimum=False, world=world, timeout_s=patience_s)
    runner = BenchmarkRunner(config, executor)
    rows = list(runner.run(snapshots, agents, progress=progress).rows)
    lost = [row for row in rows if row["status"] in ("crashed", "cancelled", "interrupted")]
    if lost:
        raise DataError("an episode was lost", where=lost[0]["snapshot"], found=lost[0]["error"])
    return rows


def _figures(rows: Sequence[dict[str, Any]]) -> Figures:
    if not rows:
        return Figures()
    metrics = [row["metrics"] for row in rows]
    steps = sum(row["steps"] for row in rows)
    return Figures(
        max_drawdown=max(one["maxDrawdown"] for one in metrics),
        ruined=sum(one["totalReturn"] <= RUINED - 1.0 for one in metrics),
        invalid_rate=sum(one["invalidCalls"] for one in metrics) / steps,
        latency_ms=max(row[WALL_TIME]["p99ResponseTime"] for row in rows),
    )


def _without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != WALL_TIME}
