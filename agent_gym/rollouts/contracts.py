"""Checks that every world and every agent must pass; ship yours with a test that calls them.

    check_world(lambda: MyWorld(config))
    check_agent(lambda: MyAgent(config), lambda: MyWorld(config))

They raise VenueError or AgentError with a plain reason. That nothing looks into the future is
checked where the data can be changed: by poisoning the bars that come later.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    Agent,
    Decision,
    EpisodeStart,
    Observation,
    Outcome,
    Role,
    Step,
    World,
)
from agent_gym.rollouts.play import play
from agent_gym.rollouts.sinks import MemorySink

EPISODE = "contract"


def trajectory_hash(steps: Iterable[Step]) -> str:
    """Return a hash of everything that happened: equal bits, equal hash, and only then."""
    digest = blake2b(digest_size=16)
    for step in steps:
        made, after = step.decision, step.after
        signals = sorted((made.signals or {}).items())
        for text in (step.episode, step.role, step.agent, made.rationale, *dict(signals)):
            word = "\0" if text is None else text
            digest.update(f"{len(word)}:{word}".encode())
        for seen in (step.before, after.observation):
            digest.update(struct.pack("<qq", seen.ts, np.size(seen.features)))
            digest.update(np.asarray(seen.features, dtype=np.float64).tobytes())
        action = np.atleast_1d(np.asarray(made.action, dtype=np.float64))
        numbers = (after.reward, *(float(value) for _, value in signals))
        digest.update(struct.pack("<qq", step.t, action.size) + action.tobytes())
        digest.update(
            struct.pack(f"<{len(numbers)}d??", *numbers, after.terminated, after.truncated)
        )
    return digest.hexdigest()


def check_world(
    world_factory: Callable[[], World], *, seed: int = 0, max_steps: int = 1000
) -> None:
    """Raise VenueError unless a world keeps its contract.

    It is played with random legal actions for at most ``max_steps`` steps: names and shapes are as
    announced, features and rewards are finite, time does not go back, an observation does not
    change once it is handed out, and the same seed gives the same episode, on a new world as well
    as after a second reset.
    """
    first = _watch_world(world_factory(), seed, max_steps)
    world = world_factory()
    second = _watch_world(world, seed, max_steps)
    third = _watch_world(world, seed, max_steps)
    if first != second:
        raise VenueError(
            "the same seed gave two different episodes",
            where=f"seed {seed}",
            remedy="Draw all randomness from the seeds given to reset()",
        )
    if second != third:
        raise VenueError(
            "after a second reset() the same seed gave a different episode",
            where=f"seed {seed}",
            remedy="Put everything back in reset()",
        )


def check_agent(
    agent_factory: Callable[[], Agent],
    world_factory: Callable[[], World],
    *,
    seed: int = 0,
    learns: bool = False,
) -> None:
    """Raise AgentError unless an agent keeps its contract.

    It plays every role of the world: it has a name, all it does is legal and finite, it leaves the
    observation as it is, and the same seed gives the same episode, for a new agent as well as
    after a second reset.

    Args:
        agent_factory: Makes a fresh agent.
        world_factory: Makes a world that has passed check_world.
        seed: Seed of the episode.
        learns: The agent keeps what it learns over a reset, so its second episode may differ.
    """
    first, _ = _watch_agents(agent_factory, world_factory(), seed)
    second, agents = _watch_agents(agent_factory, world_factory(), seed)
    if first != second:
        raise AgentError(
            "the same seed gave two different episodes",
            where=f"seed {seed}",
            remedy="Draw all randomness from the seeds given to reset()",
        )
    third = _play_watched(agents, world_factory(), seed)
    if not learns and second != third:
        raise AgentError(
            "after a second reset() the same seed gave a different episode",
            where=f"seed {seed}",
            remedy="Forget everything in reset(), or say that the agent learns",
        )


def check_action(action: Any, spec: ActionSpec, legal: NDArray[np.bool_] | None = None) -> None:
    """Raise AgentError unless an action is one that the spec and the legal mask allow."""
    if spec.n is not None:
        whole = isinstance(action, int | np.integer) and not isinstance(action, bool)
        if not whole or not 0 <= action < spec.n:
            raise AgentError("not an action", found=repr(action), expected=f"0 to {spec.n - 1}")
        if legal is not None and not legal[action]:
            raise AgentError(
                "an illegal action", found=action, expected=np.flatnonzero(legal).tolist()
            )
        return
    if isinstance(action, bool | str) or action is None:
        raise AgentError("not an action", found=repr(action), expected="a number")
    values = np.asarray(action, dtype=np.float64)
    if not np.all((values >= spec.low) & (values <= spec.high)):
        raise AgentError(
            "an action out of bounds", found=repr(action), expected=f"{spec.low} to {spec.high}"
        )


class _Watched:
    """An agent under watch; implements Agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._actions = ActionSpec()
        if not isinstance(agent.name, str) or not agent.name:
            raise AgentError("an agent needs a name", found=repr(agent.name))
        self.name = agent.name

    def reset(self, start: EpisodeStart) -> None:
        self._actions = start.actions
        self._agent.reset(start)

    def act(self, obs: Observation) -> Decision:
        before = obs.features.copy()
        decision = self._agent.act(obs)
        if not isinstance(decision, Decision):
            raise AgentError("act() must return a Decision", found=repr(decision))
        check_action(decision.action, self._actions, obs.legal)
        for name, value in (decision.signals or {}).items():
            if not isinstance(name, str) or math.isnan(float(value)):
                raise AgentError("a signal is not a named number", found=f"{name!r}: {value!r}")
        if before.tobytes() != obs.features.tobytes():
            raise AgentError("the agent changed the observation", where=self.name)
        return decision

    def observe(self, step: Step) -> None:
        self._agent.observe(step)


class _Watchers:
    """A watched agent in every role; implements Team."""

    def __init__(self, agents: Mapping[Role, _Watched]) -> None:
        self._agents = agents

    @property
    def names(self) -> Mapping[Role, str]:
        return {role: agent.name for role, agent in self._agents.items()}

    def reset(self, starts: Mapping[Role, EpisodeStart]) -> None:
        for role, start in starts.items():
            self._agents[role].reset(start)

    def act(self, obs: Mapping[Role, Observation]) -> Mapping[Role, Decision]:
        return {role: self._agents[role].act(seen) for role, seen in obs.items()}

    def observe(self, steps: Mapping[Role, Step]) -> None:
        for role, step in steps.items():
            self._agents[role].observe(step)


def _watch_agents(
    agent_factory: Callable[[], Agent], world: World, seed: int
) -> tuple[str, dict[Role, _Watched]]:
    agents = {role: _Watched(agent_factory()) for role in world.roles}
    return _play_watched(agents, world, seed), agents


def _play_watched(agents: dict[Role, _Watched], world: World, seed: int) -> str:
    sink = MemorySink()
    play(world, _Watchers(agents), EPISODE, Seeds(seed), (sink,))
    return trajectory_hash(sink.steps)


def _watch_world(world: World, seed: int, max_steps: int) -> str:
    """Play a world with random legal actions and return the hash of what it did."""
    seeds = Seeds(seed).child(EPISODE)
    roles = _check_roles(world)
    seen = dict(world.reset(seeds.child("world")))
    starts = {role: world.start(role, seeds.child("agent", role)) for role in roles}
    dice = seeds.child("dice").rng()
    steps: list[Step] = []
    kept: list[tuple[Observation, bytes]] = []
    for role, obs in seen.items():
        _check_observation(obs, starts[role], None)
    for t in range(max_steps):
        if not seen:
            break
        kept += [(obs, obs.features.tobytes()) for obs in seen.values()]
        actions = {role: _random_action(starts[role].actions, seen[role], dice) for role in seen}
        outcomes = world.step(actions)
        for role, outcome in outcomes.items():
            _check_outcome(outcome, starts[role], seen.get(role))
            if role in seen:
                made = Decision(actions[role])
                steps.append(Step(EPISODE, t, role, "dice", seen[role], made, outcome))
        seen = {r: o.observation for r, o in outcomes.items() if not (o.terminated or o.truncated)}
    if any(obs.features.tobytes() != bytes_then for obs, bytes_then in kept):
        raise VenueError(
            "an observation changed after it was handed out",
            remedy="Give every observation its own array of features",
        )
    return trajectory_hash(steps)


def _check_roles(world: World) -> tuple[Role, ...]:
    roles = tuple(world.roles)
    if not roles or len(set(roles)) != len(roles) or not all(roles):
        raise VenueError("a world needs named roles, each once", found=repr(roles))
    return roles


def _check_observation(obs: Observation, start: EpisodeStart, before: Observation | None) -> None:
    names, spec, features = start.feature_names, start.actions, obs.features
    where = f"role {start.role}"
    if len(set(names)) != len(names):
        raise VenueError("feature names repeat", where=where, found=", ".join(names))
    if features.dtype != np.float64 or features.shape != (len(names),):
        raise VenueError(
            "features are not as announced",
            where=where,
            found=f"{features.dtype}{features.shape}",
            expected=f"float64({len(names)},)",
        )
    if not np.isfinite(features).all():
        bad = names[int(np.flatnonzero(~np.isfinite(features))[0])]
        raise VenueError("a feature is not finite", where=f"{where}, ts {obs.ts}", found=bad)
    if before is not None and obs.ts < before.ts:
        raise VenueError("time went back", where=where, found=obs.ts, expected=f">= {before.ts}")
    if spec.levels is not None and len(spec.levels) != spec.n:
        raise VenueError("each action needs a level", where=where, found=spec)
    if obs.legal is not None and (obs.legal.shape != (spec.n,) or not obs.legal.any()):
        raise VenueError("the legal mask fits no action", where=where, found=obs.legal)


def _check_outcome(outcome: Outcome, start: EpisodeStart, before: Observation | None) -> None:
    _check_observation(outcome.observation, start, before)
    if not math.isfinite(outcome.reward):
        raise VenueError("a reward is not finite", where=f"role {start.role}", found=outcome.reward)


def _random_action(spec: ActionSpec, obs: Observation, dice: np.random.Generator) -> Action:
    if spec.n is None:
        return float(dice.uniform(spec.low, spec.high))
    choices = np.arange(spec.n) if obs.legal is None else np.flatnonzero(obs.legal)
    return int(dice.choice(choices))
