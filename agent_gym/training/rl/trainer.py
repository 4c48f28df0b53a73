"""One training run, from a config and a seed to a folder of files; stopped, it goes on exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gym.agents.sb3.artifact import load_policy
from agent_gym.training.rl.callbacks import Callback
from agent_gym.training.rl.checkpoints import CheckpointStore
from agent_gym.training.rl.config import (
    TrainerConfig,
    as_trainer_config,
    read_trainer_config,
)
from agent_gym.training.rl.episodes import play_episodes
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.outcome import Outcome, Recorded, final_figures
from agent_gym.training.rl.overrides import default_folder
from agent_gym.training.rl.result import Episode, RunFolder, TrainingResult
from agent_gym.training.rl.resuming import check_best, check_extra, check_folder, finished_result
from agent_gym.training.rl.seeding import SeedManager
from agent_gym.training.rl.session import Session
from agent_gym.training.rl.setup import make_plan, make_setup
from agent_gym.training.rl.tables import Table
from agent_gym.training.threads import torch_threads


def create_trainer_from_config(
    config: Path | Mapping[str, Any] | TrainerConfig, *, seed: int = 0, folder: Path | None = None
) -> Trainer:
    """Return the trainer that a config describes.

    Args:
        config: A file, its content, or the config itself.
        seed: Decides all that is drawn.
        folder: Where the run is kept; by default below the folder of results.
    """
    if isinstance(config, Path):
        config = read_trainer_config(config)
    elif not isinstance(config, TrainerConfig):
        config = as_trainer_config(config, where="config")
    return Trainer(config, seed, folder or default_folder(config, seed))


class Trainer:
    """Trains one seed of one config; what does not fit is refused before anything is written.

    Args:
        config: What to train, where, and for how long.
        seed: Decides all that is drawn.
        folder: Where everything of the run is kept.
        callbacks: Who else is told after each iteration, and may say stop.
    """

    def __init__(
        self,
        config: TrainerConfig,
        seed: int,
        folder: Path,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.plan = make_plan(config, seed, folder)
        self.folder = RunFolder(folder)
        self._callbacks = tuple(callbacks)

    @property
    def config(self) -> TrainerConfig:
        """Return what is trained."""
        return self.plan.config

    def train(
        self, resume: bool = True, say: Callable[[str], None] | None = None
    ) -> TrainingResult:
        """Train to the last step, or from the last good checkpoint on, and judge the best model.

        A run that is done already is not run again; one at a time may work in a folder. Whatever
        ends it before is written down in ``result.json`` and raised.

        Args:
            resume: Go on if something of this very run is there; else begin anew.
            say: Who is told how it goes.
        """
        with at_work(self.folder.path):
            return self._train(resume, say)

    def _train(self, resume: bool, say: Callable[[str], None] | None) -> TrainingResult:
        config, seed, folder = self.plan.config, self.plan.seed, self.folder
        begun = resume and check_folder(folder, config)
        done = finished_result(folder, config, seed) if begun else None
        if done is not None:
            return done
        store = CheckpointStore(folder.checkpoints, config.checkpoints.keep, say)
        store.clean()
        found = store.latest() if begun else None
        if found is not None:
            check_extra(found.extra, str(store.path(found.step)), seed)
        with torch_threads(config.threads), Recorded(Outcome(folder, config, seed)) as outcome:
            session = Session(self.plan, make_setup(config, seed), outcome, say)
            session.begin(store, found, self._callbacks)
            session.run()
            return self._judge(session, outcome)

    def _judge(self, session: Session, outcome: Outcome) -> TrainingResult:
        """Play fresh episodes with the best model and write the result."""
        plan, folder = self.plan, self.folder
        seeds = SeedManager(plan.seed).final_seeds(plan.config.evaluation.final_episodes)
        check_best(folder)
        policy, step = load_policy(folder.best), outcome.best_step or 0
        episodes = play_episodes(policy, plan.evaluation_recipe, seeds, step=step)
        Table(folder.final_episodes, Episode._fields).replace(episodes)
        figures = final_figures(episodes, plan.config, plan.seed)
        return outcome.write("stopped_early" if session.stopped else "done", figures)
