"""Checks of the two streams: auxiliary rows reach the learner, and never the model of the world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.audit import Finding, error, fine, note, unchecked
from agent_gym.training.marl.amal import AMALAgent
from agent_gym.training.marl.amal.canary import canary, symmetric
from agent_gym.training.marl.audit.subject import NOT_MEANT, TeamSubject, Training
from agent_gym.training.marl.batch import AUXILIARY, FRESH, TEAM, Batch
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.worlds import MakeWorlds


def auxiliary_rows(subject: TeamSubject) -> Iterator[Finding]:
    """Follow the rows of auxiliary teams from their worlds to the learner."""
    training, spied = subject.training, subject.training.watched.auxiliary
    assert spied is not None
    played = spied.env_steps
    sources = {batch.source for mixed in training.windows for batch in mixed.others}
    reached = sum(batch.env_steps for mixed in training.windows for batch in mixed.others)
    used = [told.figures.used_by.get(AUXILIARY, 0.0) for told in training.told]
    figures = {"played": played, "reached": reached, "used_share": float(max(used))}
    if not subject.amal.auxiliary_share or not subject.amal.auxiliary_weight:
        yield unchecked(NOT_MEANT)
    elif not played or reached != played or sources != {AUXILIARY} or max(used) <= 0.0:
        yield error(
            "What auxiliary teams play does not reach the learner as theirs.",
            "Hand it on as a batch of its own, with its source and the chances of its draws",
            **figures,
        )
    else:
        yield fine("The learner gets all auxiliary rows, and knows them as such.", **figures)
    yield _primary(training)


def _primary(training: Training) -> Finding:
    """Compare the primary windows with what the primary worlds saw."""
    moments, at, wrong = training.watched.primary.moments, 0, 0
    for mixed in training.windows:
        batch = mixed.fresh
        here = moments[at : at + len(batch.actions)]
        at += len(here)
        same = (
            batch.source == FRESH
            and len(here) == len(batch.actions)
            and np.array_equal(np.stack([each.actions for each in here]), batch.actions)
            and np.allclose(np.stack([each.rewards for each in here]), batch.rewards[TEAM])
        )
        wrong += not same
    if wrong or at != len(moments):
        return error(
            "Primary windows hold something else than the primary team has played.",
            "Keep one stream for the primary team, and nothing else in it",
            windows=wrong,
        )
    return fine("Primary windows hold what the primary team played, and nothing else.")


def model_apart(subject: TeamSubject) -> Iterator[Finding]:
    """Replace auxiliary rows by garbage: a model that learns from primary rows cannot notice."""
    training = subject.training
    if not subject.amal.auxiliary_share:
        yield unchecked(NOT_MEANT)
        yield from _sees_all(subject)
        return
    leaks = max(each.amal.leaks for each in training.told if each.amal is not None)
    plain = _canary(subject, subject.small)
    control = _canary(subject, symmetric(subject.small))
    told = {"leaked_rows": leaks, "changed_arrays": plain, "changed_in_control": control}
    if leaks or plain:
        yield error(
            "The model of the world learns from auxiliary rows.",
            "Let it take a view of primary rows alone",
            **told,
        )
    elif not control:
        yield error(
            "A model that is fed auxiliary rows on purpose does not notice garbage in them: the "
            "canary is blind, so nothing is known of leaks.",
            "See that auxiliary rows are kept where the model could reach them",
            **told,
        )
    else:
        yield fine("Garbage in auxiliary rows does not reach the model.", **told)
    yield from _sees_all(subject)


def _canary(subject: TeamSubject, config: TeamTrainConfig) -> int:
    """Return how many arrays of the model differ if all of auxiliary teams is garbage."""

    def twin(make_worlds: MakeWorlds) -> AMALAgent:
        return restored(subject, config, make_worlds)

    seeds = Seeds(config.seed).child("audit", "canary")
    return canary(twin, subject.seams.make_worlds, subject.training.windows[-1], seeds)


def restored(
    subject: TeamSubject,
    config: TeamTrainConfig | None = None,
    make_worlds: MakeWorlds | None = None,
) -> AMALAgent:
    """Return a twin of the agent as it was before the last update."""
    kept = subject.training.agent_state
    assert kept is not None
    twin = subject.agent(config, make_worlds)
    twin.restore(*kept)
    return twin


def _sees_all(subject: TeamSubject) -> Iterator[Finding]:
    """Let one agent after the other do something else; the forecast must answer."""
    agent, batch = restored(subject), subject.training.windows[-1].fresh
    if subject.amal.information == "error":
        yield note("A single head's error is paid, which is asked of one head alone.")
    plain = agent.information(batch)
    moved = []
    for i in range(batch.actions.shape[-1]):
        said = agent.information(_otherwise(batch, i))
        moved.append(float(np.abs(said - plain).max()))
    told = {f"agent_{i}": each for i, each in enumerate(moved)}
    if min(moved) <= 0.0:
        yield error(
            "The model does not see what every agent does: team mates are noise to it.",
            "Show it the state of the battle and the actions of the whole team",
            **told,
        )
    else:
        yield fine("The model sees what every agent does.", **told)


def _otherwise(batch: Batch, agent: int) -> Batch:
    actions = batch.actions.copy()
    actions[..., agent] = (actions[..., agent] + 1) % batch.legal.shape[-1]
    return replace(batch, actions=actions)
