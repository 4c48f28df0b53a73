"""Checks of the bonus: that it is information, and that it moves the policy towards it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.audit import Finding, error, fine, unchecked
from agent_gym.training.marl.amal import MutualInformationEstimator
from agent_gym.training.marl.amal.agent import INFORMATION, rank_correlation
from agent_gym.training.marl.amal.world_model import Forecast
from agent_gym.training.marl.audit.bandit import ARMS, bandit_learner, chances, window
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import TEAM
from agent_gym.training.marl.study import Heads

ROWS, HEADS, FEATURES = 64, 5, 6
SHARE = 0.5
SPREAD = 0.3
"""How far heads are apart: not so far that all there is to say is said."""
NOTHING = 1e-9
ALIKE = 0.95


def bonus_moves(subject: TeamSubject) -> Iterator[Finding]:
    """Pay for information on one arm after the other, and see what is done more often."""
    if not subject.amal.lambda_info:
        yield unchecked("Nothing is paid for information (lambda_info is 0).")
        return
    moved = [_moved(subject, arm) for arm in range(1, ARMS + 1)]
    told = {"least": min(moved), "most": max(moved)}
    if max(moved) < -1e-6:
        yield error(
            "Information is punished: what says more is done less often.",
            "Turn the sign of the bonus: a loss is made smaller, a reward is wanted",
            **told,
        )
    elif min(moved) <= 1e-6:
        yield error(
            "The bonus does not move the policy: it has no gradient.",
            "Pay it as a reward of each step, with a value head of its own",
            **told,
        )
    else:
        yield fine("What says more is done more often, whichever arm it is.", **told)
    yield _by_step(subject)


def _moved(subject: TeamSubject, arm: int) -> float:
    learner = bandit_learner(subject, 1, Heads((TEAM, INFORMATION)))
    actions = np.tile(np.arange(1, ARMS + 1), 8)[:, None]
    paid = np.repeat([1.0, -1.0], len(actions) // 2)
    batch = window(learner.policy, actions, paid)
    said = (batch.actions[..., 0] == arm).astype(np.float32)
    before = chances(learner.policy)[0, arm]
    learner.learn([batch.paid(INFORMATION, said)], 0.0, {INFORMATION: SHARE})
    return float(chances(learner.policy)[0, arm] - before)


def _by_step(subject: TeamSubject) -> Finding:
    """Return whether every step of a real window is paid for what it said itself."""
    training = subject.training
    first = training.windows[0].fresh
    paid = first.rewards.get(INFORMATION)
    said = subject.agent().information(first)  # a fresh twin knows as much as it did then
    alike = (
        None if paid is None else rank_correlation(said.ravel(), paid.ravel().astype(np.float64))
    )
    counted = max(mixed.shares.get(INFORMATION, 0.0) for mixed in training.windows)
    told = {"rank_correlation": 0.0 if alike is None else alike, "largest_weight": counted}
    if told["rank_correlation"] < ALIKE or counted <= 0.0:
        return error(
            "The bonus is no reward of single steps for what they said.",
            "Pay every step for its own information",
            **told,
        )
    return fine("Every step is paid for what it says.", **told)


def information(subject: TeamSubject) -> Iterator[Finding]:
    """Show the estimator forecasts of which the information is known."""
    estimate = subject.seams.estimator(subject.amal.information, subject.amal.variance_floor)
    rng = Seeds(subject.small.seed).child("audit", "information").rng()
    mean = SPREAD * rng.standard_normal((ROWS, HEADS, FEATURES))
    variance = np.full(mean.shape, 0.1)
    truth = rng.standard_normal((ROWS, FEATURES))
    goes_on = np.ones(ROWS, np.bool_)
    agreed = np.repeat(mean[:, :1], HEADS, axis=1)
    told = Forecast(mean, variance, truth, goes_on)
    found = {
        "least": float(estimate(told).min()),
        "where_heads_agree": float(np.abs(estimate(told._replace(mean=agreed))).max()),
        "where_noise_is_larger": _ratio(estimate, told, told._replace(variance=100.0 * variance)),
        "moved_by_outcome": float(
            np.abs(estimate(told) - estimate(told._replace(truth=truth[::-1] + 3.0))).max()
        ),
        "most": float(estimate(told).max()),
        "in_pure_noise": float(
            np.abs(estimate(Forecast(agreed, 100.0 * variance, truth, goes_on))).max()
        ),
    }
    wrong = [
        words
        for words, bad in (
            ("it is below 0", found["least"] < -NOTHING),
            ("it is there where all heads agree", found["where_heads_agree"] > NOTHING),
            ("it sees some in pure noise", found["in_pure_noise"] > NOTHING),
            ("it does not fall where noise is larger", found["where_noise_is_larger"] > 0.9),
            ("it hangs on how the step turned out", found["moved_by_outcome"] > NOTHING),
            (
                "it is more than the heads can be told apart by",
                found["most"] > np.log(HEADS) + 1e-6,
            ),
            ("heads that differ tell nothing", found["most"] <= NOTHING),
        )
        if bad
    ]
    if wrong:
        yield error(
            f"What is paid for is no information: {'; '.join(wrong)}.",
            "Take the mutual information of the next state and the head that is right",
            **found,
        )
    else:
        yield fine("It is 0 where heads agree, blind to noise, and never below 0.", **found)
    yield _legal(subject)


def _ratio(estimate: MutualInformationEstimator, one: Forecast, other: Forecast) -> float:
    return float(estimate(other).mean() / max(float(estimate(one).mean()), 1e-12))


def _legal(subject: TeamSubject) -> Finding:
    """Return whether information is asked of deeds that could be done, and were."""
    wrong = 0
    for mixed in subject.training.windows:
        for batch in (mixed.fresh, *mixed.others):
            done = np.take_along_axis(batch.legal, batch.actions[..., None], -1)
            wrong += int((~done).sum())
    if wrong:
        return error(
            "Information is asked of actions that are not legal.",
            "Mask them wherever an action is drawn",
            rows=wrong,
        )
    return fine("Information is asked of what was done, and that was legal.", rows=wrong)
