"""Checks of what is kept and of what is judged: a saved training goes on, and greedy is greedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.envs.exact import same_bits
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.training.marl.audit.spies import SpiedWorlds, strange_deeds
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import Batch
from agent_gym.training.marl.checkpoints import read_checkpoint, write_checkpoint

LOOKS = 8


def save_load(subject: TeamSubject) -> Iterator[Finding]:
    """Put a training down between two iterations and go on, from files alone."""
    training = subject.training
    with TemporaryDirectory() as home:
        place = Path(home)
        write_checkpoint(place / "checkpoint", "audit", training.before)
        kept = read_checkpoint(place / "checkpoint", "audit")
        assert kept is not None
        twin = subject.session().session
        twin.restore(kept)
        twin.iterate()
        found, expected = twin.state(), training.after
        policy = training.watched.session.learner.policy
        subject.seams.save(policy, place / "policy")
        yield _policy(policy, subject.seams.load(place / "policy"), training.windows[-1].fresh)
    names = set(found.arrays) | set(expected.arrays)
    other = [
        name
        for name in sorted(names)
        if name not in found.arrays
        or name not in expected.arrays
        or not same_bits(found.arrays[name], expected.arrays[name])
    ]
    if other:
        yield error(
            "A training that was put down and taken up goes another way: something is not kept.",
            "Keep all networks, optimisers, scales, buffers, searches, worlds and generators",
            differing=len(other),
            of=len(names),
            first=other[0],
        )
    else:
        yield fine("A training goes on to the bit after it was put down.", arrays=len(names))


def _policy(policy: TeamPolicy, loaded: TeamPolicy, batch: Batch) -> Finding:
    """Compare what a saved policy does, greedily and by chance."""
    seen, legal = batch.observations[:-1], batch.legal
    draws = Seeds(0).child("audit", "draws").rng().random(batch.actions.shape)
    memory = policy.memory(*batch.actions.shape[:2])
    wrong = 0
    for each in (None, draws):
        one, other = (who.act(seen, legal, memory, each).actions for who in (policy, loaded))
        wrong += int((one != other).sum())
    if wrong:
        return error(
            "A team that was saved and loaded acts otherwise.",
            "Save the policy of the whole team",
            actions=wrong,
        )
    return fine("A team that was saved and loaded does the same.", actions=wrong)


def greedy(subject: TeamSubject) -> Iterator[Finding]:
    """Look twice from the same starts, and hold every deed against the likeliest one."""
    policy = subject.training.watched.session.learner.policy
    looks, shares = [], []
    for _ in range(2):
        worlds = SpiedWorlds(subject.seams.make_worlds(subject.small, LOOKS))
        seeds = Seeds(subject.small.seed).child("audit", "greedy")
        looks.append(subject.seams.look(policy, worlds, seeds))
        shares.append(max(strange_deeds(policy, worlds.moments)))
    told = {"other_deeds": float(np.max(shares)), "win_rate": looks[0].win_rate}
    if max(shares) > 0.0 or looks[0] != looks[1]:
        yield error(
            "A greedy look does not do what is likeliest: it draws.",
            "Take the likeliest legal action wherever a team is judged",
            **told,
        )
    else:
        yield fine("A greedy look does what is likeliest, and is the same twice.", **told)
