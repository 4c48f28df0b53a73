"""A model that was rolled out goes on being watched while agents live on it.

A market that an agent has walked through with best actions is played again by the model that was
champion before; the two returns are one more pair for the monitor of the rollout, which takes the
model back by itself when they show harm.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_gym.agents.team import Independent
from agent_gym.core.errors import StoreError
from agent_gym.core.registry import make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.promotion import MonitorDecision
from agent_gym.pipeline.automation.kinds import kind_of
from agent_gym.pipeline.registry import ModelDeploymentService
from agent_gym.pipeline.runtime.calls import StoredCall
from agent_gym.rollouts.play import run_episode

log = logging.getLogger(__name__)


def watch(
    deployments: ModelDeploymentService, agent_id: str, calls: Sequence[StoredCall], snapshot: Path
) -> MonitorDecision | None:
    """Tell the monitor of the rollout what a finished market came to; None if that says nothing.

    It says nothing when no rollout is watched, another model played, ticks were lost, or actions
    were drawn. The same market told again counts once.

    Args:
        deployments: Who serves, and the rollout.
        agent_id: Who lived there.
        calls: All ticks of the market, in order.
        snapshot: The market.
    """
    rollout = deployments.state().rollout
    if rollout is None or rollout.status != "open":
        return None
    ticks = [each.call for each in calls]
    if any(tick.model != rollout.model or "log_prob" in tick.signals for tick in ticks):
        return None
    own = sum(tick.reward for tick in ticks)
    theirs = best_return(deployments.registry.load(rollout.champion).folder, snapshot)
    key = f"live:{agent_id}:{ticks[0].episode}"
    decision = deployments.observe(key, theirs, own, rollout.model)
    if decision.action == "roll_back":
        log.warning("model %s was taken back: %s", rollout.model[:12], decision.words)
    return decision


def best_return(model: Path, snapshot: Path) -> float:
    """Return what a model earns on a snapshot with its best actions."""
    kind = kind_of(model)
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=snapshot, text=kind.text))
    agent = cast(Agent, make("agent", kind.best(model)))
    result = run_episode(world, Independent({TRADER: agent}), "watch", Seeds(0), [])
    if result.status != "ok":
        raise StoreError("the former champion could not play", found=result.error)
    return result.total_reward[TRADER]
