"""Checks of the learner: whose credit is whose, who played, who lives, and scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.audit import Finding, error, fine
from agent_gym.training.marl.audit.bandit import (
    ARMS,
    apart,
    bandit_learner,
    chances,
    gradient_by_row,
    gradient_of,
    window,
)
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import REUSED, TEAM, Batch
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.losses import PolicyTerms

ROUNDS = 2
TOLERANCE = 1e-3
FEWEST_PASSES = 4
LARGE = 1e4


def credit(subject: TeamSubject) -> Iterator[Finding]:
    """Compare the gradient of the loss with one that is added up row by row."""
    learner = bandit_learner(subject, 1)
    batch = _window(learner)
    found = apart(gradient_of(learner, batch), gradient_by_row(learner, batch))
    if found > TOLERANCE:
        yield error(
            "Actions do not get the credit of their own advantage: the gradient is not the sum "
            "over rows.",
            "Compare the shapes of log-probabilities, advantages and weights in the loss",
            apart=found,
        )
    else:
        yield fine("Every action gets the credit of its own advantage.", apart=found)
    yield _shapes(subject)


def _shapes(subject: TeamSubject) -> Finding:
    row = torch.zeros(3)
    terms = PolicyTerms(row, row, row, row + 1.0, row.unsqueeze(-1), row + 1.0)
    try:
        subject.seams.policy_loss(terms, 0.2, 0.0)
    except ValueError:
        return fine("The loss refuses advantages of another shape than log-probabilities.")
    return error(
        "The loss takes advantages [B, 1] beside log-probabilities [B]: their product is [B, B] "
        "and gives every action the same credit.",
        "Compare all shapes before anything is computed",
    )


def corrected(subject: TeamSubject) -> Iterator[Finding]:
    """Say that other chances were drawn from, and see whether the gradient answers."""
    learner = bandit_learner(subject, 1)
    batch = _window(learner)
    likelier = np.where(batch.actions <= ARMS // 2, 0.5, -0.5).astype(np.float32)
    old = replace(batch, source=REUSED, log_probs=batch.log_probs + likelier)
    found = apart(gradient_of(learner, old), gradient_by_row(learner, old))
    moved = apart(gradient_of(learner, old), gradient_of(learner, replace(batch, source=REUSED)))
    if found > TOLERANCE:
        yield error(
            "Rows that another team played are learned from as if the present one had.",
            "Weigh them by the chance now over the chance that was stored, and clip that",
            apart=found,
            moved_by_stored_chances=moved,
        )
    else:
        yield fine(
            "Rows of others count by the chance now over the chance then.",
            apart=found,
            moved_by_stored_chances=moved,
        )


def living_alone(subject: TeamSubject) -> Iterator[Finding]:
    """Let agents be dead where the team is paid otherwise, and compare with the living alone."""
    learner = bandit_learner(subject, 2)
    plain = _window(learner)
    envs = plain.actions.shape[1]
    dead = np.zeros((envs, 2), np.bool_)
    dead[: envs // 2, 1] = True
    paid = plain.rewards[TEAM][0] + np.where(dead[:, 1], 3.0, 0.0)
    batch = window(learner.policy, plain.actions[0], paid, dead=dead)
    found = apart(gradient_of(learner, batch), gradient_by_row(learner, batch))
    told = {"apart": found, "dead_share": float(dead.mean())}
    if found > TOLERANCE:
        yield error(
            "The dead count: their rows are in the mean of the loss or in the scale of advantages.",
            "Give them no weight, and scale advantages over the living alone",
            **told,
        )
    else:
        yield fine("The policy learns from the living alone.", **told)


def scales(subject: TeamSubject) -> Iterator[Finding]:
    """Pay a thousand times as much, and let a critic be far off: the actor must not notice."""
    small, large = (_learned(subject, paid=factor) for factor in (100.0, 100.0 * LARGE))
    ratio = large[1] / max(small[1], 1e-12)
    if ratio > 2.0:
        yield error(
            "The critic learns values in units of the reward: its loss grows with what is paid.",
            "Scale its targets by their running mean and deviation",
            loss_ratio=ratio,
        )
    else:
        yield fine("What is paid does not change the scale of the critic's loss.", loss_ratio=ratio)
    calm, wild = (_learned(subject, critic=factor)[0] for factor in (0.0, LARGE))
    gap = float(np.abs(calm - wild).max())
    if gap > 1e-5:
        yield error(
            "A critic that is far off changes the steps of the actor: they share an optimiser or "
            "a bound on the gradient.",
            "Give each network its own optimiser and its own bound",
            moved=gap,
        )
    else:
        yield fine("Steps of the actor do not hang on the critic's errors.", moved=gap)


def _learned(
    subject: TeamSubject, paid: float = 1.0, critic: float = 0.0
) -> tuple[FloatArray, float]:
    """Return the chances and the loss of the critic after three epochs."""
    learner = bandit_learner(subject, 1, epochs=3)
    with torch.no_grad():
        for head in learner.parts.critic.heads.values():
            for parameter in head.parameters():
                parameter.fill_(critic)
    batch = _window(learner)
    batch = replace(batch, rewards={TEAM: paid * batch.rewards[TEAM]})
    figures = learner.learn([batch]).figures
    return chances(learner.policy), figures.value_loss


def updates(subject: TeamSubject) -> Iterator[Finding]:
    """Count the steps of the actor's optimiser, and how often a row is gone through."""
    training = subject.training
    steps = [
        float(array)
        for name, array in training.watched.session.learner.state().items()
        if name.startswith("actor/adam/") and name.endswith("/step")
    ]
    used = min(each.figures.used_by["fresh"] for each in training.told)
    passes = max(steps, default=0.0) / len(training.told) * used
    told = {"passes_a_row": passes, "steps": max(steps, default=0.0), "used_share": used}
    if passes < FEWEST_PASSES:
        yield error(
            "Hardly anything is learned from what is played: a row is gone through less than "
            f"{FEWEST_PASSES} times.",
            "Take more epochs over whole windows",
            **told,
        )
    else:
        yield fine("Every row is learned from several times.", **told)


def _window(learner: Learner) -> Batch:
    """Return all arms equally often, each paid by itself and by a little chance."""
    agents = learner.policy.contract.agents
    grid = np.meshgrid(*[np.arange(1, ARMS + 1)] * agents, indexing="ij")
    actions = np.tile(np.stack([each.ravel() for each in grid], axis=-1), (ROUNDS, 1))
    pays = np.array([1.0, -1.0, 0.5, -0.5])
    extra = np.where(np.arange(len(actions)) % 3 == 0, 0.3, -0.15)
    return window(learner.policy, actions, pays[actions - 1].sum(axis=-1) + extra)
