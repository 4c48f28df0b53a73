"""Does a run that is killed and gone on with end like one that was left alone? Tried, not believed.

Each run has a process of its own. Killed means SIGKILL at a moment that nobody chose: within an
iteration, while a checkpoint is written, in the middle of a row.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.files import write_json
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.training.rl.callbacks import Progress, Verdict
from agent_gym.training.rl.config import TrainerConfig, read_mapping
from agent_gym.training.rl.result import RunFolder, TrainingResult
from agent_gym.training.rl.resuming import exact_reason, finished_result
from agent_gym.training.rl.trainer import Trainer

CHECKPOINTS = 8  # of a run that is tried
LONGEST_WAIT_S = 0.05


class ReproducibilityReport(Config):
    """What was tried and whether every end was the same, by hash and by the bytes of the files."""

    algo: str
    env: str
    seed: int
    steps: int
    unbroken: str = Field(description="state hash of a run that was left alone")
    repeated: str | None = Field(description="of a second one; null if it was not asked for")
    resumed: str = Field(description="of the one that was killed")
    killed_at: tuple[int, ...] = Field(description="steps that had been taken at each kill")
    differing_files: tuple[str, ...] = Field(description="of the one that was killed")

    @property
    def exact(self) -> bool:
        """Return whether all ends were the same."""
        same = self.resumed == self.unbroken and self.repeated in (None, self.unbroken)
        return same and not self.differing_files


def verify_reproducibility(
    config: TrainerConfig,
    *,
    steps: int | None = None,
    kills: int = 3,
    seed: int = 0,
    processes: bool = True,
    say: Callable[[str], None] | None = None,
) -> ReproducibilityReport:
    """Run a config unbroken, again, and with kills, and compare how the runs end.

    Args:
        config: What to train; looks are made short and checkpoints frequent.
        steps: How long; by default as the config says.
        kills: How often the last run is killed and gone on with.
        seed: Of the runs, and of the moments of the kills.
        processes: Compare two unbroken runs in processes of their own as well.
        say: Who is told how it goes.
    """
    reason = exact_reason(config)
    if reason is not None:
        raise ConfigError("this run cannot go on exactly where it was", found=reason)
    tried = _short(config, steps or config.steps)
    tell = say or (lambda _: None)
    with tempfile.TemporaryDirectory(prefix="agent-gym-verify-") as name:
        place = Path(name)
        tell("a run that is left alone")
        unbroken = _run(tried, seed, place / "unbroken")
        repeated = None
        if processes:
            tell("the same again, in another process")
            repeated = _run_apart(tried, seed, place / "repeated").state_hash
        targets = Seeds(seed).child("kills").rng().integers(0, tried.steps, size=kills)
        killed_at = []
        for target in sorted(targets.tolist()):
            killed_at += _kill(tried, seed, place / "killed", int(target))
            tell(f"killed at step {killed_at[-1]}" if killed_at else "was done before the kill")
        resumed = _run(tried, seed, place / "killed")
        return ReproducibilityReport(
            algo=config.algo,
            env=config.env,
            seed=seed,
            steps=tried.steps,
            unbroken=str(unbroken.state_hash),
            repeated=repeated,
            resumed=str(resumed.state_hash),
            killed_at=tuple(killed_at),
            differing_files=_differing(place / "unbroken", place / "killed"),
        )


def _short(config: TrainerConfig, steps: int) -> TrainerConfig:
    every = max(1, steps // CHECKPOINTS)
    changes: dict[str, Any] = {
        "steps": steps,
        "evaluation": config.evaluation.model_dump()
        | {"every": max(1, steps // 3), "episodes": 2, "final_episodes": 2},
        "checkpoints": {"every": every, "keep": 2},
        "trackers": {"tensorboard": False},
    }
    return TrainerConfig.model_validate(config.model_dump() | changes)


def _run(config: TrainerConfig, seed: int, folder: Path) -> TrainingResult:
    """Run to the end in a process of its own."""
    process, steps = _start(config, seed, folder)
    list(steps)
    process.join()
    return _ended(config, seed, folder, process.exitcode)


def _run_apart(config: TrainerConfig, seed: int, folder: Path) -> TrainingResult:
    """Run to the end in a new Python, whose sets and dictionaries hash otherwise."""
    path = folder.with_suffix(".json")
    write_json(path, config.model_dump(mode="json"))
    command = [sys.executable, "-m", "agent_gym.training.rl.reproducibility", str(path)]
    environment = os.environ | {"OMP_NUM_THREADS": str(config.threads), "PYTHONHASHSEED": "77"}
    done = subprocess.run([*command, str(seed), str(folder)], env=environment, check=False)
    return _ended(config, seed, folder, done.returncode)


def _kill(config: TrainerConfig, seed: int, folder: Path, target: int) -> list[int]:
    """Kill a run soon after a step; return the step, or nothing if it was done before."""
    process, steps = _start(config, seed, folder)
    wait_s = float(Seeds(seed).child("kill", target).rng().random()) * LONGEST_WAIT_S
    for step in steps:
        if step >= target:
            SystemClock().sleep_s(wait_s)
            process.kill()
            process.join()
            return [step]
    process.join()
    return []


def _start(config: TrainerConfig, seed: int, folder: Path) -> tuple[BaseProcess, Iterator[int]]:
    """Start a run in a process that is forked from a clean one, which has imported everything."""
    context = get_context("forkserver")
    context.set_forkserver_preload([Trainer.__module__])
    receiver, sender = context.Pipe(duplex=False)
    document = config.model_dump(mode="json")
    process = context.Process(target=_child, args=(document, seed, str(folder), sender))
    process.start()
    sender.close()
    return process, _received(receiver)


def _received(receiver: Connection[Any, int]) -> Iterator[int]:
    with receiver:
        while True:
            try:
                yield receiver.recv()
            except EOFError:
                return


def _ended(config: TrainerConfig, seed: int, folder: Path, code: int | None) -> TrainingResult:
    result = finished_result(RunFolder(folder), config, seed)
    if result is None:
        raise AgentError(
            "a run that is compared has failed",
            where=str(folder),
            found=f"exit code {code}",
            remedy="Train this config once and see what it says",
        )
    return result


def _differing(one: Path, other: Path) -> tuple[str, ...]:
    paths = RunFolder(one)
    files = (paths.metrics, paths.episodes, paths.evaluations, paths.final_episodes)
    names = [path.name for path in files]
    return tuple(name for name in names if (one / name).read_bytes() != (other / name).read_bytes())


class _Teller:
    """Sends each step to the process that will kill this one."""

    def __init__(self, sender: Connection[int, Any]) -> None:
        self._sender = sender

    def on_iteration(self, progress: Progress) -> Verdict:
        self._sender.send(progress.step)
        return None


def _child(
    document: dict[str, Any], seed: int, folder: str, sender: Connection[int, Any] | None
) -> None:
    config = TrainerConfig.model_validate(document)
    callbacks = [] if sender is None else [_Teller(sender)]
    Trainer(config, seed, Path(folder), callbacks).train()


if __name__ == "__main__":
    _child(read_mapping(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3], None)
