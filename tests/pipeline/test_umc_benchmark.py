"""UMC as a player of benchmark snapshots, through the runner that plays all others."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from agent_gym.agents.team import Independent
from agent_gym.agents.umc.benchmark import NAME, UMCBenchmarkAgent, UMCBenchmarkConfig
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, Role
from agent_gym.envs.benchmark import BenchmarkWorld, BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.evaluation.benchmark.runner import BenchmarkRunner, RunnerConfig
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.types import Snapshot
from agent_gym.rollouts.play import play

SEED = 2_000
MODULE = "agent_gym.agents.umc.benchmark"


@cache
def snapshot() -> Snapshot:
    made = BenchmarkDataGenerator(SnapshotConfig(scenario="bear")).generate(SEED)
    return made.snapshot


class Noted(UMCBenchmarkAgent):
    """Keeps what it asked for."""

    def __init__(self, config: UMCBenchmarkConfig) -> None:
        super().__init__(config)
        self.asked: list[np.ndarray] = []

    def act(self, obs):
        made = super().act(obs)
        self.asked.append(np.array(made.action))
        return made


def played(agent: UMCBenchmarkAgent) -> float:
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path("unused")), snapshot())
    result = play(world, Independent({TRADER: agent}), "e", Seeds(SEED))
    assert result.status == "ok"
    assert world.floor.invalid == 0
    return world.equity


def test_it_trades_perpetuals_alone_and_nothing_before_it_has_learned() -> None:
    agent = Noted(UMCBenchmarkConfig())
    equity = played(agent)
    asked = np.array(agent.asked)
    questions = len(snapshot().predictions)
    assert not asked[:, :questions].any()
    assert not asked[: agent.config.learn_ticks - 1].any()
    assert asked[:, questions:].any()
    assert np.abs(asked).max() <= 1.0
    assert equity == played(UMCBenchmarkAgent(UMCBenchmarkConfig()))


def test_it_asks_for_the_same_whatever_comes_later() -> None:
    whole = Noted(UMCBenchmarkConfig())
    played(whole)
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path("unused")), snapshot())
    seeds = Seeds(SEED).child("e")
    part = Noted(UMCBenchmarkConfig())
    part.reset(world.start(TRADER, seeds.child("agent", TRADER)))
    obs = world.reset(seeds.child("world"))[TRADER]
    for _ in range(60):
        obs = world.advance(part.act(obs).action).observation
    assert np.array_equal(np.array(part.asked), np.array(whole.asked[:60]))


@pytest.mark.parametrize("raised", [AgentError("no plan"), DataError("stands still")])
def test_where_it_cannot_decide_it_holds_nothing(
    raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise raised

    monkeypatch.setattr("agent_gym.agents.umc.benchmark.UMCAgent.fit", fails)
    agent = Noted(UMCBenchmarkConfig())
    assert played(agent) == 10_000.0
    assert not np.array(agent.asked).any()


def test_another_world_and_unknown_inputs_are_refused() -> None:
    start = EpisodeStart(Role("trader"), ("close",), ActionSpec(), Seeds(0))
    with pytest.raises(AgentError, match="no markets side by side"):
        UMCBenchmarkAgent(UMCBenchmarkConfig()).reset(start)
    wrong = UMCBenchmarkConfig.model_validate({"umc": {"inputs": ["rumour"]}})
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path("unused")), snapshot())
    agent = UMCBenchmarkAgent(wrong)
    agent.reset(world.start(TRADER, Seeds(0)))
    with pytest.raises(AgentError, match="does not show what this agent reads"):
        agent.act(world.reset(Seeds(0))[TRADER])


def test_the_runner_plays_it_beside_the_others(tmp_path: Path) -> None:
    path = BenchmarkDataGenerator(SnapshotConfig(scenario="bear")).generate(SEED).save(tmp_path)
    agents = {name: Ref(use=name) for name in (NAME, "benchmark/flat")}
    rows = BenchmarkRunner(RunnerConfig(workers=1, imports=(MODULE,))).run([path], agents).rows
    assert {row["player"]: row["status"] for row in rows}[NAME] == "ok"
    assert all(row["problems"] == [] for row in rows)
