"""Train in the market: PPO from Stable-Baselines3 on 64 accounts, tested on bars it never saw.

Run it with ``python docs/tutorials/10_train_in_the_market.py``. It needs ``agent-gym[rl]``.
This shows the plumbing. A few thousand steps teach a policy next to nothing, and the direction of
the generated market cannot be predicted: do not expect it to make money. Staying out is hard to
beat here, and a policy that earns on the test bars was lucky.
"""

import numpy as np
import torch
from stable_baselines3 import PPO

from agent_gym.core import Ref, Seeds
from agent_gym.envs import MarketVectorEnv
from agent_gym.envs.sb3_view import SB3VecEnv
from agent_gym.markets.source import open_market

STEPS, LANES = 8_192, 64
torch.set_num_threads(1)  # small networks are faster so, and the result does not vary

# 1. Two markets from different seeds: one to learn in, one to be judged in.
market = Ref(use="synthetic/btc-1h", params={"n_bars": 4_000})
learning, judging = (open_market(market, Seeds(seed)) for seed in (1, 2))

# 2. 64 accounts side by side, each in its own window of 256 bars; one compiled call steps them all.
#    Action i asks for levels[i], as a fraction of equity. Costs are the defaults of the venue.
actions = {"kind": "discrete", "levels": (0.0, 0.5, 1.0)}
env = MarketVectorEnv(LANES, learning, actions=actions, episode_bars=256)
model = PPO("MlpPolicy", SB3VecEnv(env), n_steps=64, batch_size=1_024, n_epochs=4, seed=5)
model.learn(STEPS)
print(f"learned from {model.num_timesteps:,} steps of {LANES} accounts")


# 3. The judge: one account, the whole other series, the same venue to the bit.
def judge(policy) -> tuple[float, int]:
    test = MarketVectorEnv(
        1, judging, actions=actions, episode_bars=None, random_start=False, reward="log_equity"
    )
    obs, _ = test.reset(seed=0)
    growth, over = 0.0, False
    while not over:
        obs, reward, terminated, truncated, _ = test.step(policy(obs))
        growth += float(reward[0])
        over = bool(terminated[0] or truncated[0])
    return growth, int(test.lanes.state["trades"][0])


policies = {
    "trained": lambda obs: model.predict(obs, deterministic=True)[0],
    "stay out": lambda obs: np.array([0]),
    "buy and hold": lambda obs: np.array([2]),
}
print("on bars it never saw, after costs")
for name, policy in policies.items():
    growth, trades = judge(policy)
    print(f"  {name:<13} log growth {growth:+.4f}   {trades:>5} trades")
print("One path and one seed: this is a demonstration, not evidence.")
