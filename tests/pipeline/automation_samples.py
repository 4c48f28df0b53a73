"""A small store of recorded play: a neural policy on the signal market."""

from pathlib import Path

from agent_gym.agents.neural.agent import NeuralAgent
from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder, TrajectoryStore
from agent_gym.rollouts.play import run_episode
from agent_gym.training.grpo.signal_market import FEATURES, SignalMarket, SignalWorld

MARKET = SignalMarket()
POLICY = MARKET.policy(Seeds(1).child("policy"))


class OneSnapshot(SignalWorld):
    """The signal market, the same snapshot in every episode."""

    def __init__(self, number: int) -> None:
        super().__init__(MARKET)
        self._number = number

    def reset(self, seeds):
        return super().reset(Seeds(self._number).child("snapshot"))


def record(
    store: TrajectoryStore,
    *,
    groups: int = 2,
    size: int = 3,
    policy: NeuralPolicy = POLICY,
    deterministic: bool = False,
) -> None:
    """Play ``size`` episodes on each of ``groups`` snapshots, and record them."""
    with TrajectoryRecorder(store) as recorder:
        for group in range(groups):
            world = OneSnapshot(group)
            for member in range(size):
                agent = NeuralAgent(policy, deterministic=deterministic)
                recorder.begin(
                    TrajectoryContext(
                        agent_version=policy.version,
                        snapshot_id=f"snapshot-{group}",
                        seed=member,
                        details={"feature_names": list(FEATURES)},
                    )
                )
                seeds = Seeds(group * 1000 + member)
                team = Independent({world.roles[0]: agent})
                run_episode(world, team, f"{group}-{member}", seeds, [recorder])


def opened(folder: Path) -> TrajectoryStore:
    return TrajectoryStore.open(folder=folder)
