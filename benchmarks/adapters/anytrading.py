"""gym-anytrading: one Gymnasium environment with a window of 32 bars."""

from __future__ import annotations

from importlib.metadata import version

import inputs
import pandas as pd
from gym_anytrading.envs import StocksEnv
from inputs import WINDOW

N_BARS = 100_000


class Peer:
    """Steps the bare environment class, without the wrappers that ``gym.make`` adds."""

    version = version("gym-anytrading")

    def __init__(self, bars: str) -> None:
        close = inputs.head(inputs.load(bars), N_BARS)["close"]
        frame = pd.DataFrame({"Close": close})
        self.env = StocksEnv(df=frame, window_size=WINDOW, frame_bound=(WINDOW, N_BARS))

    def steps(self, n_steps: int) -> dict:
        actions = inputs.random_actions(n_steps)
        env = self.env
        env.reset(seed=1)

        def work() -> None:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

        seconds, _ = inputs.timed(work)
        return {"seconds": seconds, "units": n_steps}
