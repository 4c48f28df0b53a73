"""THE loop: a team plays a world for one episode, and every step goes to the sinks."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from agent_gym.core.errors import AgentGymError, VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    Decision,
    Observation,
    Outcome,
    Role,
    SeparateTeam,
    Sink,
    SoloWorld,
    Step,
    Team,
    World,
)

Status: TypeAlias = Literal["ok", "error", "interrupted", "crashed", "timeout", "cancelled"]
Failure: TypeAlias = dict[str, str | None]
Write: TypeAlias = Callable[[Step], None]


@dataclass(slots=True)
class EpisodeResult:
    """How one episode went; a failed episode is a row too, with what was played before it failed.

    ``steps`` counts moments of the world, not rows: with two roles one moment gives two rows.
    A status of crashed, timeout or cancelled comes from the executor alone.
    """

    episode: str
    steps: int = 0
    total_reward: dict[Role, float] = field(default_factory=dict)
    status: Status = "ok"
    error: Failure | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a total that is not a number is None."""
        totals = {
            str(role): total if math.isfinite(total) else None
            for role, total in self.total_reward.items()
        }
        return {
            "episode": self.episode,
            "steps": self.steps,
            "total_reward": totals,
            "status": self.status,
            "error": self.error,
        }


@runtime_checkable
class EpisodeSink(Protocol):
    """A sink that also keeps how each episode went."""

    def finish_episode(self, result: EpisodeResult) -> None: ...


def play(
    world: World, team: Team, episode: str, seeds: Seeds, sinks: Iterable[Sink] = ()
) -> EpisodeResult:
    """Play one episode; whatever the world or the team raises comes out.

    The world draws from ``seeds.child(episode, "world")`` and each agent from its own
    ``seeds.child(episode, "agent", role)``, so that neither can disturb the other's numbers.
    """
    result = EpisodeResult(episode)
    _play(result, world, team, seeds.child(episode), tuple(sinks))
    return result


def run_episode(
    world: World, team: Team, episode: str, seeds: Seeds, sinks: Iterable[Sink] = ()
) -> EpisodeResult:
    """Play one episode and always return a row: a failure or Ctrl-C becomes its status.

    Whoever plays several episodes stops when a result says ``interrupted``.
    """
    result, sinks = EpisodeResult(episode), tuple(sinks)
    result.status, result.error = attempt(
        lambda: _play(result, world, team, seeds.child(episode), sinks)
    )
    for sink in sinks:
        if isinstance(sink, EpisodeSink):
            sink.finish_episode(result)
    return result


def attempt(work: Callable[[], None]) -> tuple[Status, Failure | None]:
    """Do some work and say how it went: the border at which any failure becomes a record."""
    try:
        work()
    except KeyboardInterrupt:
        return "interrupted", None
    except Exception as error:  # noqa: BLE001 - the one place in this room, see above
        return "error", describe_error(error)
    return "ok", None


def describe_error(error: BaseException) -> Failure:
    """Return an error as plain text, without anything that differs between equal runs."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    if isinstance(error, AgentGymError):
        return error.as_dict() | {"raised_at": place}
    return {"error": type(error).__name__, "what": str(error), "raised_at": place}


def _play(
    result: EpisodeResult, world: World, team: Team, seeds: Seeds, sinks: tuple[Sink, ...]
) -> None:
    observations = world.reset(seeds.child("world"))
    team.reset({role: world.start(role, seeds.child("agent", role)) for role in world.roles})
    result.total_reward.update(dict.fromkeys(world.roles, 0.0))
    loop = _solo if len(world.roles) == 1 else _many
    loop(result, world, team, observations, tuple(sink.write for sink in sinks))
    _check_totals(result.total_reward)


def _many(
    result: EpisodeResult,
    world: World,
    team: Team,
    observations: Mapping[Role, Observation],
    writes: tuple[Write, ...],
) -> None:
    """Play until no role sees anything more; a step is written before the team learns of it."""
    episode, totals, names, t = result.episode, result.total_reward, team.names, 0
    try:
        while observations:
            decisions = team.act(observations)
            outcomes = world.step({role: made.action for role, made in decisions.items()})
            steps = {
                role: Step(episode, t, role, names[role], observations[role], made, outcomes[role])
                for role, made in decisions.items()
            }
            for role, outcome in outcomes.items():
                totals[role] += outcome.reward
            for step in steps.values():
                for write in writes:
                    write(step)
            t += 1
            team.observe(steps)
            observations = {
                role: outcome.observation
                for role, outcome in outcomes.items()
                if not (outcome.terminated or outcome.truncated)
            }
    finally:
        result.steps = t


def _solo(
    result: EpisodeResult,
    world: World,
    team: Team,
    observations: Mapping[Role, Observation],
    writes: tuple[Write, ...],
) -> None:
    """Do the same for one role, without walking through dicts: half the overhead."""
    (role,) = world.roles
    episode, name, total, t = result.episode, team.names[role], 0.0, 0
    agent = team.agents[role] if isinstance(team, SeparateTeam) else _Member(team, role)
    act, observe = agent.act, agent.observe
    advance = world.advance if isinstance(world, SoloWorld) else _Stage(world, role).advance
    before = observations.get(role)
    try:
        while before is not None:
            decision = act(before)
            outcome = advance(decision.action)
            step = Step(episode, t, role, name, before, decision, outcome)
            total += outcome.reward
            for write in writes:
                write(step)
            t += 1
            observe(step)
            before = None if outcome.terminated or outcome.truncated else outcome.observation
    finally:
        result.steps, result.total_reward[role] = t, total


@dataclass(frozen=True, slots=True)
class _Member:
    """The one role of a team that decides together."""

    team: Team
    role: Role

    def act(self, obs: Observation) -> Decision:
        return self.team.act({self.role: obs})[self.role]

    def observe(self, step: Step) -> None:
        self.team.observe({self.role: step})


@dataclass(frozen=True, slots=True)
class _Stage:
    """The one role of a world that knows only roles."""

    world: World
    role: Role

    def advance(self, action: Action) -> Outcome:
        return self.world.step({self.role: action})[self.role]


def _check_totals(totals: dict[Role, float]) -> None:
    for role, total in totals.items():
        if not math.isfinite(total):
            raise VenueError(
                "a reward was not a number", where=f"role {role}", found=total, expected="finite"
            )
