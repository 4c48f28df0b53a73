"""Recorded trajectories as arrays, ready to be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.types import FloatArray, Step
from agent_gym.training.grpo.advantages import BoolArray


@dataclass(frozen=True, slots=True)
class Recorded:
    """One trajectory as it was recorded.

    Args:
        id: Its name in the store.
        group_key: Trajectories with equal keys had the same snapshot, rules and policy.
        version: Hash of the policy that played it.
        feature_names: The names of the columns of ``observations``.
        observations: What was seen, a row a tick.
        actions: What was done, a row a tick.
        rewards: What each tick brought.
        log_probs: Log of the chance of each action when it was drawn; None if nobody wrote it
            down, or nothing was drawn.
        finished: It ran to its own end; one that was cut short says nothing about its return.
        score: What counts in the place of the sum of rewards, such as a judge's score.
        texts: What was seen, in words, a text a tick.
    """

    id: str
    group_key: str
    version: str
    feature_names: tuple[str, ...]
    observations: FloatArray
    actions: FloatArray
    rewards: FloatArray
    log_probs: FloatArray | None = None
    finished: bool = True
    score: float | None = None
    texts: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """Trajectories side by side: N of them, T ticks in the longest, padded with zeros.

    ``log_probs`` is NaN where none was recorded and 0 in the padding; ``returns`` is the score of
    each where it has one, else the sum of its rewards, and ``scored`` says whether any has.
    """

    ids: tuple[str, ...]
    group_keys: tuple[str, ...]
    versions: tuple[str, ...]
    feature_names: tuple[str, ...]
    observations: FloatArray
    actions: FloatArray
    rewards: FloatArray
    log_probs: FloatArray
    mask: BoolArray
    finished: BoolArray
    returns: FloatArray
    scored: bool = False
    texts: tuple[tuple[str, ...], ...] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def drawn(self) -> BoolArray:
        """Return which trajectories have the log-probability of every decision."""
        return np.asarray(np.isfinite(self.log_probs).all(axis=1))

    @property
    def data_hash(self) -> str:
        """Return the hash of the ids, whatever their order."""
        return fingerprint(sorted(self.ids))

    def select(self, rows: NDArray[np.intp]) -> RolloutBatch:
        """Return some of the trajectories, in the order asked for."""
        texts = self.texts
        return replace(
            self,
            ids=tuple(self.ids[i] for i in rows),
            group_keys=tuple(self.group_keys[i] for i in rows),
            versions=tuple(self.versions[i] for i in rows),
            observations=self.observations[rows],
            actions=self.actions[rows],
            rewards=self.rewards[rows],
            log_probs=self.log_probs[rows],
            mask=self.mask[rows],
            finished=self.finished[rows],
            returns=self.returns[rows],
            texts=None if texts is None else tuple(texts[i] for i in rows),
        )


def stack(trajectories: Sequence[Recorded]) -> RolloutBatch:
    """Put trajectories side by side; they must show the same features and take the same actions."""
    if not trajectories:
        raise DataError("there is no trajectory to learn from", found=0)
    first = trajectories[0]
    ids = [one.id for one in trajectories]
    if len(set(ids)) != len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise DataError("a trajectory is in the batch twice", where=f"trajectory {twice}")
    for one in trajectories:
        _check(one, first)
    length = max(len(one.rewards) for one in trajectories)
    log_probs = [
        np.full(len(one.rewards), np.nan) if one.log_probs is None else one.log_probs
        for one in trajectories
    ]
    rewards = _padded([one.rewards for one in trajectories], length)
    scores = [one.score for one in trajectories]
    sums = rewards.sum(axis=1)
    returns = [total if score is None else score for score, total in zip(scores, sums, strict=True)]
    texts = [one.texts for one in trajectories]
    return RolloutBatch(
        ids=tuple(ids),
        group_keys=tuple(one.group_key for one in trajectories),
        versions=tuple(one.version for one in trajectories),
        feature_names=first.feature_names,
        observations=_padded([one.observations for one in trajectories], length),
        actions=_padded([_rows(one.actions) for one in trajectories], length),
        rewards=rewards,
        log_probs=_padded(log_probs, length),
        mask=np.arange(length) < np.array([[len(one.rewards)] for one in trajectories]),
        finished=np.array([one.finished for one in trajectories]),
        returns=np.array(returns, dtype=np.float64),
        scored=any(score is not None for score in scores),
        texts=tuple(text for text in texts if text is not None) if all(texts) else None,
    )


def recorded_of(steps: Sequence[Step], **about: Any) -> Recorded:
    """Make a trajectory of the steps of one role; ``about`` holds the other fields of Recorded.

    The log-probability is the signal ``log_prob``; if a single step lacks it there is none.
    """
    signals = [step.decision.signals or {} for step in steps]
    drawn = bool(signals) and all("log_prob" in one for one in signals)
    actions = np.array([np.atleast_1d(step.decision.action) for step in steps], dtype=np.float64)
    return Recorded(
        observations=np.array([step.before.features for step in steps]),
        actions=actions,
        rewards=np.array([step.after.reward for step in steps], dtype=np.float64),
        log_probs=np.array([one["log_prob"] for one in signals]) if drawn else None,
        **about,
    )


def _check(one: Recorded, first: Recorded) -> None:
    where, ticks = f"trajectory {one.id}", len(one.rewards)
    if one.feature_names != first.feature_names:
        raise DataError(
            "trajectories of one batch must show the same features",
            where=where,
            found=", ".join(one.feature_names),
            expected=", ".join(first.feature_names),
        )
    if not ticks:
        raise DataError("a trajectory without a step", where=where)
    widths = (len(one.feature_names), _rows(first.actions).shape[1])
    found = (one.observations.shape, _rows(one.actions).shape)
    expected = ((ticks, widths[0]), (ticks, widths[1]))
    if found != expected:
        raise DataError("a trajectory of odd shape", where=where, found=found, expected=expected)
    for name in ("observations", "actions", "rewards"):
        if not np.isfinite(getattr(one, name)).all():
            raise DataError(f"{name} hold what is not a number", where=where)
    if one.log_probs is not None and np.max(one.log_probs, initial=-1.0) > 0:
        raise DataError(
            "a log-probability above 0", where=where, found=float(np.max(one.log_probs))
        )


def _rows(array: FloatArray) -> FloatArray:
    return array.reshape(len(array), -1)


def _padded(arrays: Sequence[FloatArray], length: int) -> FloatArray:
    out = np.zeros((len(arrays), length, *arrays[0].shape[1:]))
    for i, array in enumerate(arrays):
        out[i, : len(array)] = array
    return out
