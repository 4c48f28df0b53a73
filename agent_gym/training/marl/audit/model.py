"""Check of the model of the world: better than no change, and never taught across an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from agent_gym.envs.exact import same_bits
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.training.marl.audit.streams import restored
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import Arrays, Batch

ELSEWHERE = 50.0
LESSONS = 6


def world_model(subject: TeamSubject) -> Iterator[Finding]:
    """Hold forecasts against no change at all, and change what comes after an end."""
    still, mean = _shares(subject)
    told = {"r2_against_no_change": still, "r2_against_mean_change": mean}
    if min(still, mean) <= 0.0:
        yield error(
            "The model of the world is no better than the forecast that nothing changes, or that "
            "all changes are as always.",
            "Scale what it sees and what it foretells, and let it take more steps",
            **told,
        )
    else:
        yield fine("It foretells episodes that it has not learned from.", **told)
    batch = _ending(subject.training.windows[-1].fresh)
    state = batch.state.copy()
    state[-1] = ELSEWHERE
    one, other = (_taught(subject, each) for each in (batch, replace(batch, state=state)))
    changed = sum(not same_bits(one[name], other[name]) for name in one)
    if changed:
        yield error(
            "The model learns the step from the end of one battle to the start of the next.",
            "Leave out changes of the state where an episode ended",
            changed_arrays=changed,
        )
    else:
        yield fine("What comes after an end does not reach the model.", changed_arrays=changed)


def _shares(subject: TeamSubject) -> tuple[float, float]:
    """Return what share of two plain forecasts' errors a few more lessons take away."""
    twin = restored(subject)
    view = twin.buffer.primary.view()
    for _ in range(LESSONS):
        twin.model.learn(view)
    rows = view.rows()
    told = twin.model.forecast(rows.some(np.flatnonzero(view.held_out & ~rows.ended)))
    mean = 1.0 - told.errors().sum() / max(float(np.square(told.truth).sum()), 1e-12)
    still = twin.model.quality(view).r2
    return -np.inf if still is None else still, float(mean)


def _ending(batch: Batch) -> Batch:
    """Return a window whose last step ended every battle."""
    ended, begun = batch.ended.copy(), batch.begun.copy()
    ended[-1], begun[-1] = True, True
    return replace(batch, ended=ended, begun=begun)


def _taught(subject: TeamSubject, batch: Batch) -> Arrays:
    twin = restored(subject)
    twin.learn_world(batch, np.zeros(batch.ended.shape))
    return twin.model.state()
