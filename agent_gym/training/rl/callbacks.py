"""What happens between two iterations: small parts that are told of progress and may say stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from stable_baselines3.common.base_class import BaseAlgorithm

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.training.rl.config import EarlyStopping
from agent_gym.training.rl.episodes import mean_reward
from agent_gym.training.rl.loop import TrainingEpisode
from agent_gym.training.rl.result import Episode
from agent_gym.training.rl.tables import Table

Verdict: TypeAlias = Literal["go", "stop"] | None


@dataclass(slots=True)
class Progress:
    """Where a run stands after an iteration.

    ``evaluations`` are the looks so far, as (step, mean return); ``stopping`` says that a callback
    before this one said stop.
    """

    step: int
    before: int
    total: int
    iteration: int
    losses: dict[str, float]
    episodes: list[TrainingEpisode]
    model: BaseAlgorithm
    evaluations: list[tuple[int, float]]
    stopping: bool = False

    def crossed(self, every: int) -> bool:
        """Return whether this iteration went over a multiple of ``every`` steps."""
        return self.step // every > self.before // every

    @property
    def last(self) -> bool:
        """Return whether no iteration comes after this one."""
        return self.stopping or self.step >= self.total


class Callback(Protocol):
    """Anything that wants to know how training goes; it must not draw from global generators."""

    def on_iteration(self, progress: Progress) -> Verdict: ...


@runtime_checkable
class Remembering(Protocol):
    """A callback with a memory, which a checkpoint keeps; ``state`` is JSON."""

    def state(self) -> dict[str, Any]: ...
    def set_state(self, state: dict[str, Any]) -> None: ...


class EvaluationCallback:
    """Plays greedy episodes every so often and keeps the model that was best so far.

    Args:
        every: Steps between two looks; there is always one after the last step.
        play: Plays the episodes with the model as it is now.
        keep: Saves the model as the best.
        table: Where the episodes are written.
    """

    def __init__(
        self,
        every: int,
        play: Callable[[BaseAlgorithm, int], list[Episode]],
        keep: Callable[[Progress], None],
        table: Table,
    ) -> None:
        self._every, self._play, self._keep, self._table = every, play, keep, table
        self.looks: list[tuple[int, float]] = []
        self.best_step: int | None = None
        self.best_mean: float | None = None

    def on_iteration(self, progress: Progress) -> Verdict:
        """Look, if it is time."""
        if progress.crossed(self._every) or progress.last:
            self.look(progress)
        return None

    def look(self, progress: Progress) -> None:
        """Evaluate now; once a step is enough."""
        if self.looks and self.looks[-1][0] == progress.step:
            return
        episodes = self._play(progress.model, progress.step)
        mean = mean_reward(episodes)
        if self.best_mean is None or mean > self.best_mean:
            self._keep(progress)
            self.best_step, self.best_mean = progress.step, mean
        self._table.append(episodes)
        self.looks.append((progress.step, mean))

    def state(self) -> dict[str, Any]:
        """Return the looks so far, for a checkpoint."""
        return {"looks": self.looks, "best_step": self.best_step, "best_mean": self.best_mean}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.looks[:] = [(int(step), float(mean)) for step, mean in state["looks"]]
        self.best_step, self.best_mean = state["best_step"], state["best_mean"]


class EarlyStoppingCallback:
    """Says stop when a look is good enough, or when too many looks brought nothing better."""

    def __init__(self, config: EarlyStopping) -> None:
        self._config = config

    def on_iteration(self, progress: Progress) -> Verdict:
        """Judge the looks so far; they alone decide, so there is nothing to remember."""
        means = [mean for _, mean in progress.evaluations]
        if not means or progress.evaluations[-1][0] != progress.step:
            return "go"
        target, patience = self._config.target, self._config.patience
        if target is not None and means[-1] >= target:
            return "stop"
        return "stop" if patience is not None and self._stale(means) >= patience else "go"

    def _stale(self, means: list[float]) -> int:
        """Return how many looks have passed since one was better by ``min_delta``."""
        best, since = means[0], 0
        for mean in means[1:]:
            since += 1
            if mean > best + self._config.min_delta:
                best, since = mean, 0
        return since


class CheckpointCallback:
    """Saves all that the run needs to go on; comes last, so that it knows what the others said."""

    def __init__(self, every: int, save: Callable[[Progress], None]) -> None:
        self._every, self._save = every, save

    def on_iteration(self, progress: Progress) -> Verdict:
        """Save, if it is time or the end."""
        if progress.crossed(self._every) or progress.last:
            self._save(progress)
        return None


class ProgressCallback:
    """Tells how far a run is, how fast, and when it will be done; at most once a second."""

    def __init__(
        self, say: Callable[[str], None], name: str, start: int, clock: Clock | None = None
    ) -> None:
        self._say, self._name, self._start = say, name, start
        self._clock = clock or SystemClock()
        self._began_s = self._told_s = self._clock.monotonic_s()

    def on_iteration(self, progress: Progress) -> Verdict:
        """Say a line, if the last one is a second old or this is the end."""
        now_s = self._clock.monotonic_s()
        if now_s - self._told_s >= 1.0 or progress.last:
            self._told_s = now_s
            self._say(self._line(progress, now_s - self._began_s))
        return None

    def _line(self, progress: Progress, elapsed_s: float) -> str:
        speed = (progress.step - self._start) / elapsed_s if elapsed_s > 0 else 0.0
        left_s = (progress.total - progress.step) / speed if speed > 0 else 0.0
        parts = [
            f"{self._name}: {progress.step:,} of {progress.total:,} steps",
            f"{speed:,.0f} steps/s",
            f"{max(0, round(left_s))} s left",
        ]
        if progress.evaluations:
            step, mean = progress.evaluations[-1]
            best = max(mean for _, mean in progress.evaluations)
            parts.append(f"greedy {mean:.1f} at {step:,} (best {best:.1f})")
        return " | ".join(parts)
