"""Small runs that the tests of the trainer share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from agent_gym.training.rl.callbacks import Progress, Verdict
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.loop import Loop
from agent_gym.training.rl.result import RunFolder
from agent_gym.training.rl.setup import Setup, make_setup

torch.set_num_threads(1)  # two threads that wait for each other are slower than one

ON_POLICY = ("ppo", "a2c")
OFF_POLICY = ("sac", "td3")
FOUR = ON_POLICY + OFF_POLICY
OTHERS = ("dqn", "qrdqn", "tqc")

REPLAY = {
    "buffer_size": 150,  # small, so that it is full and wraps round within a run
    "batch_size": 8,
    "learning_starts": 30,
    "train_freq": 2,
    "gradient_steps": 1,
    "net_arch": (8, 8),
    "learning_rate": "linear_0.003",
}
AGENTS: dict[str, dict[str, Any]] = {
    "ppo": {
        "n_steps": 24,
        "batch_size": 36,
        "n_epochs": 2,
        "learning_rate": "linear_0.003",
        "clip_range": "linear_0.3_0.1",
        "net_arch": (8, 8),
        "fused_adam": True,
    },
    "a2c": {"n_steps": 6, "learning_rate": "linear_0.003_0.001", "net_arch": (8, 8)},
    "sac": REPLAY,
    "td3": REPLAY | {"action_noise": 0.2, "n_steps": 3},
    "tqc": REPLAY,
    "dqn": REPLAY | {"target_update_interval": 40, "exploration_fraction": 0.5},
    "qrdqn": REPLAY | {"target_update_interval": 40, "exploration_fraction": 0.5},
}
ENVS: dict[str, dict[str, Any]] = {
    "lander": {"env": "LunarLander-v3", "continuous": "auto"},
    "market": {
        "env": "market",
        "env_params": {
            "market": {"use": "synthetic/btc-1h", "params": {"n_bars": 400}},
            "episode_bars": 25,
            "warmup_bars": 100,
        },
    },
}
NORMALIZED = {"observations": True, "rewards": True}


def small_config(algo: str = "ppo", env: str = "lander", **changes: Any) -> TrainerConfig:
    fields: dict[str, Any] = {
        "algo": algo,
        **ENVS[env],
        "n_envs": 3,
        "steps": 360,
        "agent": AGENTS[algo],
        "normalize": NORMALIZED,
        "evaluation": {"every": 120, "episodes": 2, "final_episodes": 2},
        "checkpoints": {"every": 70, "keep": 2},
        "trackers": {"tensorboard": False},
    }
    return TrainerConfig.model_validate(fields | changes)


def begin(config: TrainerConfig, seed: int = 5) -> tuple[Setup, Loop]:
    setup = make_setup(config, seed)
    return setup, Loop(setup.model, config.steps)


def run_out(loop: Loop) -> None:
    while not loop.done:
        loop.iterate()


class StopAt:
    """Ends a run without any farewell, as a kill does."""

    class Killed(BaseException):
        pass

    def __init__(self, iteration: int) -> None:
        self._iteration = iteration

    def on_iteration(self, progress: Progress) -> Verdict:
        if progress.iteration == self._iteration:
            raise StopAt.Killed
        return None


def csv_files(folder: Path) -> dict[str, bytes]:
    paths = RunFolder(folder)
    files = (paths.metrics, paths.episodes, paths.evaluations, paths.final_episodes)
    return {path.name: path.read_bytes() for path in files}
