"""The first champion: a policy that has learned nothing, and so holds nothing.

Its best action is to keep what it holds, and it begins with nothing: it pays nothing and earns
nothing, so trading less is no gain over it. While it explores it takes positions and keeps
them for some ticks; turning them over at every tick would drown what there is to learn in fees.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agent_gym.agents.neural.agent import NeuralAgent
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.neural.policy import NeuralConfig, NeuralPolicy
from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.rollouts.play import run_episode
from agent_gym.rollouts.sinks import MemorySink

LOOKED_AT = 5
INERTIA = 3.0  # of ten draws, nine keep what is held


def untrained(snapshots: Sequence[Path], seeds: Seeds) -> NeuralPolicy:
    """Return a policy with drawn weights whose inputs are scaled by some random play.

    Args:
        snapshots: What it will learn from; the first few are looked at.
        seeds: Where weights and play are drawn from.
    """
    worlds = [BenchmarkWorld(BenchmarkWorldConfig(snapshot=path)) for path in snapshots[:LOOKED_AT]]
    names = worlds[0].start(TRADER, seeds).feature_names
    inputs = FeatureLayout.of(names).inputs
    config = NeuralConfig(inertia=INERTIA)
    drawn = NeuralPolicy.create(config, inputs, seeds.child("weights"))
    rows = [_seen(world, drawn, seeds.child("look", k)) for k, world in enumerate(worlds)]
    sample = np.concatenate(rows)[:, FeatureLayout.of(names).columns(inputs)]
    return NeuralPolicy.create(config, inputs, seeds.child("weights"), sample)


def _seen(world: BenchmarkWorld, policy: NeuralPolicy, seeds: Seeds) -> FloatArray:
    sink = MemorySink()
    run_episode(world, Independent({TRADER: NeuralAgent(policy)}), "look", seeds, [sink])
    return np.array([step.before.features for step in sink.steps])
