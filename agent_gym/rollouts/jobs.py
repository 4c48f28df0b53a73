"""Jobs: descriptions of work that fit into JSON, so that another process can do it."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, Self, cast

from pydantic import Field, model_validator
from typing_extensions import override

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Kind, Ref, configure, entry, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Role, Team, World
from agent_gym.rollouts.play import EpisodeResult, Failure, Status, run_episode
from agent_gym.rollouts.sinks import ParquetSink

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class Job(Config, ABC):
    """Work that is described by plain values and gives one row of plain values.

    Subclass it at the top level of a module; the executor sends the fields, never code.
    """

    @abstractmethod
    def run(self) -> dict[str, Any]:
        """Do the work and return its row, which has a ``status``."""

    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return the row of a job that could not give one itself."""
        return {"status": status, "error": failure}

    def reads(self) -> tuple[Path, ...]:
        """Return the files and folders that it reads; a node that lacks them is sent them."""
        return ()

    def writes(self) -> tuple[Path, ...]:
        """Return the folders that it leaves something in; a cluster must share them."""
        return ()

    def again(self) -> Self:
        """Return the job for another attempt, after a node was lost in the middle of it."""
        return self


class EpisodeJob(Job):
    """One episode: a world, an agent for each role, a seed.

    World and agents are made by the registry in the process that plays. The team is a set of
    independent agents, unless ``team`` names another one.
    """

    world: Ref
    agents: dict[str, Ref] = Field(default_factory=dict)
    team: Ref | None = Field(default=None, description="a team that plays all roles")
    episode: str
    seed: int = Field(ge=0)
    record: Path | None = Field(
        default=None, description="folder of step stores; this one is named after the episode"
    )
    observations: bool = Field(default=False, description="record the features too")
    overwrite: bool = Field(default=False, description="replace a step store that is there")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.agents) == (self.team is not None):
            raise ValueError("name either the agents or the team")
        if self.record is not None and not FILE_NAME.fullmatch(self.episode):
            raise ValueError(f"episode {self.episode!r} cannot name a folder")
        return self

    @override
    def run(self) -> dict[str, Any]:
        """Play the episode; steps go to a store if one was asked for."""
        world = cast(World, make("world", self.world))
        team = cast(Team, make("team", self.team or self._independent()))
        seeds = Seeds(self.seed)
        if self.record is None:
            return run_episode(world, team, self.episode, seeds).as_dict()
        folder = self.record / self.episode
        with ParquetSink(folder, observations=self.observations, overwrite=self.overwrite) as sink:
            return run_episode(world, team, self.episode, seeds, (sink,)).as_dict()

    @override
    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return the row of an episode that was never finished."""
        totals = {Role(role): 0.0 for role in self.agents}
        return EpisodeResult(self.episode, 0, totals, status, failure).as_dict()

    @override
    def reads(self) -> tuple[Path, ...]:
        """Return the files that the configs of world, agents and team name."""
        team = () if self.team is None else files_named("team", self.team)
        agents = (path for ref in self.agents.values() for path in files_named("agent", ref))
        return (*files_named("world", self.world), *agents, *team)

    @override
    def writes(self) -> tuple[Path, ...]:
        """Return the folder of step stores."""
        return () if self.record is None else (self.record,)

    @override
    def again(self) -> Self:
        """Return the same episode; what the lost attempt recorded of it is replaced."""
        return self.model_copy(update={"overwrite": True})

    def _independent(self) -> Ref:
        agents = {role: ref.model_dump() for role, ref in self.agents.items()}
        return Ref(use="independent", params={"agents": agents})


def files_named(kind: Kind, ref: Ref) -> tuple[Path, ...]:
    """Return the paths in the config of a thing that exist here; a wrong config names none."""
    try:
        config = configure(entry(kind, ref.use).config, ref.params, where=f"{kind} {ref.use}")
    except ConfigError:
        return ()  # the job itself will say what is wrong
    values = (getattr(config, name) for name in type(config).model_fields)
    return tuple(value for value in values if isinstance(value, Path) and value.exists())


def pack(job: Job) -> dict[str, Any]:
    """Return a job as plain values, with the place of its class."""
    kind = type(job)
    if kind.__module__ == "__main__" or "." in kind.__qualname__:
        raise ConfigError(
            "another process cannot find this kind of job",
            found=f"{kind.__module__}.{kind.__qualname__}",
            expected="a class at the top level of a module that can be imported",
            remedy="Move the class to a module of its own",
        )
    try:
        json.dumps(job.model_dump(), allow_nan=False, default=str)  # the next would make NaN null
        fields = job.model_dump(mode="json")
    except (TypeError, ValueError) as error:
        raise ConfigError(
            "a job has a value that JSON cannot say",
            where=kind.__name__,
            found=str(error),
            expected="finite numbers, text, lists and dicts",
            remedy="Change the fields of the job",
        ) from error
    return {"module": kind.__module__, "kind": kind.__name__, "fields": fields}


def unpack(packed: dict[str, Any]) -> Job:
    """Return the job that pack() described."""
    kind = getattr(import_module(packed["module"]), packed["kind"])
    job: Job = kind.model_validate(packed["fields"])
    return job
