"""A run while it goes on: the loop, what happens after each iteration, and its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from agent_gym.agents.sb3.artifact import policy_of, save_model
from agent_gym.envs.training_env import describe_env
from agent_gym.training.rl.callbacks import (
    Callback,
    CheckpointCallback,
    EarlyStoppingCallback,
    EvaluationCallback,
    Progress,
    ProgressCallback,
    Remembering,
)
from agent_gym.training.rl.checkpoints import Checkpoint, CheckpointStore
from agent_gym.training.rl.episodes import play_episodes
from agent_gym.training.rl.guards import SPOILT, FiniteCallback, diverged
from agent_gym.training.rl.loop import Loop
from agent_gym.training.rl.metrics import EpisodesCallback, MetricsCallback, PPOMetricsCallback
from agent_gym.training.rl.outcome import Outcome
from agent_gym.training.rl.records import Records
from agent_gym.training.rl.result import Episode, RunFolder
from agent_gym.training.rl.resuming import check_best, exact_reason, training_versions
from agent_gym.training.rl.seeding import SeedManager
from agent_gym.training.rl.setup import Plan, Setup
from agent_gym.training.rl.snapshot import capture, restore, state_hash
from agent_gym.training.rl.torch_state import parameters_are_finite
from agent_gym.training.rl.tracking import Tracker, make_trackers

Say = Callable[[str], None]


class Session:
    """Drives the loop and tells the callbacks; they write all that is written.

    Args:
        plan: What is trained.
        setup: The model and the environments, as they were made.
        outcome: Where what becomes known is noted.
        say: Who is told how it goes.
    """

    def __init__(self, plan: Plan, setup: Setup, outcome: Outcome, say: Say | None) -> None:
        self._plan, self._model, self._env = plan, setup.model, setup.env
        self._outcome, self._say = outcome, say
        self._folder = RunFolder(plan.folder)
        self._described = describe_env(plan.recipe)
        self._records = Records(self._folder, plan.config)
        self._loop = Loop(setup.model, plan.config.steps)
        self._callbacks: list[Callback] = []
        self._trackers: list[Tracker] = []
        self._iteration = 0
        self.stopped = False
        looks = plan.config.evaluation
        self._seeds = SeedManager(plan.seed).evaluation_seeds(looks.episodes)
        self._evaluation = EvaluationCallback(
            looks.every, self._play, self._keep, self._records.evaluations
        )

    def begin(
        self, store: CheckpointStore, found: Checkpoint | None, more: Sequence[Callback]
    ) -> None:
        """Begin at the first step, or where a checkpoint was made."""
        start = 0 if found is None else found.step
        if found is None:
            self._records.begin()
        self._trackers = make_trackers(self._plan, self._folder, start)
        self._callbacks = self._all_callbacks(store, start, more)
        reason = exact_reason(self._plan.config)
        if reason is not None and self._say is not None:
            self._say(f"no checkpoints are made: {reason}")
        if found is not None:
            self._go_on(found)

    def _go_on(self, found: Checkpoint) -> None:
        restore(self._model, self._env, found.snapshot)
        extra = found.extra
        self._records.cut(extra["tables"])
        self._iteration, self.stopped = extra["iteration"], extra["stopped"]
        self._outcome.spent.add(wall_s=extra["wall_s"], cpu_s=extra["cpu_s"])
        for name, callback in self._remembering().items():
            callback.set_state(extra["callbacks"][name])
        if self._evaluation.looks:
            check_best(self._folder)
        if self._say:
            self._say(f"going on from step {found.step:,}")

    def run(self) -> None:
        """Go on to the last step, or until somebody says stop; then save the last model."""
        try:
            while not (self._loop.done or self.stopped):
                self._iterate()
            self._finish()
        finally:
            for tracker in self._trackers:
                tracker.close()
            self._env.close()

    def _iterate(self) -> None:
        before = self._loop.step
        self._iteration += 1
        try:
            losses = self._loop.iterate()
        except (ValueError, RuntimeError) as error:  # so torch refuses to draw from NaN
            if parameters_are_finite(self._model):
                raise
            raise diverged(self._loop.step, self._iteration, SPOILT) from error
        progress = self._progress(before, losses)
        self._outcome.steps = progress.step
        for callback in self._callbacks:
            if callback.on_iteration(progress) == "stop":
                self.stopped = progress.stopping = True

    def _finish(self) -> None:
        progress = self._progress(self._loop.step, {})
        if not self._evaluation.looks:
            self._evaluation.look(progress)
        outcome = self._outcome
        outcome.steps = self._loop.step
        outcome.best_step = self._evaluation.best_step
        outcome.best_mean = self._evaluation.best_mean
        self._save(progress, self._folder.last)
        if exact_reason(self._plan.config) is None:
            outcome.state_hash = state_hash(capture(self._model, self._env))

    def _progress(self, before: int, losses: dict[str, float]) -> Progress:
        return Progress(
            step=self._loop.step,
            before=before,
            total=self._plan.config.steps,
            iteration=self._iteration,
            losses=losses,
            episodes=self._loop.recorder.take(),
            model=self._model,
            evaluations=self._evaluation.looks,
        )

    def _all_callbacks(
        self, store: CheckpointStore, start: int, more: Sequence[Callback]
    ) -> list[Callback]:
        """Return who is told, in order: what guards first, what saves last."""
        config, records = self._plan.config, self._records
        kind = PPOMetricsCallback if config.algo == "ppo" else MetricsCallback
        found: list[Callback] = [
            FiniteCallback(),
            EpisodesCallback(records.episodes),
            kind(records.metrics, config.steps),
            self._evaluation,
        ]
        if config.early_stopping is not None:
            found.append(EarlyStoppingCallback(config.early_stopping))
        found += [*self._trackers, *more]
        if self._say is not None:
            name = f"{config.algo} {self._plan.recipe.env} seed {self._plan.seed}"
            found.append(ProgressCallback(self._say, name, start))
        if exact_reason(config) is None:
            found.append(
                CheckpointCallback(config.checkpoints.every, lambda p: self._checkpoint(store, p))
            )
        return found

    def _remembering(self) -> dict[str, Remembering]:
        return {
            f"{i} {type(callback).__name__}": callback
            for i, callback in enumerate(self._callbacks)
            if isinstance(callback, Remembering)
        }

    def _play(self, model: BaseAlgorithm, step: int) -> list[Episode]:
        policy = policy_of(model, config=self._plan.config.agent)
        return play_episodes(policy, self._plan.evaluation_recipe, self._seeds, step=step)

    def _keep(self, progress: Progress) -> None:
        self._save(progress, self._folder.best)

    def _save(self, progress: Progress, folder: Path) -> None:
        save_model(
            self._model,
            folder,
            config=self._plan.config.agent,
            env=self._described,
            step=progress.step,
            manifest=self._outcome.manifest(),
        )

    def _checkpoint(self, store: CheckpointStore, progress: Progress) -> None:
        extra: dict[str, Any] = {
            "seed": self._plan.seed,
            "config": self._plan.config.model_dump(mode="json"),
            "versions": training_versions(),
            "iteration": progress.iteration,
            "stopped": progress.stopping,
            "tables": self._records.seen(),
            "callbacks": {name: each.state() for name, each in self._remembering().items()},
            "wall_s": self._outcome.spent.wall_s,
            "cpu_s": self._outcome.spent.cpu_s,
        }
        store.save(progress.step, capture(self._model, self._env), extra)
