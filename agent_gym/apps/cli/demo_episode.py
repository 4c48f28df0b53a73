"""The demo's episode as a trajectory, so that the dashboard replays it."""

from __future__ import annotations

from typing import cast

from agent_gym.agents.team import Independent
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.results import BacktestResults
from agent_gym.evaluation.stepwise import EPISODE, TRADER, build_world
from agent_gym.rollouts.database import (
    FEATURE_NAMES,
    EpisodeFigures,
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.play import run_episode

SCENARIO = "demo"


def keep_episode(run: BacktestResults, subject: Ref, seed: int, url: str | None) -> str:
    """Play the run step by step once more into the store, and return the trajectory's id.

    The same run again is the same trajectory. Nobody learns from it.
    """
    world, seeds = build_world(run.bars, BacktestConfig()), Seeds(seed)
    context = TrajectoryContext(
        agent=subject.use,
        snapshot_id=run.bars.fingerprint,
        scenario_id=SCENARIO,
        seed=seed,
        purpose="evaluation",
        details={
            FEATURE_NAMES: list(world.start(TRADER, seeds).feature_names),
            "market": run.bars.provenance.origin,
        },
    )
    team = Independent({TRADER: cast(Agent, make("agent", subject))})
    final, opening = float(run.equity[-1]), float(run.equity[0])
    with TrajectoryStore.open(url) as store, TrajectoryRecorder(store) as recorder:
        recorder.begin(context)
        run_episode(world, team, EPISODE, seeds, (recorder,))
        recorder.annotate(
            EpisodeFigures(
                final_balance=final,
                final_pnl=final - opening,
                trades_executed=len(run.fills),
                metrics=run.metrics.as_dict(),
            )
        )
        return recorder.trajectory_ids(EPISODE)[TRADER]
