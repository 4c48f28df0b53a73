"""What the commands for teams are told: which training, which tasks, how often, where to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from agent_gym.apps.cli.workspace import check_own_folder, check_writable
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config, unknown
from agent_gym.envs.battle import MAPS
from agent_gym.evaluation.marl.runs import DENSE, task_name
from agent_gym.training.marl import StoppingConfig, TeamTrainConfig
from agent_gym.training.marl.jobs import TeamJob
from agent_gym.training.marl.runs import changed, named_config

DEFAULT_ALGO = "mappo"
SEED_FOLDER = "seed_"
TASK = re.compile(r"(?P<map>[^:@]+)(:(?P<reward>[a-z]+))?(@(?P<steps>\d+))?")


class TeamChoice(Config):
    """Which team is trained, and on what."""

    algo: str | None = Field(
        default=None, description=f"a shipped config, such as mappo (default {DEFAULT_ALGO})"
    )
    config: Path | None = Field(default=None, description="a YAML or JSON file instead")
    map: str | None = Field(
        default=None, description=f"one of {', '.join(MAPS)} (default that of the config)"
    )
    reward: str | None = Field(
        default=None, description="dense, kills or sparse (default that of the config)"
    )
    steps: int | None = Field(
        default=None, ge=1, description="steps of all environments (default that of the config)"
    )
    stop_early: bool = Field(
        default=False, description="stop when two looks in a row win 95 %, or as the config says"
    )
    seed: int = Field(default=0, ge=0, description="first seed")

    def word(self) -> str:
        """Return the name of the shipped config, or the file."""
        if self.algo is not None and self.config is not None:
            raise ConfigError(
                "the training is named twice",
                where="options of agent-gym marl",
                found=f"--algo {self.algo} and --config {self.config}",
                remedy="Leave one of them out",
            )
        return str(self.config) if self.config is not None else self.algo or DEFAULT_ALGO


class SeedRuns(Config):
    """How often, and by how many processes."""

    seeds: int = Field(default=1, ge=1, le=10_000, description="how many seeds")
    jobs: int = Field(default=1, ge=1, le=256, description="processes; changes no number")
    out: Path | None = Field(
        default=None, description="folder of the seeds (default in results/experiments/marl)"
    )


class Task(NamedTuple):
    """A battle, what it pays, and how many steps it is trained for; None is left to the config."""

    map: str | None
    reward: str | None
    steps: int | None


class Team(NamedTuple):
    """An arm: its name, how the command line calls it, and its config."""

    name: str
    word: str
    config: TeamTrainConfig


def team_of(
    word: str, task: Task, *, stop_early: bool = False, changes: Mapping[str, Any] | None = None
) -> Team:
    """Return the training that words mean."""
    name, config = named_config(word)
    check_map(task.map)
    said: dict[str, Any] = {
        "world.map": task.map,
        "world.reward": task.reward,
        "env_steps": task.steps,
    }
    asked = {key: value for key, value in said.items() if value is not None}
    if stop_early and config.stopping is None:
        asked["stopping"] = StoppingConfig().model_dump(mode="json")
    both = sorted(set(asked) & set(changes or {}))
    if both:
        raise ConfigError("said twice", where=f"--set {both[0]}", found="an option says it as well")
    return Team(name, word, changed(config, asked | dict(changes or {}), where=word))


def check_map(name: str | None) -> None:
    """Raise ConfigError for a map that does not exist, naming the nearest that does."""
    if name is not None and name not in MAPS:
        raise unknown("map", name, tuple(MAPS))


def tasks_of(words: str, reward: str | None, steps: int | None) -> list[Task]:
    """Return tasks from words by comma; each may say its own reward and steps.

    Example:
        >>> tasks_of("3m,3m:kills@500000", None, 9)
        [Task(map='3m', reward=None, steps=9), Task(map='3m', reward='kills', steps=500000)]
    """
    found = []
    for word in names_of(words, "--maps"):
        parts = TASK.fullmatch(word)
        if parts is None:
            raise ConfigError(
                "this is no task",
                where="--maps",
                found=word,
                expected="MAP, MAP:REWARD, MAP@STEPS or MAP:REWARD@STEPS, such as 3m:kills@500000",
            )
        check_map(parts["map"])
        own = steps if parts["steps"] is None else int(parts["steps"])
        found.append(Task(parts["map"], parts["reward"] or reward, own))
    return found


def names_of(words: str, option: str) -> list[str]:
    """Return names that were given by comma, each once."""
    names = [word.strip() for word in words.split(",") if word.strip()]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            "names are given by comma, each once", where=option, found=repr(words), expected="a,b"
        )
    return names


def task_folder(config: TeamTrainConfig) -> str:
    """Return a folder's name that says what is fought, what it pays and for how long."""
    early = "-early" if config.stopping is not None else ""
    name = task_name(config.world.map, config.world.reward).replace(":", "-")
    return f"{name}-{config.env_steps}{early}"


def default_folder(team: Team, root: Path | None = None, ending: str = "") -> Path:
    """Return where the seeds of an arm go if nobody says otherwise."""
    top = home() / "experiments" / "marl" if root is None else root
    return top / f"{task_folder(team.config)}{ending}" / team.name


def jobs_of(
    team: Team, folder: Path, seeds: Sequence[int], words: Sequence[str] = ()
) -> list[TeamJob]:
    """Return one training a seed, each with the command that makes it again by itself.

    Args:
        team: What is trained.
        folder: Holds ``seed_<n>``.
        seeds: Which.
        words: Further options that the command needs.
    """
    check_writable(folder)
    check_own_folder(folder, f"{SEED_FOLDER}*")
    return [
        TeamJob(
            arm=team.name,
            config=team.config.model_copy(update={"seed": seed}),
            folder=folder / f"{SEED_FOLDER}{seed}",
            command=(*command_of(team), "--seed", str(seed), *words),
        )
        for seed in seeds
    ]


def command_of(team: Team) -> tuple[str, ...]:
    """Return the command that trains an arm; map and steps are always said."""
    config = team.config
    by = "--config" if Path(team.word).suffix else "--algo"
    words = ["agent-gym", "marl", "train", by, team.word, "--map", config.world.map]
    words += ["--steps", str(config.env_steps)]
    if config.world.reward != DENSE:
        words += ["--reward", config.world.reward]
    if config.stopping is not None and named_config(team.word)[1].stopping is None:
        words.append("--stop-early")
    return tuple(words)
