"""Small trained models for tests of export and of the commands that take a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_gym.agents.sb3.artifact import save_model
from agent_gym.core.files import write_json
from agent_gym.envs.training_env import describe_env
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.loop import Loop
from agent_gym.training.rl.result import RunFolder, TrainingResult
from agent_gym.training.rl.setup import make_setup, recipe_of

MARKET: dict[str, Any] = {
    "market": {"use": "known/m1", "params": {"n_bars": 600}},
    "episode_bars": 64,
}


def config_of(algo: str, env: str, **more: Any) -> TrainerConfig:
    said: dict[str, Any] = {"algo": algo, "env": env, "n_envs": 2, "steps": 256, "agent": {}}
    agent: dict[str, Any] = {"net_arch": [16]}
    if algo in ("ppo", "a2c"):
        agent |= {"n_steps": 32}
    else:
        agent |= {"buffer_size": 1_000, "learning_starts": 40, "batch_size": 16}
    if algo == "ppo":
        agent |= {"batch_size": 16, "n_epochs": 2, "fused_adam": True}
    return TrainerConfig.model_validate(said | more | {"agent": agent | more.get("agent", {})})


def trained(folder: Path, config: TrainerConfig, seed: int = 3, stop: int | None = None) -> Path:
    """Train without a trainer, put the model where one would, and return its folder."""
    setup = make_setup(config, seed)
    loop = Loop(setup.model, config.steps)
    while not loop.done and (stop is None or loop.step < stop):
        loop.iterate()
    run = RunFolder(folder)
    env = describe_env(recipe_of(config))
    manifest = {"config": config.model_dump(mode="json"), "seeds": [seed]}
    save_model(
        setup.model, run.best, config=config.agent, env=env, step=loop.step, manifest=manifest
    )
    write_json(run.config, config.model_dump(mode="json"))
    result = TrainingResult(
        status="done",
        algo=config.algo,
        env=config.env,
        seed=seed,
        steps=loop.step,
        best_step=loop.step,
        best_mean=None,
        final_mean=None,
        state_hash=None,
        config=config.model_dump(mode="json"),
        manifest={},
    )
    write_json(run.result, json.loads(result.model_dump_json()))
    setup.env.close()
    return run.best
