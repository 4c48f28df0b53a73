"""Small things to record, for the tests of the trajectory store."""

import numpy as np
from rollout_samples import TRADER, Walk, WalkConfig, seeds

from agent_gym.agents.team import Independent
from agent_gym.core.types import Decision, Nanos, Observation, Outcome, Role, Step
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder
from agent_gym.rollouts.play import run_episode

START_NS = 1_704_067_200_000_000_000  # 2024-01-01 UTC


class Sampler:
    """A policy that says with which probability it did what it did."""

    name = "sampler"

    def reset(self, start):
        self.rng = start.seeds.child("sampler").rng()

    def act(self, obs):
        action = int(self.rng.integers(3))
        return Decision(action, {"log_prob": -1.0986 - action / 10, "entropy": 1.0})

    def observe(self, step):
        pass


def context(n=0, **more):
    fields = {"snapshot_id": f"s{n % 2}", "agent_version": "v1", "seed": n} | more
    return TrajectoryContext(**fields)


def play_one(recorder, n, agent=None, steps=6, episode=None, **about):
    recorder.begin(context(n, **about))
    world = Walk(WalkConfig(n=steps))
    team = Independent({TRADER: agent or Sampler()})
    return run_episode(world, team, episode or f"e{n}", seeds(n), [recorder])


def fill(store, numbers, **about):
    """Record one episode for each number; return their ids, in order."""
    with TrajectoryRecorder(store) as recorder:
        for n in numbers:
            assert play_one(recorder, n, **about).status == "ok"
        return [recorder.trajectory_ids(f"e{n}")["trader"] for n in numbers]


def step_of(t=0, action=1.0, episode="e", role="trader", end=False, **more):
    seen = Observation(Nanos(START_NS + t), np.array([float(t), 2.0]), text=more.pop("text", None))
    info, reward = more.pop("info", None), more.pop("reward", t / 3)
    after = Observation(Nanos(START_NS + t + 1), np.array([t + 1.0, 2.0]))
    outcome = Outcome(after, reward, terminated=end, info=info)
    return Step(episode, t, Role(role), "a", seen, Decision(action, **more), outcome)
