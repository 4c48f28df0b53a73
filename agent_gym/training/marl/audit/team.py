"""Checks of the team: everyone is taught, everyone plays, and auxiliary teams do too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.crowd import LAST_LAYER
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.audit import Finding, error, fine, unchecked
from agent_gym.training.marl.amal import AMALAgent
from agent_gym.training.marl.audit.bandit import ARMS, bandit_learner, chances, window
from agent_gym.training.marl.audit.spies import SpiedWorlds, strange_deeds
from agent_gym.training.marl.audit.subject import NOT_MEANT, TeamSubject
from agent_gym.training.marl.batch import Batch

CERTAIN = 1e5
"""Logits times this leave no room for chance, so what is drawn is what is likeliest."""
LOOKS = 8
LEAST_MOVE = 1e-4
"""Of a chance in one update; an optimiser makes something of rounding errors too."""
TIED = 0.02
"""Share of decisions in which two actions may be equally likely."""


def whole_team(subject: TeamSubject) -> Iterator[Finding]:
    """Pay for the deeds of one agent at a time, and watch who plays in windows and looks."""
    moved = [_taught(subject, agent) for agent in range(2)]
    if min(moved) <= LEAST_MOVE:
        yield error(
            "Not every agent is taught: one that is paid for an arm does not play it more often.",
            "Let the loss hold the rows of all agents, which share one policy",
            **{f"agent_{i}": each for i, each in enumerate(moved)},
        )
    else:
        yield fine("Every agent is taught by what it does.", least=min(moved))
    watched = subject.session()
    policy = certain(watched.session.learner.policy)
    watched.session.collector.collect(policy)
    yield _played("a window", strange_deeds(policy, watched.primary.moments))
    worlds = SpiedWorlds(subject.seams.make_worlds(subject.small, LOOKS))
    subject.seams.look(policy, worlds, Seeds(subject.small.seed).child("audit", "look"))
    yield _played("a greedy look", strange_deeds(policy, worlds.moments))


def _taught(subject: TeamSubject, agent: int) -> float:
    """Return how much likelier an arm became for the agent who is paid for it."""
    learner = bandit_learner(subject, 2)
    before = chances(learner.policy)
    learner.learn([_paying(learner.policy, {agent: 1})])
    return float((chances(learner.policy) - before)[agent, 1])


def _paying(policy: TeamPolicy, arms: dict[int, int]) -> Batch:
    """Return a window of all pairs of arms that pays an agent for its arm."""
    grid = np.meshgrid(np.arange(1, ARMS + 1), np.arange(1, ARMS + 1), indexing="ij")
    actions = np.stack([each.ravel() for each in grid], axis=-1)
    paid = sum((actions[:, i] == arm).astype(np.float64) for i, arm in arms.items())
    return window(policy, actions, np.asarray(paid))


def _played(where: str, shares: list[float]) -> Finding:
    worst = max(shares)
    if worst > TIED:
        return error(
            f"Not every agent is played by the policy that is trained, in {where}.",
            "Ask one policy for all agents, also where the team is judged",
            **{f"agent_{i}": share for i, share in enumerate(shares)},
        )
    return fine(f"One policy plays all agents in {where}.", other_deeds=worst)


def certain(policy: TeamPolicy) -> TeamPolicy:
    """Return a policy that does the same greedily, and does it when it draws as well."""
    larger = {name: (CERTAIN * policy.weights[name]).astype(np.float32) for name in LAST_LAYER}
    return policy.with_weights(policy.weights | larger)


def agent_id(subject: TeamSubject) -> Iterator[Finding]:
    """Pay two agents who see the same for different arms."""
    learner = bandit_learner(subject, 2, epochs=4)
    before = chances(learner.policy)
    learner.learn([_paying(learner.policy, {0: 1, 1: 2})])
    moved = chances(learner.policy) - before
    apart = float((moved[0, 1] - moved[1, 1]) + (moved[1, 2] - moved[0, 2]))
    if apart <= LEAST_MOVE:
        yield error(
            "Agents who see the same cannot learn to do different things.",
            "Tell each of them which one it is",
            apart=apart,
        )
    else:
        yield fine("Agents know which one they are, and learn their own part.", apart=apart)


def auxiliary_teams(subject: TeamSubject) -> Iterator[Finding]:
    """Ask of every auxiliary window whether each team played it in its own way."""
    training, agent = subject.training, subject.training.watched.agent
    assert agent is not None
    if not subject.amal.auxiliary_share or not subject.amal.auxiliary_weight:
        yield unchecked(NOT_MEANT)
        return
    worst: FloatArray = np.zeros(subject.amal.num_auxiliary_agents)
    played = 0
    for mixed, shifts in zip(training.windows, training.shifts, strict=True):
        for batch in mixed.others:
            played += 1
            worst = np.maximum(worst, _strange(agent, mixed.policy, shifts, batch))
    idle = int((worst > 1e-3).sum()) if played else len(worst)
    generations = agent.auxiliaries.search.generation
    told = {"teams": len(worst), "idle_teams": idle, "generations": generations}
    if idle:
        yield error(
            "Some auxiliary teams never play as themselves.",
            "Give each its own environments, and let it decide in them for the whole team",
            **told,
        )
    elif not generations or _unchanged(training.shifts):
        yield error(
            "Auxiliary teams are never renewed.",
            "Let a generation end, and draw all teams of the next one",
            **told,
        )
    else:
        yield fine("Every auxiliary team plays as itself, and all are renewed.", **told)


def _strange(agent: AMALAgent, policy: TeamPolicy, shifts: FloatArray, batch: Batch) -> FloatArray:
    """Return by team how far stored log-probabilities are from those of its own policy."""
    crowd = agent.auxiliaries.space.crowd(policy, shifts)
    teams = len(shifts)
    found = np.zeros(teams)
    rows = batch.actions.shape[1] // teams
    memory = batch.actor_memory[0].reshape(teams, rows, *batch.actor_memory.shape[2:])
    for t in range(len(batch.actions)):
        memory = np.where(batch.begun[t].reshape(teams, rows, 1, 1), np.float32(0.0), memory)
        seen, legal = (
            each[t].reshape(teams, -1, *each.shape[2:])
            for each in (batch.observations[:-1], batch.legal)
        )
        logs, memory = crowd.log_probs(seen, legal, memory)
        own = np.take_along_axis(
            logs.reshape(batch.legal[t].shape), batch.actions[t, ..., None], -1
        )
        gaps = np.abs(own[..., 0] - batch.log_probs[t]).reshape(teams, -1)
        found = np.maximum(found, gaps.max(axis=1))
    return found


def _unchanged(shifts: tuple[FloatArray, ...]) -> bool:
    """Return whether a team of the last window is one of the first, but for its size."""
    first, last = (
        each / np.linalg.norm(each, axis=1, keepdims=True) for each in (shifts[0], shifts[-1])
    )
    return bool(np.isclose((first * last).sum(axis=1), 1.0, atol=1e-6).any())
