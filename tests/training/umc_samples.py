"""A training of UMC that takes a second, in this process or in one that is killed."""

from __future__ import annotations

import os
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.markets.bars import Bars
from agent_gym.training.umc import TrainEvent, UMCTrainConfig, UMCTrained, UMCTrainer
from tests.samples import random_bars

BARS = 620
WALK = WalkForward(train=360, test=120, purge=2, embargo=8)
RECURRENT: dict[str, Any] = {
    "embedding": 4,
    "memory": 4,
    "latent": 2,
    "heads": 2,
    "head_width": 4,
    "width": 4,
    "components": 1,
    "horizon_bars": 1,
    "sequence_bars": 16,
    "batch_sequences": 4,
    "steps": 24,
    "warm_steps": 8,
    "look_every": 4,
    "patience_looks": 99,
}
ACTOR: dict[str, Any] = {
    "width": 4,
    "layers": 1,
    "members": 1,
    "steps": 24,
    "warm_steps": 8,
    "sequences": 2,
    "sequence_bars": 16,
    "look_every": 4,
    "patience_looks": 99,
}


def bars_of(seed: int = 5) -> Bars:
    return random_bars(BARS, seed, kind="spot")


def params(*, recurrent: dict[str, Any] | None = None, actor: bool = True) -> dict[str, Any]:
    tiers = [
        {"use": "umc/exact"},
        {"use": "umc/recurrent", "params": RECURRENT | (recurrent or {})},
    ]
    found: dict[str, Any] = {"model": {"tiers": tiers}}
    return found | ({"actor": ACTOR} if actor else {})


def config_of(**changes: Any) -> UMCTrainConfig:
    fields = {"params": params(), "walk": WALK, "backtest": BacktestConfig(), "seed": 3}
    return UMCTrainConfig(**(fields | changes))


def trained(folder: Path, config: UMCTrainConfig | None = None, **choices: Any) -> UMCTrained:
    return UMCTrainer(
        choices.pop("bars", None) or bars_of(), config or config_of(), folder, **choices
    ).train()


def contents(folder: Path) -> dict[str, bytes]:
    """Return what a training came to: its agents and its record, byte by byte."""
    files = [*folder.glob("fold_*/*"), *folder.glob("agent/*"), folder / "training.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def train_and_die(folder: str, ending: str, times: int) -> None:
    """Train, and be killed after so many steps of fits whose names end so, or at a fold's begin."""
    told = 0

    def tell(event: TrainEvent) -> None:
        nonlocal told
        word = f"fold {event.fold}" if event.fit is None else event.fit.fit
        told += word.endswith(ending)
        if told == times:
            os.kill(os.getpid(), signal.SIGKILL)

    trained(Path(folder), tell=tell, every_steps=5)


def killed(folder: Path, ending: str, times: int) -> int | None:
    """Return the exit code of a training in a process of its own that is killed."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        [
            "tests.training.umc_samples",
            "agent_gym.agents.umc.tiers.recurrent.tier",
            "agent_gym.agents.umc.policy.learner",
        ]
    )
    process = context.Process(target=train_and_die, args=(str(folder), ending, times))
    process.start()
    process.join()
    return process.exitcode
