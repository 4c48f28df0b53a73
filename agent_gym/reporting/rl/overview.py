"""Trainings at a glance: which there are, how far each seed is, its curve, checkpoints, videos."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_gym.core.errors import ConfigError
from agent_gym.reporting.rl.runs import TRIALS, Arm, Run, read_arms
from agent_gym.training.rl.checkpoints import CheckpointStore
from agent_gym.training.rl.run_records import steps_taken

EXPERIMENTS, VIDEOS = "experiments", "videos"
VIDEO = ".mp4"
MOST_VIDEOS = 200


@dataclass(frozen=True, slots=True)
class SeedProgress:
    """How far one seed is.

    Attributes:
        arm: Name of its arm.
        seed: Its seed.
        status: In words.
        steps: Taken so far.
        total: Asked for.
        score: Mean of its final episodes; None until it has ended.
        curve: Step and mean return of each look.
        checkpoints: Steps at which it could go on.
    """

    arm: str
    seed: int | None
    status: str
    steps: int
    total: int
    score: float | None
    curve: tuple[tuple[int, float], ...]
    checkpoints: tuple[int, ...]


def experiment_names(root: Path) -> tuple[str, ...]:
    """Return the trainings in a folder of results, the one that was touched last first."""
    folder = root / EXPERIMENTS
    if not folder.is_dir():
        return ()
    found = {
        config.relative_to(folder).parts[0]
        for config in folder.glob("*/**/config.json")
        if TRIALS not in config.relative_to(folder).parts
    }
    return tuple(sorted(found, key=lambda name: (-(folder / name).stat().st_mtime_ns, name)))


def experiment_progress(root: Path, name: str) -> tuple[SeedProgress, ...]:
    """Return every seed of a training; a name that is none of them is refused."""
    known = experiment_names(root)
    if name not in known:
        raise ConfigError(
            "there is no such training",
            found=name[:200],
            expected=", ".join(known[:5]) or None,
            remedy="`agent-gym train --config lander-ppo` begins one",
        )
    arms = read_arms(root / EXPERIMENTS / name)
    return tuple(_progress(arm, run) for arm in arms for run in arm.runs)


def videos_in(root: Path) -> dict[str, Path]:
    """Return the videos of a folder of results by a name that is no path of the caller's.

    Links are not followed: what lies elsewhere is not shown.
    """
    found = [*root.glob(f"{VIDEOS}/*{VIDEO}"), *root.glob(f"{EXPERIMENTS}/**/*{VIDEO}")]
    real = [
        path for path in sorted(found) if path.resolve() == root.resolve() / path.relative_to(root)
    ]
    return {path.relative_to(root).as_posix(): path for path in real[:MOST_VIDEOS]}


def _progress(arm: Arm, run: Run) -> SeedProgress:
    steps, means = run.curve
    total = int(arm.steps)
    return SeedProgress(
        arm=arm.name,
        seed=run.seed,
        status=run.status,
        steps=steps_taken(run.path, total),
        total=total,
        score=run.score if run.finished else None,
        curve=tuple(zip(steps.tolist(), means.tolist(), strict=True)),
        checkpoints=tuple(CheckpointStore(run.files.checkpoints).steps()),
    )
