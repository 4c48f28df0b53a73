"""A market that an agent has walked through to its end becomes a trajectory."""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.pipeline.runtime.calls import StoredCall
from agent_gym.pipeline.runtime.market import Market
from agent_gym.rollouts.database import (
    FEATURE_NAMES,
    EpisodeFigures,
    TrajectoryContext,
    TrajectoryRecorder,
    TrajectoryStore,
)
from agent_gym.rollouts.play import EpisodeResult

RUN = "service"
_ANY = Seeds(0)  # only the names are asked for


def record(
    store: TrajectoryStore, agent_id: str, calls: Sequence[StoredCall], fresh: Market
) -> str:
    """Replay the stored calls of a whole market, write them as a trajectory, and return its id.

    Written again it is the same trajectory. One in which the agent lost ticks is kept, but not to
    train on; nor is one in which the model changed halfway, or that was played with best actions.

    Args:
        store: Where to.
        agent_id: Who played.
        calls: All ticks of the market, in order.
        fresh: That market at its first tick.
    """
    first = calls[0].call
    lost = sum(each.call.status == "lost" for each in calls)
    drawn = all("log_prob" in each.call.signals for each in calls)
    episode = f"{agent_id}-{first.episode}"
    snapshot = fresh.world.snapshot
    context = TrajectoryContext(
        agent=agent_id,
        agent_version=first.model,
        snapshot_id=snapshot.id,
        seed=first.episode,
        run_id=RUN,
        purpose="training" if drawn and not lost else "evaluation",
        details={
            FEATURE_NAMES: list(fresh.start(_ANY).feature_names),
            "scenario": snapshot.config.scenario,
            "lost_ticks": lost,
        },
    )
    total, version = 0.0, first.model
    with TrajectoryRecorder(store) as recorder:
        recorder.begin(context)
        for each in calls:
            if each.call.model != version:
                version = each.call.model
                recorder.use_version(version)
            recorder.write(fresh.replay(each.call, episode))
            total += each.call.reward
        recorder.finish_episode(EpisodeResult(episode, len(calls), {TRADER: total}))
        equity, cash = fresh.world.equity, fresh.world.config.cash
        recorder.annotate(EpisodeFigures(final_balance=equity, final_pnl=equity - cash))
        return recorder.trajectory_ids(episode)[str(TRADER)]
