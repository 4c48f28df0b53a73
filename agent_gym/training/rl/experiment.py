"""An experiment as it runs: every arm with every seed, each in a process of its own.

What is done is never done again, what was stopped goes on from its last checkpoint, and what failed
is a row that says why; so the same command finishes what is missing, whatever ended it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import home, write_json
from agent_gym.core.manifest import describe
from agent_gym.training.rl.arms import arms_of
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment_config import ExperimentConfig
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.jobs import Say, TrainingJob, begin_anew, run_jobs
from agent_gym.training.rl.result import TrainingResult
from agent_gym.training.rl.resuming import training_versions
from agent_gym.training.rl.run_records import ArmRuns, read_arm, read_run, steps_taken
from agent_gym.training.rl.summary import Ask, metrics_rows, summarize

DESCRIPTION, SUMMARY, METRICS = "experiment.json", "summary.json", "metrics.json"


def run_seeds(
    config: TrainerConfig,
    seeds: Sequence[int],
    folder: Path,
    workers: int = 1,
    say: Say | None = None,
) -> list[TrainingResult]:
    """Train one config with several seeds, each in a process of its own, in ``folder/seed_<n>``.

    A run that is done is not run again; one that failed comes back with its status and error.

    Raises:
        KeyboardInterrupt: It was stopped; the same call goes on.
    """
    label = folder.name
    jobs = [
        TrainingJob(label=label, config=config, seed=seed, folder=folder / f"seed_{seed}")
        for seed in seeds
    ]
    with at_work(folder):
        ran = run_jobs(jobs, workers, say)
    if not ran.complete:
        raise KeyboardInterrupt
    return ran.results


class Experiment:
    """One experiment in its folder.

    Args:
        config: What was asked for; its base is a mapping or the name of a shipped file.
        folder: Where it lies; by default ``experiments/<name>`` in the folder of results.
        job: What is done for each run.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: Path | None = None,
        job: type[TrainingJob] = TrainingJob,
    ) -> None:
        self.config = config
        self.folder = folder or experiments() / config.name
        self.arms = arms_of(config)
        self.jobs = [
            job(
                label=arm.name,
                config=arm.config,
                seed=seed,
                folder=self.folder / arm.name / f"seed_{seed}",
            )
            for seed in config.seed_list()
            for arm in self.arms
        ]

    def run(self, workers: int | None = None, say: Say | None = None) -> dict[str, Any]:
        """Run what is missing and return the summary, which is also written.

        Seeds come first: after the first round every arm has one, and a run that is stopped has
        said something about all of them.

        Raises:
            KeyboardInterrupt: It was stopped; the summary of what is there is written.
        """
        with at_work(self.folder):
            for job in self.jobs:
                job.known()  # other settings under this name are refused before anything is written
            write_json(self.folder / DESCRIPTION, self._description())
            ran = run_jobs(
                self.jobs, workers or self.config.workers, say, timeout_s=self.config.timeout_s
            )
            summary = self.summary()
            write_json(self.folder / SUMMARY, summary)
            write_json(self.folder / METRICS, {"arms": metrics_rows(summary)})
        if not ran.complete:
            raise KeyboardInterrupt
        return summary

    def begin_anew(self) -> None:
        """Remove the runs that are asked for; what else lies in the folder stays."""
        with at_work(self.folder):
            begin_anew(job.folder for job in self.jobs)

    def summary(self) -> dict[str, Any]:
        """Return the figures of what is there."""
        runs = {job.folder: read_run(job.folder, job.seed) for job in self.jobs}
        arms = [
            ArmRuns(
                arm.name,
                arm.overrides,
                tuple(runs[job.folder] for job in self.jobs if job.label == arm.name),
            )
            for arm in self.arms
        ]
        ask = Ask(self.config.threshold, self.config.level, self.config.resamples)
        made = describe(
            argv=["agent-gym", "experiment", "run", str(self.folder / DESCRIPTION)],
            config=self.config.model_dump(mode="json"),
            data={},
            seeds=self.config.seed_list(),
        )
        manifest = made.model_dump(mode="json") | {"versions": training_versions()}
        told = {"name": self.config.name, "about": self.config.about}
        return told | summarize(arms, ask) | {"manifest": manifest}

    def steps(self) -> tuple[int, int]:
        """Return how many steps are done and how many there are, over all runs."""
        done = sum(steps_taken(job.folder, job.config.steps) for job in self.jobs)
        return done, sum(job.config.steps for job in self.jobs)

    def _description(self) -> dict[str, Any]:
        """Return what was asked, so that the folder explains itself and can be run again."""
        return self.config.model_dump(mode="json")


def experiments() -> Path:
    """Return the folder of all experiments."""
    return home() / "experiments"


def read_arms(word: str) -> list[ArmRuns]:
    """Return the arms that a word names: ``NAME``, ``NAME/ARM``, or a folder of either.

    A folder without ``experiment.json``, as ``agent-gym train`` leaves it, is one arm.
    """
    folder = Path(word) if Path(word).is_dir() else experiments() / word
    if not folder.is_dir():
        known = sorted(path.name for path in experiments().glob("*") if path.is_dir())
        raise ConfigError(
            "there is no such experiment",
            where=str(experiments()),
            found=word,
            remedy=f"Known: {', '.join(known) or 'none'}",
        )
    if not (folder / DESCRIPTION).exists():
        return [read_arm(folder)]
    config = read_description(folder)
    seeds = config.seed_list()
    return [
        ArmRuns(
            arm.name,
            arm.overrides,
            tuple(read_run(folder / arm.name / f"seed_{seed}", seed) for seed in seeds),
        )
        for arm in arms_of(config)
    ]


def read_description(folder: Path) -> ExperimentConfig:
    """Return what the experiment of a folder was asked for."""
    path = folder / DESCRIPTION
    try:
        return ExperimentConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DataError(
            "the description of an experiment cannot be read",
            where=str(path),
            found=str(error).splitlines()[0],
            remedy="Run the experiment again: it writes the file anew and keeps what is done",
        ) from error
