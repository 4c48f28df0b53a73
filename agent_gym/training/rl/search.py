"""A search for better settings: Optuna proposes, several seeds judge, the poor are cut short.

The score of a trial is the interquartile mean of its seeds' final means, never that of one lucky
seed, and the seeds are apart from those that the winner is judged by afterwards. A trial is cut
short at a look at which its best mean so far is below the median of the finished trials at that
look (the rule of Optuna's MedianPruner), or between two seeds by the score so far.

All that Optuna knows is in a journal of JSON lines, and every run of every trial is a folder of its
own. A trial that was under way when the search was killed is failed and asked for again with the
same settings: its finished seeds are found done and the others go on from their checkpoints. Draws
depend on the number of the trial and on what is known by then, so a search that was stopped goes
the way that it would have gone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import optuna
import yaml
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import MedianPruner
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from agent_gym.core.errors import ConfigError
from agent_gym.core.files import write_json, write_text
from agent_gym.core.registry import unknown
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import iqm
from agent_gym.training.rl.arms import check_environment, overridden, trainer_config
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment import experiments
from agent_gym.training.rl.experiment_config import ExperimentConfig, Range, Search, base_of
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.jobs import Bars, Say, TrainingJob, run_jobs
from agent_gym.training.rl.result import TrainingResult
from agent_gym.training.rl.resuming import differences
from agent_gym.training.rl.run_records import FRESH, completed, read_run, steps_taken

SCHEMA = "agent_gym.search/1"
STUDY, TRIALS, BEST = "study.jsonl", "trials.json", "best.yaml"
OPEN = "env_params"  # below it any key may be given
FOUND_OUT = (TrialState.COMPLETE, TrialState.PRUNED)


def _as_now(asked: dict[str, Any]) -> dict[str, Any]:
    """Return a question with the defaults of settings that did not exist when it was stored."""
    searched = Search.model_validate(asked["search"])
    return {
        "base": completed(asked["base"]),
        "search": searched.model_dump(mode="json", exclude={"trials"}),
    }


class SettingsSearch:
    """One search in its folder.

    Args:
        config: An experiment with a ``search``.
        folder: Where it lies; by default ``experiments/<name>/search`` in the folder of results.
        job: What is done for each run.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        folder: Path | None = None,
        job: type[TrainingJob] = TrainingJob,
    ) -> None:
        if config.search is None:
            raise ConfigError(
                "this experiment has nothing to search",
                where=config.name,
                expected="search with a space",
                remedy="See configs/experiment_schema.yaml",
            )
        self.config, self.search = config, config.search
        self.folder = folder or experiments() / config.name / "search"
        self._job = job
        self.base = overridden(base_of(config), config.overrides)
        found = trainer_config(self.base, {}, where=f"base of {config.name}")
        check_environment(found, where=f"base of {config.name}")
        self.steps_a_run = found.steps
        for key in self.search.space:
            _check_key(found, key)

    def run(
        self, trials: int | None = None, workers: int | None = None, say: Say | None = None
    ) -> dict[str, Any]:
        """Go on until there are so many trials in all, and return what was found.

        Raises:
            KeyboardInterrupt: It was stopped; the trial under way goes on next time.
        """
        wanted, tell = trials or self.search.trials, say or (lambda _text: None)
        with at_work(self.folder):
            study = _open_study(self.folder / STUDY, self.config.name)
            study.pruner = MedianPruner(n_startup_trials=self.search.startup_trials)
            self._check_same(study)
            self._ask_again(study, tell)
            while (number := len(_ended(study))) < wanted:
                self._try(study, number, workers or self.config.workers, tell)
                self._write(study)
                tell(f"trial {number + 1} of {wanted}: {_line(_ended(study)[-1])}")
            return self._write(study)

    def begin_anew(self) -> None:
        """Remove the trials and what was found by them."""
        with at_work(self.folder):
            for path in self.folder.glob("trial_*"):
                shutil.rmtree(path)
            for name in (STUDY, TRIALS, BEST):
                (self.folder / name).unlink(missing_ok=True)

    def steps(self, trials: int | None = None) -> tuple[int, int]:
        """Return how many steps are done and how many there are; one cut short counts as whole."""
        each, count = self.steps_a_run, len(self.search.seed_list())
        numbers = [int(path.name.rpartition("_")[2]) for path in self.folder.glob("trial_*")]
        last = max(numbers, default=0)
        begun = self._place(last).glob("seed_*")
        done = last * each * count + sum(steps_taken(path, each) for path in begun)
        total = (trials or self.search.trials) * each * count
        return min(done, total), total

    def _check_same(self, study: optuna.Study) -> None:
        """Refuse to go on with a search of another question."""
        asked = {
            "base": self.base,
            "search": self.search.model_dump(mode="json", exclude={"trials"}),
        }
        kept = study.user_attrs.get("asked")
        other = [] if kept is None else differences(_as_now(kept), _as_now(asked))
        if other:
            raise ConfigError(
                "a search of another question lies here",
                where=str(self.folder),
                found="; ".join(other[:4]),
                remedy=FRESH,
            )
        study.set_user_attr("asked", asked)

    def _ask_again(self, study: optuna.Study, tell: Say) -> None:
        """Fail what was under way when the search was killed, and queue it with its settings.

        Queued before it is failed: a kill in between must lose nothing, and the mark on the new one
        keeps it from being queued twice.
        """
        known = study.get_trials(deepcopy=False)
        queued = {trial.user_attrs.get("again") for trial in known}
        for trial in known:
            if trial.state == TrialState.RUNNING:
                if trial.number not in queued:
                    study.enqueue_trial(trial.params, user_attrs={"again": trial.number})
                study.tell(trial.number, state=TrialState.FAIL)
                tell("a trial that was under way goes on")

    def _try(self, study: optuna.Study, number: int, workers: int, say: Say) -> None:
        """Make one trial, whatever comes of it; ``number`` counts those that ended before."""
        study.sampler = self._sampler(number)
        trial = study.ask(distributions(self.search))
        folder = self._place(number)
        try:
            overrides = chosen(trial.params)
            config = trainer_config(self.base, overrides, where=f"trial {number}")
            check_environment(config, where=f"trial {number}")
        except ConfigError as error:  # values that do not go together are a finding, not an end
            _fail(study, trial, error.as_dict())
            return
        self._judge(study, trial, config, (folder, workers), say)

    def _judge(
        self,
        study: optuna.Study,
        trial: Trial,
        config: TrainerConfig,
        place: tuple[Path, int],
        say: Say,
    ) -> None:
        """Train the seeds, as many at a time as there are workers, and judge after each in order.

        What is decided does not depend on how many ran at a time: a seed that comes after the one
        at which the trial is cut short does not count, even if it has been trained.
        """
        seeds, (folder, workers), scores = self.search.seed_list(), place, []
        bars = self._bars(study)
        looks: list[list[float]] = []
        for at in range(0, len(seeds), workers):
            jobs = [
                self._job(
                    label=folder.name,
                    config=config,
                    seed=seed,
                    folder=folder / f"seed_{seed}",
                    bars=bars,
                )
                for seed in seeds[at : at + workers]
            ]
            ran = run_jobs(jobs, workers, say, self.config.timeout_s)
            if not ran.complete:
                raise KeyboardInterrupt
            for job, result in zip(jobs, ran.results, strict=True):
                if result.final_mean is None:
                    _fail(study, trial, result.error or {"what": result.status})
                    return
                means = [mean for _, mean in read_run(job.folder, job.seed).looks]
                scores.append(result.final_mean)
                looks.append(means)
                trial.set_user_attr("scores", scores)
                trial.report(iqm(scores), step=len(scores))
                if self._poor(trial, result, Bars(bars).cut_at(means), len(scores)):
                    study.tell(trial, state=TrialState.PRUNED)
                    return
        trial.set_user_attr("looks", [sum(each) / len(each) for each in zip(*looks, strict=False)])
        study.tell(trial, iqm(scores))

    def _poor(self, trial: Trial, result: TrainingResult, cut: int | None, done: int) -> bool:
        """Return whether a trial ends here: at a look of this seed, or by the score so far."""
        if not self.search.prune:
            return False
        if cut is not None and result.status == "stopped_early":
            trial.set_user_attr("cut", {"seed": result.seed, "look": cut + 1})
            return True
        if done < len(self.search.seed_list()) and trial.should_prune():
            trial.set_user_attr("cut", {"seed": result.seed, "look": None})
            return True
        return False

    def _bars(self, study: optuna.Study) -> tuple[float | None, ...]:
        """Return the median of the finished trials at each look, None where nothing is cut yet."""
        found = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not self.search.prune or len(found) < self.search.startup_trials:
            return ()
        known: list[list[float]] = [trial.user_attrs["looks"] for trial in found]
        return tuple(
            median(looks[k] for looks in known if len(looks) > k)
            if k >= self.search.warmup_evaluations
            else None
            for k in range(max(map(len, known)))
        )

    def _sampler(self, number: int) -> BaseSampler:
        """Return a sampler of its own for each trial: one that began anew would repeat itself."""
        seed = Seeds(self.search.seed).child("search", number).as_int()
        return TPESampler(seed=seed, n_startup_trials=self.search.startup_trials)

    def _place(self, number: int) -> Path:
        return self.folder / f"trial_{number:04d}"

    def _write(self, study: optuna.Study) -> dict[str, Any]:
        """Write what is known, and the best settings as a training file."""
        rows = [
            trial_row(trial) | {"number": number, "folder": str(self._place(number))}
            for number, trial in enumerate(_ended(study))
        ]
        scored = [row for row in rows if row["state"] == "complete"]
        best = max(scored, key=lambda row: row["score"], default=None)
        document = {
            "schema": SCHEMA,
            "name": self.config.name,
            "objective": "interquartile mean of the seeds' final means",
            "seeds": list(self.search.seed_list()),
            "trials": rows,
            "best": best,
            "best_file": None if best is None else str(self.folder / BEST),
        }
        if best is not None:
            write_text(self.folder / BEST, _training_file(self.config.name, self.base, best))
        write_json(self.folder / TRIALS, document)
        return document


def distributions(search: Search) -> dict[str, BaseDistribution]:
    """Return a space as Optuna takes it; a choice may be anything, so it is told as JSON."""
    made: dict[str, BaseDistribution] = {}
    for key, each in search.space.items():
        if not isinstance(each, Range):
            made[key] = CategoricalDistribution([json.dumps(value) for value in each])
        elif each.integer:
            made[key] = IntDistribution(int(each.low), int(each.high), log=each.log)
        else:
            made[key] = FloatDistribution(each.low, each.high, log=each.log)
    return made


def chosen(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a trial by dotted key."""
    return {
        key: json.loads(value) if isinstance(value, str) else value for key, value in params.items()
    }


def trial_row(trial: FrozenTrial) -> dict[str, Any]:
    """Return a trial as plain values."""
    return {
        "state": {"complete": "complete", "pruned": "cut short"}.get(
            trial.state.name.lower(), "failed"
        ),
        "score": trial.value if trial.state == TrialState.COMPLETE else None,
        "settings": chosen(trial.params),
        "scores": trial.user_attrs.get("scores", []),
        "cut": trial.user_attrs.get("cut"),
        "error": trial.user_attrs.get("error"),
    }


def _open_study(path: Path, name: str) -> optuna.Study:
    """Return the study of a journal, which nobody else has open: the folder is locked.

    So a lock of the journal's own was left by a process that was killed, and a last line without an
    end is what that process was about to write.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    if path.exists():
        written = path.read_bytes()
        whole = written.rfind(b"\n") + 1
        if whole < len(written):
            os.truncate(path, whole)
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name=name,
        direction="maximize",
        load_if_exists=True,
    )


def _ended(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that came to an end of their own, in their order."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in FOUND_OUT
        or (trial.state == TrialState.FAIL and "error" in trial.user_attrs)
    ]


def _fail(study: optuna.Study, trial: Trial, error: Mapping[str, Any]) -> None:
    trial.set_user_attr("error", dict(error))
    study.tell(trial, state=TrialState.FAIL)


def _check_key(config: TrainerConfig, key: str) -> None:
    """Refuse a key of the space that no training has, before anything is trained."""
    place: Any = config.model_dump(mode="json")
    for part in key.split("."):
        if place is None:
            return
        if not isinstance(place, dict) or part not in place:
            known = tuple(place) if isinstance(place, dict) else ()
            raise unknown(f"key of search.space ({key})", part, known)
        place = place[part]
        if part == OPEN:
            return


def _training_file(name: str, base: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    told = yaml.safe_dump(overridden(base, best["settings"]), sort_keys=False)
    return (
        f"# Found by the search {name}: trial {best['number']}, score {best['score']:.2f}.\n"
        "# That score was chosen as the best of many and flatters: train with fresh seeds.\n"
        f"{told}"
    )


def _line(trial: FrozenTrial) -> str:
    row = trial_row(trial)
    settings = ", ".join(f"{key}={value}" for key, value in row["settings"].items())
    if row["error"]:
        return f"failed: {row['error'].get('what')} ({settings})"
    score = iqm(row["scores"])
    return f"{score:.1f} ({row['state']}, {len(row['scores'])} seeds; {settings})"
