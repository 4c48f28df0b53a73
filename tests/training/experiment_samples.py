"""A trainer that learns by a formula: what experiments do with runs can be seen without training.

The mean return climbs in a straight line to ``300 gamma + seed``; so the best gamma is known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentError
from agent_gym.core.files import write_json, write_text
from agent_gym.rollouts.batch import Batch
from agent_gym.training.rl.experiment_config import ExperimentConfig
from agent_gym.training.rl.jobs import Bars, TrainingJob
from agent_gym.training.rl.result import RunFolder, TrainingResult

BASE: dict[str, Any] = {
    "env": "CartPole-v1",
    "steps": 1000,
    "n_envs": 2,
    "agent": {"n_steps": 50, "batch_size": 100},
    "evaluation": {"every": 100, "episodes": 2, "final_episodes": 4},
}
FAILS, DIES = 0.5, 0.55  # values of gamma
PAUSE = "STAND_IN_PAUSE_S"


def experiment(**changes: Any) -> ExperimentConfig:
    fields: dict[str, Any] = {
        "name": "trial",
        "base": BASE,
        "grid": {"agent.gamma": [0.9, 0.8]},
        "seeds": 2,
        "threshold": 200.0,
        "resamples": 200,
    }
    return ExperimentConfig.model_validate(fields | changes)


class StandInJob(TrainingJob):
    """Notes each start, then fails, dies or writes the files of a finished run."""

    @override
    def train(self) -> TrainingResult:
        files = RunFolder(self.folder)
        write_json(files.config, self.config.model_dump(mode="json"))
        with (self.folder / "starts.txt").open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        SystemClock().sleep_s(float(os.environ.get(PAUSE, "0")))
        gamma = self.config.agent.gamma
        if gamma == FAILS:
            raise AgentError("it went wrong", where=f"seed {self.seed}", remedy="Do better")
        if gamma == DIES:
            os._exit(3)
        return self._write(files, 300.0 * gamma + self.seed)

    def _write(self, files: RunFolder, height: float) -> TrainingResult:
        count = self.config.steps // self.config.evaluation.every
        looks = [height * (k + 1) / count for k in range(count)]
        cut = Bars(self.bars).cut_at(looks[:-1])
        looks = looks if cut is None else looks[: cut + 1]
        steps = [self.config.evaluation.every * (k + 1) for k in range(len(looks))]
        rows = [
            f"{step},{e},{mean + (-1) ** e},9"
            for step, mean in zip(steps, looks, strict=True)
            for e in (0, 1)
        ]
        head = "step,seed,reward,length\n"
        write_text(files.evaluations, head + "\n".join(rows) + "\n")
        final = [looks[-1] + shift for shift in (-2.0, -1.0, 1.0, 2.0)]
        lines = [f"{steps[-1]},{e},{reward},9" for e, reward in enumerate(final)]
        write_text(files.final_episodes, head + "\n".join(lines) + "\n")
        write_text(files.metrics, f"step,iteration\n{steps[-1]},1\n")
        result = TrainingResult(
            status="done" if cut is None else "stopped_early",
            algo=self.config.algo,
            env=self.config.env,
            seed=self.seed,
            steps=steps[-1],
            best_step=steps[-1],
            best_mean=looks[-1],
            final_mean=looks[-1],
            cpu_s=1.5,
            wall_s=2.0,
            state_hash=None,
            config=self.config.model_dump(mode="json"),
            manifest={},
        )
        write_json(files.result, result.model_dump(mode="json"))
        return result


class InlineExecutor:
    """Runs jobs in this process, after they went through JSON as if they were sent."""

    def __init__(self, workers: int, *, timeout_s: float | None = None) -> None:
        self.workers, self.timeout_s = workers, timeout_s

    def run(self, jobs: Sequence[Any], progress: Callable[..., None]) -> Batch:
        rows: list[dict[str, Any]] = []
        for job in jobs:
            sent = type(job).model_validate_json(job.model_dump_json())
            try:
                row = sent.run()
            except AgentError as error:
                row = sent.lost("error", error.as_dict())
            rows.append(json.loads(json.dumps(row)))
            progress(len(rows), len(jobs), rows[-1])
        return Batch(rows, "complete")


def starts(folder: Path) -> dict[str, int]:
    """Return how often each run below a folder was started."""
    return {
        str(path.parent.relative_to(folder)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted(folder.rglob("starts.txt"))
    }
