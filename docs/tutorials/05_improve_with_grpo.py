"""Improve an agent with GRPO: play, learn from what was played, and look at snapshots never seen.

Run it with ``python docs/tutorials/05_improve_with_grpo.py``. It needs ``agent-gym[rl]``. The
market is a toy on purpose: its best policy is known, so "it has learned" is a figure, no feeling.
"""

import shutil
from dataclasses import replace

from agent_gym.agents.neural import NeuralPolicy
from agent_gym.core import Seeds
from agent_gym.core.files import home
from agent_gym.training.grpo import AdamConfig, GRPOConfig, GRPOTrainingService, NeuralLearner
from agent_gym.training.grpo.signal_market import SignalMarket

UPDATES, SNAPSHOTS, GROUP = 20, 8, 8
folder = home() / "tutorials" / "05_improve_with_grpo"
shutil.rmtree(folder, ignore_errors=True)

# 1. A market with a signal that is right in three of four ticks; two columns of noise are shown,
#    too. The agent is a small network that knows nothing yet. It may be short, flat or long.
market = SignalMarket()
learner = NeuralLearner(market.policy(Seeds(1)))
unseen = market.snapshots(Seeds(2), 200)  # for judging alone
best = market.best(unseen)


def judge(when: str) -> None:
    """Tell what the policy earns by doing what it finds likeliest."""
    score = market.score(learner.policy, unseen)
    print(f"{when:<18} {score:5.2f} an episode on 200 unseen snapshots; the best is {best:.2f}")


judge("before")


# 2. Each update plays 8 snapshots, each 8 times, with the policy as it is then. A trajectory is
#    compared with the others of its snapshot, so luck that all of them shared teaches nothing.
def play(update: int, own: NeuralLearner):
    """Record a batch; GRPO takes from it what was played and how likely each decision was."""
    seeds = Seeds(1).child("update", update)
    snapshots = market.snapshots(seeds.child("snapshots"), SNAPSHOTS)
    return market.play(own.policy, snapshots, GROUP, seeds.child("play"))


config = GRPOConfig(updates=UPDATES, adam=AdamConfig(learning_rate=0.02))
result = GRPOTrainingService(config).train(learner, play, folder=folder / "run")
print(f"learned from       {UPDATES} updates of {SNAPSHOTS} snapshots x {GROUP} trajectories")
judge("after")


# 3. The control: rewards that are all alike must teach nothing, not one bit of the network.
def play_blind(update: int, own: NeuralLearner):
    """Record a batch and forget what it earned."""
    batch = play(update, own)
    return replace(batch, rewards=0 * batch.rewards, returns=0 * batch.returns)


blind = NeuralLearner(market.policy(Seeds(1)))
told_nothing = GRPOTrainingService(GRPOConfig(updates=3)).train(blind, play_blind)
same = told_nothing.model_after == told_nothing.model_before
print(f"control            rewards all alike: the network is {'unchanged' if same else 'CHANGED'}")

# 4. Keep it. A model is a folder; reading it runs nothing, and one changed byte is refused.
learner.policy.save(folder / "model")
again = NeuralPolicy.load(folder / "model")
print(f"\nmodel    {folder / 'model'}")
print(f"version  {again.version}, as trained: {again.version == result.model_after}")
print(
    "\nOne seed of a toy. `agent-gym harness` runs such a loop on snapshots, with a sealed judge."
)
