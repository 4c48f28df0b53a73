"""Champion and challenger on the same snapshots: the evidence for the gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.registry import Ref
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.evaluation.promotion import Figures, Pair
from agent_gym.rollouts.executor import Progress

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
    workers: int = 2,
    progress: Progress | None = None,
) -> Duel:
    """Let both play every snapshot, each with its best action.

    Args:
        champion: Folder of its policy.
        challenger: Folder of its policy.
        snapshots: What is played.
        workers: Processes; no figure but the time of a decision depends on it.
        progress: Told after each episode.
    """
    rows = _played({CHAMPION: champion, CHALLENGER: challenger}, snapshots, workers, progress)
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
    """Say whether an episode played twice gives the same row, whatever time it took."""
    first, second = (
        _without_time(_played({CHALLENGER: model}, [snapshot], 1)[0]) for _ in range(2)
    )
    return first == second


def distances(
    champion: NeuralPolicy, challenger: NeuralPolicy, blocks: FloatArray
) -> tuple[float, float]:
    """Return the mean entropy of the challenger, and its mean distance from the champion, in nats.

    Args:
        champion: Who serves.
        challenger: Who wants to.
        blocks: What was seen of single markets, ``[..., width]``.
    """
    own, other = challenger.log_probs(blocks), champion.log_probs(blocks)
    chances = np.exp(own)
    entropy = -(chances * own).sum(axis=-1).mean()
    return float(entropy), float((chances * (own - other)).sum(axis=-1).mean())


def _played(
    models: dict[str, Path],
    snapshots: Sequence[Path],
    workers: int,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    agents = {
        name: Ref(use="neural/market", params={"model": str(path), "deterministic": True})
        for name, path in models.items()
    }
    runner = BenchmarkRunner(RunnerConfig(workers=workers, optimum=False))
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
