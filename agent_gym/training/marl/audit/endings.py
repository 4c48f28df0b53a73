"""Check of endings: time that runs out is declared once, and the end of a window is no end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle.contract import NO_OP, STOP
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.training.marl.audit.bandit import bandit_learner, window
from agent_gym.training.marl.audit.spies import SpiedWorlds
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import TEAM, Batch
from agent_gym.training.marl.runs import changed
from agent_gym.training.marl.worlds import living

LONG = "2s_vs_1sc"
"""A map on which a team that stands still lives until time runs out."""


class _RunOut(NamedTuple):
    """How time ran out: after how many steps, whether that ended the episode, and was won."""

    steps: int
    ended: bool
    won: bool


def endings(subject: TeamSubject) -> Iterator[Finding]:
    """Let time run out in the worlds of all streams, and hold windows against their worlds."""
    config = subject.small
    sizes = {"training": config.n_envs, "looks": config.evaluation.episodes}
    if config.amal is not None:
        sizes["auxiliary"] = config.amal.num_auxiliary_agents
    found = {name: _run_out(subject, n_envs) for name, n_envs in sizes.items()}
    limit = changed(config, {"world.map": LONG}, where=subject.name).world.battle().step_limit
    told = {name: each.steps for name, each in found.items()}
    if any(each != _RunOut(limit, True, False) for each in found.values()):
        yield error(
            "Time that runs out is not the same end for all: the map says that it is a defeat.",
            "Declare it once, in the world, and treat it alike in training, looks and auxiliaries",
            **told,
            limit=limit,
        )
    else:
        yield fine("Time that runs out is a defeat, as the map says, for all alike.", **told)
    yield _windows(subject)
    yield _border(subject)


def _run_out(subject: TeamSubject, n_envs: int) -> _RunOut:
    config = changed(subject.small, {"world.map": LONG}, where=subject.name)
    limit = config.world.battle().step_limit
    worlds = subject.seams.make_worlds(config, n_envs)
    senses = worlds.reset(Seeds(config.seed).child("audit", "endings"))
    steps, ended, won = 0, False, False
    while not ended and steps <= limit:
        results = worlds.step(np.where(living(senses.legal), STOP, NO_OP))
        steps, ended, won = steps + 1, bool(results.ended.all()), bool(results.won.any())
        senses = worlds.senses
    return _RunOut(steps, ended, won)


def _windows(subject: TeamSubject) -> Finding:
    """Compare ends in windows with those that their worlds have told."""
    training = subject.training
    streams = [([each.fresh for each in training.windows], training.watched.primary)]
    if training.watched.auxiliary is not None:
        theirs = [batch for each in training.windows for batch in each.others]
        streams.append((theirs, training.watched.auxiliary))
    wrong = sum(_other_ends(batches, worlds) for batches, worlds in streams)
    if wrong:
        return error(
            "Windows tell of ends that the world does not know, or leave some out.",
            "Keep what the world says; a window that is full ends nothing",
            steps=wrong,
        )
    return fine("Windows end episodes where their worlds do.", steps=wrong)


def _other_ends(batches: list[Batch], worlds: SpiedWorlds) -> int:
    """Return how many ends differ; batches that were never handed on are not asked."""
    if not batches:
        return 0
    told = np.concatenate([batch.ended for batch in batches])
    really = np.stack([moment.ended for moment in worlds.moments])
    return (
        int((told != really).sum()) if told.shape == really.shape else abs(len(told) - len(really))
    )


def _border(subject: TeamSubject) -> Finding:
    """Ask what is taught at the border of a window: what comes after it counts, after an end not.

    The critic says 1 everywhere and nothing is paid, so targets are gamma, and 0 after an end.
    """
    found = {}
    for name, over in (("goes_on", False), ("ended", True)):
        learner = bandit_learner(subject, 1)
        with torch.no_grad():
            learner.parts.critic.get_parameter(f"heads.{TEAM}.bias").fill_(1.0)
        batch = window(learner.policy, np.ones((8, 1), np.int64), np.zeros(8))
        learner.learn([replace(batch, ended=np.full_like(batch.ended, over))])
        found[name] = learner.parts.norms[TEAM].mean_and_spread[0]
    gamma = subject.small.learn.gamma
    if abs(found["goes_on"] - gamma) > 1e-4 or abs(found["ended"]) > 1e-4:
        return error(
            "The border of a window is taken for the end of an episode, or an end for none.",
            "Add the value of what is seen next, unless the episode has ended",
            **found,
            gamma=gamma,
        )
    return fine("Values go on over the border of a window, and not over an end.", **found)
