"""The work of ``agent-gym train``: seeds are trained, judged and written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from agent_gym.agents.sb3.artifact import ZIP
from agent_gym.apps.cli.model_words import best_run
from agent_gym.apps.cli.output import EXIT_RUN, emit
from agent_gym.apps.cli.train_options import TrainRuns, steps_note
from agent_gym.apps.cli.train_view import Watched, say, shown_progress, trained_view
from agent_gym.core.errors import AgentGymError, DataError
from agent_gym.core.files import atomic_path, home, write_json
from agent_gym.reporting.rl.writing import write_report
from agent_gym.training.rl.calibration import calibrate
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment import METRICS, SUMMARY, run_seeds
from agent_gym.training.rl.export import export_zip
from agent_gym.training.rl.folder_lock import at_work
from agent_gym.training.rl.jobs import begin_anew
from agent_gym.training.rl.result import RunFolder, TrainingResult
from agent_gym.training.rl.resuming import settings_differ
from agent_gym.training.rl.run_records import (
    FINISHED,
    FRESH,
    ArmRuns,
    RunRecord,
    completed,
    read_run,
    seed_folders,
    stored_config,
)
from agent_gym.training.rl.setup import make_plan, recipe_of
from agent_gym.training.rl.summary import Ask, metrics_rows, summarize

LANDER, LANDER_VIDEO = "LunarLander", "lander"


def train(config: TrainerConfig, folder: Path, runs: TrainRuns, *, as_json: bool) -> None:
    """Train what was asked for and print what it came to."""
    seeds = runs.seed_list()
    make_plan(config, seeds[0], folder)
    note = steps_note(config)
    if note is not None:
        say(note)
    if runs.fresh:
        with at_work(folder):
            begin_anew(folder / f"seed_{seed}" for seed in seeds)
    if runs.calibrate:
        config = with_threads(config, folder, seeds)
    results = train_seeds(config, folder, runs)
    payload = conclude(config, folder, runs, results)
    emit(payload, as_json=as_json, view=trained_view(payload))
    if payload["status"] != "complete" or payload["failed"] or payload["report_error"]:
        raise typer.Exit(EXIT_RUN)


def with_threads(config: TrainerConfig, folder: Path, seeds: Sequence[int]) -> TrainerConfig:
    """Return the config with the fastest number of threads; a run that has begun keeps its own."""
    for seed in seeds:
        kept = stored_config(folder / f"seed_{seed}")
        if kept is not None:
            return config.model_copy(
                update={"threads": completed(kept).get("threads", config.threads)}
            )
    found = calibrate(config, say=say).recommended
    say(f"threads: {found.threads} ({found.steps_per_s:,.0f} steps/s)")
    return config.model_copy(update={"threads": found.threads})


def train_seeds(config: TrainerConfig, folder: Path, runs: TrainRuns) -> list[TrainingResult]:
    """Train what is not trained yet; whoever stops it is told how it goes on."""
    seeds = runs.seed_list()
    workers = runs.workers_for(len(seeds))
    say(start_line(config, seeds, workers, folder))
    try:
        with shown_progress(Watched(folder, seeds, config.steps)):
            return run_seeds(config, seeds, folder, workers, say)
    except (KeyboardInterrupt, SystemExit):  # the second by a request to end (SIGTERM)
        say(f"Stopped. {kept_text(folder, seeds)}")
        raise


def start_line(config: TrainerConfig, seeds: Sequence[int], workers: int, folder: Path) -> str:
    """Return what is about to be trained, in one line."""
    names = ", ".join(map(str, seeds))
    which = f"seed {names}" if len(seeds) == 1 else f"seeds {names} ({workers} at a time)"
    what = f"{config.algo} on {recipe_of(config).env}, {config.steps:,} steps"
    return f"{what}, {which}, into {folder}"


def kept_text(folder: Path, seeds: Sequence[int]) -> str:
    """Return what is kept of runs that were stopped, and how they go on."""
    parts = []
    for seed in seeds:
        run = folder / f"seed_{seed}"
        kept = sorted(path.name for path in RunFolder(run).checkpoints.glob("step_*"))
        if kept:
            parts.append(f"seed {seed} at step {int(kept[-1].removeprefix('step_')):,}")
    if not parts:
        return "There was no checkpoint yet: the same command begins anew."
    return f"Kept in {folder}: {', '.join(parts)}. The same command goes on from there, to the bit."


def conclude(
    config: TrainerConfig, folder: Path, runs: TrainRuns, results: Sequence[TrainingResult]
) -> dict[str, Any]:
    """Write figures, the best model in the library's format and the report; return what to say."""
    records, others = counted_runs(config, folder, runs.seed_list())
    results = sorted([*results, *others], key=lambda result: result.seed)
    summary = summarize([ArmRuns(folder.name, {}, records)], Ask())
    (row,) = metrics_rows(summary)
    chosen = best_run([record.folder for record in records if record.status in FINISHED])
    payload: dict[str, Any] = row | {
        "title": f"{config.algo} on {recipe_of(config).env}, {config.steps:,} steps",
        "status": summary["status"],
        "n": row["seeds"],
        "seeds": [
            result.model_dump(mode="json", exclude={"config", "manifest"}) for result in results
        ],
        "notes": summary["notes"],
        "config": config.model_dump(mode="json"),
        "folder": str(folder),
        "model": None if chosen is None else str(RunFolder(chosen).best),
    }
    write_json(folder / SUMMARY, summary)
    write_json(folder / METRICS, {"arms": [row], "seeds": payload["seeds"]})
    files = {"Runs": str(folder), "Figures": str(folder / METRICS)}
    problem = None
    if chosen is not None:
        files |= {"Best model": str(RunFolder(chosen).best)}
        try:
            files |= written_files(config, folder, runs, RunFolder(chosen).best)
        except AgentGymError as error:  # hours of training are told all the same
            problem = error.as_dict()
            payload["notes"] = [*payload["notes"], f"there is no model.zip or no report: {error}"]
    return payload | {"files": files, "report_error": problem}


def counted_runs(
    config: TrainerConfig, folder: Path, seeds: Sequence[int]
) -> tuple[tuple[RunRecord, ...], list[TrainingResult]]:
    """Return the runs that figures are made of, and the results of those not asked for now.

    Seeds that were finished by an earlier command with these very settings count, as they do in
    the report of the folder.
    """
    asked = {seed: read_run(folder / f"seed_{seed}", seed) for seed in seeds}
    others = {}
    for seed, path in seed_folders(folder):
        try:
            if seed not in asked and not settings_differ(stored_config(path), config):
                others[seed] = read_run(path, seed)
        except DataError as error:
            say(f"seed {seed} is not counted: {error}")
    others = {seed: record for seed, record in others.items() if record.finished}
    records = tuple(record for _, record in sorted((asked | others).items()))
    return records, [each.result for each in others.values() if each.result is not None]


def written_files(
    config: TrainerConfig, folder: Path, runs: TrainRuns, best: Path
) -> dict[str, str]:
    """Write the best model in the library's format and, if asked, report and videos."""
    try:
        if (best / ZIP).exists():  # a model of JAX is kept without
            export_zip(best, folder / ZIP)
        return written_report(config, folder, runs) if runs.report else {}
    except DataError as error:
        error.remedy = f"{error.remedy}. {FRESH}" if error.remedy else FRESH
        raise


def written_report(config: TrainerConfig, folder: Path, runs: TrainRuns) -> dict[str, str]:
    """Write report and videos; an environment that cannot be drawn has a report without."""
    report = write_report(folder, videos=runs.video, say=say)
    files = {"Report": str(report.page), "Curve": str(report.curve)}
    videos = {Path(path).stem: Path(path) for path in report.videos}
    if "median" in videos:
        name = LANDER_VIDEO if config.env.startswith(LANDER) else folder.name
        target = home() / "videos" / f"{name}.mp4"
        with atomic_path(target) as path:
            path.write_bytes(videos["median"].read_bytes())
        files["Video"] = str(target)
    return files
