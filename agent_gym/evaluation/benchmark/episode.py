"""One episode of anybody on one snapshot: played, limited, and accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np

from agent_gym.core.clock import Clock
from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    Agent,
    Decision,
    EpisodeStart,
    Observation,
    Outcome,
    Role,
    Sink,
    Step,
    Team,
)
from agent_gym.envs.benchmark.calls import Reply
from agent_gym.envs.benchmark.interface import SimulationA2AInterface
from agent_gym.envs.benchmark.world import TRADER, BenchmarkWorld
from agent_gym.evaluation.benchmark.metrics import EpisodeAccount
from agent_gym.rollouts.play import EpisodeResult, attempt, run_episode


class Market(Protocol):
    """What a bot is given: calls and their replies, nothing else."""

    def call(self, method: str, params: object = None) -> Reply: ...


@runtime_checkable
class A2ABot(Protocol):
    """A player that makes calls; play() comes once a tick, and the clock moves when it returns."""

    @property
    def name(self) -> str: ...
    def play(self, market: Market) -> None: ...


class WatchedWorld:
    """A benchmark world that notes equity, and cuts the episode after a number of steps."""

    roles = (TRADER,)

    def __init__(self, world: BenchmarkWorld, max_steps: int | None = None) -> None:
        self.world = world
        self._max = max_steps
        self.equity: list[float] = []

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe the role before the episode."""
        return self.world.start(role, seeds)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Begin an episode."""
        seen = self.world.reset(seeds)
        self.equity = [self.world.equity]
        return seen

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Play a tick."""
        if set(actions) != {TRADER}:
            return self.world.step(actions)
        return {TRADER: self.advance(actions[TRADER])}

    def advance(self, action: Action) -> Outcome:
        """Play a tick."""
        return self._noted(self.world.advance(action))

    def end_tick(self) -> Outcome:
        """Play a tick of a bot, whose orders have been placed."""
        return self._noted(self.world.end_tick())

    def account(self) -> EpisodeAccount:
        """Return what the scorer needs."""
        return EpisodeAccount(self.world.floor, tuple(self.equity))

    def _noted(self, outcome: Outcome) -> Outcome:
        self.equity.append(self.world.equity)
        if self._max is None or len(self.equity) <= self._max or outcome.terminated:
            return outcome
        return Outcome(outcome.observation, outcome.reward, False, True, outcome.info)


def play_team(
    watched: WatchedWorld, team: Team, episode: str, seeds: Seeds, sinks: Iterable[Sink] = ()
) -> EpisodeResult:
    """Play an episode with a team; a failure is a status, not an exception."""
    return run_episode(watched, team, episode, seeds, sinks)


def play_bot(
    watched: WatchedWorld, bot: A2ABot, episode: str, seeds: Seeds, max_calls: int | None = None
) -> EpisodeResult:
    """Play an episode with a bot that makes calls; a failure is a status, not an exception."""
    result = EpisodeResult(episode, total_reward={TRADER: 0.0})

    def go() -> None:
        watched.reset(seeds.child(episode, "world"))
        market = SimulationA2AInterface(watched.world, max_calls=max_calls)
        while True:
            bot.play(market)
            outcome = watched.end_tick()
            result.steps += 1
            result.total_reward[TRADER] += outcome.reward
            if outcome.terminated or outcome.truncated:
                return

    result.status, result.error = attempt(go)
    return result


class TimedAgent:
    """An agent whose answers are timed; for reports alone, never for scores."""

    def __init__(self, agent: Agent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock
        self.seconds: list[float] = []

    @property
    def name(self) -> str:
        """Return the agent's name."""
        return self._agent.name

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self.seconds.clear()
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        """Ask the agent and note how long it took."""
        begun = self._clock.monotonic_s()
        decision = self._agent.act(obs)
        self.seconds.append(self._clock.monotonic_s() - begun)
        return decision

    def observe(self, step: Step) -> None:
        """Tell the agent its step."""
        self._agent.observe(step)

    def timing(self) -> dict[str, float]:
        """Return mean, 99th percentile, longest and sum of the times, in milliseconds."""
        if not self.seconds:
            raise VenueError("no answer has been timed", where=self.name)
        total = 1e3 * sum(self.seconds)
        return {
            "avgResponseTime": total / len(self.seconds),
            "p99ResponseTime": 1e3 * float(np.quantile(self.seconds, 0.99)),
            "maxResponseTime": 1e3 * max(self.seconds),
            "totalDuration": total,
        }
