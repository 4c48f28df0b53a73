"""Reports as files: who only wants text or bytes takes them from the modules that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from agent_gym.agents.sb3.artifact import load_policy
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import atomic_path, write_json, write_text
from agent_gym.core.registry import configure
from agent_gym.envs.training_env import EnvRecipe, evaluation_recipe
from agent_gym.reporting.canvas import png_of, svg_of
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.page import best_arm, html_page, marks_for
from agent_gym.reporting.rl.plots import learning_curves
from agent_gym.reporting.rl.results import lander_arms, results_page, results_table
from agent_gym.reporting.rl.runs import Arm, Run, read_arms
from agent_gym.reporting.rl.sections import Shown
from agent_gym.reporting.rl.videos import draws_pictures, pick_episodes, record_episode
from agent_gym.reporting.text import number
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.setup import recipe_of

PAGE, CURVE, VIDEOS = "report.html", "curve.png", "videos"
TABLE = "lunar_lander"
MOST_CURVES = 8
CSV_DIGITS = 4


class ReportFiles(NamedTuple):
    """What was written."""

    page: Path
    curve: Path
    videos: tuple[Path, ...]


def write_report(
    folder: Path,
    out: Path | None = None,
    *,
    videos: bool = True,
    say: Callable[[str], None] | None = None,
) -> ReportFiles:
    """Write the page of one run or of many, the picture of its curve, and its videos.

    Args:
        folder: A run, or any folder above runs.
        out: Where the files go; by default into the folder.
        videos: Whether episodes are filmed; what draws no pictures is passed over in words.
        say: Told what happens.
    """
    target, tell = out or folder, say or (lambda _: None)
    arms = read_arms(folder)
    shown = list(_film(best_arm(arms), target, tell)) if videos else []
    page, curve = target / PAGE, target / CURVE
    write_bytes(curve, png_of(learning_curves(arms[:MOST_CURVES], marks=marks_for(arms))))
    write_text(page, html_page(arms, shown))
    return ReportFiles(page, curve, tuple(target / each.link for each in shown))


def write_lander_results(
    folders: Sequence[Path], out: Path, command: str
) -> list[dict[str, object]]:
    """Write the table of results as JSON and as a page with its picture, and return its rows."""
    rows = results_table(folders)
    arms = [arm for arm in lander_arms(folders) if arm.finished]
    if not rows:
        raise DataError(
            "no seed has finished yet",
            where=", ".join(map(str, folders)),
            remedy="Let a run come to its end; a stopped one goes on when it is started again",
        )
    picture = f"{TABLE}.svg"
    write_bytes(out / picture, svg_of(learning_curves(arms[:MOST_CURVES], marks=marks_for(arms))))
    write_json(out / f"{TABLE}.json", rows)
    write_text(out / f"{TABLE}_episodes.csv", episodes_csv(arms))
    write_text(out / f"{TABLE}.md", results_page(rows, command, picture))
    return rows


def episodes_csv(arms: Sequence[Arm]) -> str:
    """Return every final episode of every seed, so that each figure can be drawn again."""
    tables = [
        run.final_episodes.select(
            pl.lit(arm.name).alias("run"),
            pl.lit(run.seed).alias("training_seed"),
            pl.col("seed").alias("episode_seed"),
            pl.col("reward").round(CSV_DIGITS),
            "length",
        )
        for arm in arms
        for run in arm.finished
    ]
    return pl.concat(tables).write_csv()


def film_episodes(arm: Arm) -> Iterator[tuple[str, Clip]]:
    """Film the best, the median and the worst of the final episodes of all seeds of an arm.

    Each is played again by the model that was kept; another return than that on record is an error:
    the video would show something that did not happen.
    """
    rows = [(run, place) for run in arm.finished for place in range(run.rewards.size)]
    picked = pick_episodes([float(run.rewards[place]) for run, place in rows])
    for name, at in picked.items():
        run, place = rows[at]
        yield name, _film_one(run, place, name)


def write_bytes(target: Path, data: bytes) -> None:
    """Write bytes atomically."""
    with atomic_path(target) as path:
        path.write_bytes(data)


def _film(arm: Arm, target: Path, tell: Callable[[str], None]) -> Iterator[Shown]:
    if not arm.finished:
        return
    recipe = run_recipe(arm.finished[0])
    if not draws_pictures(recipe):
        tell(f"no videos: {recipe.env} draws no pictures")
        return
    for name, clip in film_episodes(arm):
        link = f"{VIDEOS}/{name}.mp4"
        write_bytes(target / link, clip.mp4)
        tell(f"filmed the {name} episode: return {number(clip.reward)}, {target / link}")
        yield Shown(clip, link)


def _film_one(run: Run, place: int, name: str) -> Clip:
    row = run.final_episodes.row(place, named=True)
    title = f"{name.capitalize()} (seed {run.seed})"
    clip = record_episode(load_policy(run.files.best), run_recipe(run), row["seed"], title=title)
    same = clip.length == row["length"] and np.isclose(clip.reward, row["reward"], 1e-9, 1e-6)
    if not same:
        raise DataError(
            "this episode came out differently when it was played again",
            where=f"{run.files.final_episodes}, seed {row['seed']}",
            found=f"return {clip.reward:.6f} in {clip.length} steps",
            expected=f"return {row['reward']:.6f} in {row['length']} steps",
            remedy="Use the library versions that the run was made with; they are in its manifest",
        )
    return clip


def run_recipe(run: Run) -> EnvRecipe:
    """Return the environment in which the final episodes of a run were played."""
    try:
        config = configure(TrainerConfig, run.config, where=str(run.files.config))
    except ConfigError as error:
        raise DataError(error.what, where=error.where, found=error.found) from error
    return evaluation_recipe(recipe_of(config), config.evaluation.env_params)
