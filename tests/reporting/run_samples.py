"""Folders of training runs as the trainer leaves them, made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.training.rl.config import TrainerConfig

LOSSES = (
    "entropy_loss",
    "policy_gradient_loss",
    "value_loss",
    "approx_kl",
    "clip_fraction",
    "loss",
    "explained_variance",
)


def write_run(
    folder: Path,
    seed: int,
    *,
    level: float = 255.0,
    status: str | None = "done",
    config: TrainerConfig | None = None,
    every: int = 25_000,
    finals: int = 100,
    iterations: int = 120,
    error: dict[str, Any] | None = None,
) -> Path:
    """Write one seed; its final mean is about ``level``."""
    config = config or TrainerConfig(algo="ppo", env="LunarLander-v3", steps=250_000)
    rng = Seeds(seed).child("sample run").rng()
    path = folder / f"seed_{seed}"
    path.mkdir(parents=True)
    said = config.model_dump(mode="json")
    (path / "config.json").write_text(json.dumps(said))
    looks = np.arange(every, config.steps + 1, every)
    means = level - (level + 180.0) * np.exp(-looks / (0.22 * config.steps))
    evaluations = [
        (step, 1000 + at, mean + rng.normal(0.0, 35.0), 300)
        for step, mean in zip(
            looks.tolist(), (means + rng.normal(0, 15.0, looks.size)).tolist(), strict=True
        )
        for at in range(20)
    ]
    write_rows(path / "evaluations.csv", "step,seed,reward,length", evaluations)
    rewards = np.where(
        rng.random(finals) < 0.04,
        rng.normal(20.0, 60.0, finals),
        rng.normal(level + 8, 22.0, finals),
    )
    final = [(config.steps, 5000 + at, reward, 250) for at, reward in enumerate(rewards.tolist())]
    if status in ("done", "stopped_early"):
        write_rows(path / "final_episodes.csv", "step,seed,reward,length", final)
    steps = np.linspace(1, config.steps, 800).astype(int).tolist()
    training = [
        (
            step,
            step % 16,
            level - 60 - 400 * np.exp(-5.0 * step / config.steps) + rng.normal(0, 60),
            300,
        )
        for step in steps
    ]
    write_rows(path / "episodes.csv", "step,lane,reward,length", training)
    rows = []
    for at in range(1, iterations + 1):
        share = at / iterations
        fall = [
            np.exp(-4 * share) * (1 + 0.2 * rng.normal()) + 0.01 * k for k in range(len(LOSSES))
        ]
        values = [*fall[:-1], 1.0 - fall[-1]]
        # The first iteration has no finished episode yet: an empty cell.
        rows.append(
            (
                int(share * config.steps),
                at,
                "" if at == 1 else 100.0 * share,
                1e-3,
                at * 80,
                *values,
            )
        )
    head = "step,iteration,ep_reward_mean,learning_rate,n_updates," + ",".join(LOSSES)
    write_rows(path / "metrics.csv", head, rows)
    if status is not None:
        done = status in ("done", "stopped_early")
        result = {
            "status": status,
            "error": error,
            "algo": config.algo,
            "env": config.env,
            "seed": seed,
            "steps": config.steps,
            "best_step": config.steps if done else None,
            "best_mean": level + 12.0 if done else None,
            "final_mean": float(rewards.mean()) if done else None,
            "share_above_200": float((rewards >= 200).mean()) if done else None,
            "wall_s": 61.0,
            "cpu_s": 44.5,
            "state_hash": f"{seed:064x}",
            "config": said,
            "manifest": {
                "command": "agent-gym train --config lander-ppo --seeds 5",
                "commit": "0123456789abcdef",
                "config_hash": "aa" * 16,
                "versions": {"python": "3.11", "torch": "2.13.0"},
            },
        }
        (path / "result.json").write_text(json.dumps(result))
    return path


def write_rows(path: Path, head: str, rows: list[tuple[Any, ...]]) -> None:
    """Write a CSV file."""
    lines = [head, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def write_arm(folder: Path, seeds: int = 5, level: float = 255.0, **words: Any) -> Path:
    """Write several seeds whose levels differ a little."""
    for seed in range(1, seeds + 1):
        write_run(folder, seed, level=level + 3.0 * ((seed * 7) % 5 - 2), **words)
    return folder
