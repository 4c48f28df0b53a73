"""A small store of benchmark play whose members differ in what they do."""

from pathlib import Path

from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.judge.practice import PLAYERS
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.rollouts.database import (
    EpisodeFigures,
    TrajectoryContext,
    TrajectoryRecorder,
)
from agent_gym.rollouts.play import run_episode

SMALL = SnapshotConfig(duration_minutes=450)  # 30 ticks
FOUR = ("optimum", "momentum", "contrarian", "flat")


def record(store, *, groups=2, players=FOUR, run_id=""):
    """Let players meet snapshots; return the ids by group, in the order of the players."""
    ids = []
    for number in range(groups):
        snapshot = BenchmarkDataGenerator(SMALL).generate(number).snapshot
        world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path(), text=True), snapshot)
        names = world.start(TRADER, Seeds(0)).feature_names
        with TrajectoryRecorder(store) as recorder:
            made = []
            for place, player in enumerate(players):
                recorder.begin(
                    TrajectoryContext(
                        agent="same-agent",
                        agent_version="v1",
                        snapshot_id=snapshot.id,
                        run_id=run_id,
                        seed=place,
                        details={"feature_names": list(names)},
                    )
                )
                episode = f"{run_id}{number}-{place}"
                team = Independent({TRADER: PLAYERS[player](snapshot)})
                run_episode(world, team, episode, Seeds(place), [recorder])
                recorder.annotate(EpisodeFigures(metrics={"skill": {"depth": place / 10}}))
                made.append(episode)
            recorder.flush()
            ids.append([recorder.trajectory_ids(one)[TRADER] for one in made])
    return ids


def play_one(recorder, player, number=0):
    """Let one player meet a snapshot once more; what it is begins with the recorder."""
    snapshot = BenchmarkDataGenerator(SMALL).generate(number).snapshot
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=Path(), text=True), snapshot)
    run_episode(
        world, Independent({TRADER: PLAYERS[player](snapshot)}), player, Seeds(0), [recorder]
    )
