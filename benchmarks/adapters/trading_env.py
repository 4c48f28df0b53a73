"""gym-trading-env: one Gymnasium environment with a window of 32 bars and two own values."""

from __future__ import annotations

from importlib.metadata import version

import inputs
import pandas as pd
from gym_trading_env.environments import TradingEnv
from inputs import FEE, WINDOW

N_BARS = 100_000


class Peer:
    """Steps the bare environment class, without the wrappers that ``gym.make`` adds."""

    version = version("gym-trading-env")

    def __init__(self, bars: str) -> None:
        columns = inputs.head(inputs.load(bars), N_BARS)
        frame = pd.DataFrame(columns)
        frame.index = pd.date_range("2020-01-01", periods=N_BARS, freq="min")
        frame["feature_return"] = frame["close"].pct_change().fillna(0.0)
        self.env = TradingEnv(
            frame, positions=[0, 1], windows=WINDOW, trading_fees=FEE, initial_position=0, verbose=0
        )

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
