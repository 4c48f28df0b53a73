"""How a run ends: what is known of it at last, or why it failed, in ``result.json``."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.core.files import write_json
from agent_gym.core.manifest import describe
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics.intervals import seeds_interval
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.episodes import mean_reward
from agent_gym.training.rl.result import Episode, RunFolder, RunStatus, TrainingResult
from agent_gym.training.rl.resuming import training_versions
from agent_gym.training.rl.setup import recipe_of

SOLVED = 200.0
LANDER = "LunarLander"
LEAST = 2  # episodes, for an interval


class Figures(NamedTuple):
    """What fresh episodes say of the kept model; None is what was not measured."""

    final_mean: float | None = None
    final_low: float | None = None
    final_high: float | None = None
    share_above_200: float | None = None


@dataclass
class Spent:
    """Wall and CPU seconds of a run, those before a stop included."""

    clock: Clock = field(default_factory=SystemClock)
    wall_before_s: float = 0.0
    cpu_before_s: float = 0.0

    def __post_init__(self) -> None:
        self._wall_s, self._cpu_s = self.clock.monotonic_s(), time.process_time()

    def add(self, *, wall_s: float, cpu_s: float) -> None:
        """Count what was spent before a stop."""
        self.wall_before_s += wall_s
        self.cpu_before_s += cpu_s

    @property
    def wall_s(self) -> float:
        """Return wall seconds so far."""
        return self.wall_before_s + self.clock.monotonic_s() - self._wall_s

    @property
    def cpu_s(self) -> float:
        """Return CPU seconds so far, of this process alone."""
        return self.cpu_before_s + time.process_time() - self._cpu_s


@dataclass
class Outcome:
    """What is known of a run while it goes on, and the file that says so at its end."""

    folder: RunFolder
    config: TrainerConfig
    seed: int
    spent: Spent = field(default_factory=Spent)
    steps: int = 0
    best_step: int | None = None
    best_mean: float | None = None
    state_hash: str | None = None

    def write(
        self,
        status: RunStatus,
        figures: Figures | None = None,
        error: dict[str, Any] | None = None,
    ) -> TrainingResult:
        """Write ``result.json`` and return what it says."""
        result = TrainingResult(
            status=status,
            error=error,
            algo=self.config.algo,
            env=recipe_of(self.config).env,
            seed=self.seed,
            steps=self.steps,
            best_step=self.best_step,
            best_mean=self.best_mean,
            wall_s=self.spent.wall_s,
            cpu_s=self.spent.cpu_s,
            state_hash=self.state_hash,
            config=self.config.model_dump(mode="json"),
            manifest=self.manifest(),
            **(figures or Figures())._asdict(),
        )
        write_json(self.folder.result, result.model_dump(mode="json"))
        return result

    def manifest(self) -> dict[str, Any]:
        """Return what the run was made from and the command that makes it again."""
        command = ["agent-gym", "train", "--config", str(self.folder.config)]
        made = describe(
            argv=[*command, "--seed", str(self.seed)],
            config=self.config.model_dump(mode="json"),
            data={},
            seeds=(self.seed,),
        )
        return made.model_dump(mode="json") | {"versions": training_versions()}

    def record_failure(self, error: BaseException) -> AgentGymError | None:
        """Write down why a run failed; return what to raise in its place, if it can be told better.

        If even that cannot be written, the first error is still the one to be told.
        """
        told: AgentGymError | None = None
        if isinstance(error, OSError):
            told = StoreError(
                "cannot write the files of this run",
                where=str(error.filename or self.folder.path),
                found=error.strerror or str(error),
                remedy="Free some room, then give the same command: it goes on from the last "
                "checkpoint",
            )
        with contextlib.suppress(OSError, StoreError):
            if isinstance(error, KeyboardInterrupt):
                self.write("interrupted")
            else:
                self.write("error", error=_as_dict(told or error))
        return told


class Recorded:
    """Within it, whatever ends a run is written down in ``result.json`` before it passes on."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def __enter__(self) -> Outcome:
        return self._outcome

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            told = self._outcome.record_failure(error)
            if told is not None:
                raise told from error


def _as_dict(error: BaseException) -> dict[str, Any]:
    if isinstance(error, AgentGymError):
        return error.as_dict()
    return AgentGymError(f"{type(error).__name__}: {error}").as_dict()


def final_figures(episodes: list[Episode], config: TrainerConfig, seed: int) -> Figures:
    """Return the mean of fresh episodes, its interval, and for the lander the share that landed."""
    rewards = [episode.reward for episode in episodes]
    figures = Figures(final_mean=mean_reward(episodes))
    if len(rewards) >= LEAST:
        interval = seeds_interval(rewards, Seeds(seed).child("rl", "final interval"))
        figures = figures._replace(final_low=interval.low, final_high=interval.high)
    if config.env.startswith(LANDER):
        landed = sum(reward >= SOLVED for reward in rewards)
        figures = figures._replace(share_above_200=landed / len(rewards))
    return figures
