"""Groups to calibrate on: different players on fresh benchmark snapshots, whose truth is ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_gym.agents.team import Independent
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark import baselines
from agent_gym.evaluation.benchmark.optimum import BayesOptimum
from agent_gym.evaluation.judge.course import candidate_of, course_of_steps
from agent_gym.evaluation.judge.records import CandidateGroup, RecordConfig
from agent_gym.evaluation.judge.truth import RETURN
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.types import Snapshot
from agent_gym.rollouts.play import run_episode
from agent_gym.rollouts.sinks import MemorySink

PLAYERS: dict[str, Callable[[Snapshot], Agent]] = {
    "optimum": BayesOptimum,
    "sentiment": lambda _: baselines.sentiment(baselines.ThresholdConfig()),
    "headline": lambda _: baselines.headline(baselines.ThresholdConfig()),
    "momentum": lambda _: baselines.momentum(baselines.ThresholdConfig()),
    "contrarian": lambda _: baselines.contrarian(baselines.ThresholdConfig()),
    "random": lambda _: baselines.random(baselines.RandomConfig(hold_ticks=4)),
    "long": lambda _: baselines.long(baselines.LongConfig()),
    "flat": lambda _: baselines.flat(baselines.FlatConfig()),
}


@dataclass(frozen=True, slots=True)
class PracticeGroup:
    """A group and what its members earned, by id."""

    group: CandidateGroup
    returns: dict[str, float]


def practice_groups(n: int, seed: int, record: RecordConfig) -> Iterator[PracticeGroup]:
    """Play groups of eight players, scenario after scenario; the same seed gives the same words."""
    scenarios = list(SCENARIOS)
    for place in range(n):
        scenario = scenarios[place % len(scenarios)]
        config = SnapshotConfig.model_validate({"scenario": scenario})
        seeds = Seeds(seed).child("judge practice", place)
        yield _played(
            BenchmarkDataGenerator(config).generate(seeds.as_int()).snapshot, seeds, record
        )


def _played(snapshot: Snapshot, seeds: Seeds, record: RecordConfig) -> PracticeGroup:
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path(), text=True), snapshot)
    names = world.start(TRADER, seeds).feature_names
    candidates, returns = [], {}
    for player, make in PLAYERS.items():
        sink = MemorySink()
        team = Independent({TRADER: make(snapshot)})
        result = run_episode(world, team, player, seeds, [sink])
        if result.status != "ok":
            raise DataError("a player of a practice group failed", where=player, found=result.error)
        returns[player] = result.total_reward[TRADER]
        course = course_of_steps(player, names, sink.steps, {RETURN: returns[player]})
        candidates.append(candidate_of(course, record))
    group = CandidateGroup(group_id=f"practice-{snapshot.id}", candidates=tuple(candidates))
    return PracticeGroup(group, returns)
