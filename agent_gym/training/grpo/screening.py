"""Which recorded trajectories may be learned from, and why the others may not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.training.grpo.advantages import BoolArray
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import GRPOConfig

OFFER = "Train on it with imitate_best (SFT) or prefer_best (DPO), which need none"


@dataclass(frozen=True, slots=True)
class Screened:
    """What is left of a batch.

    ``refused_groups`` counts groups without a trajectory left that had some at first, and
    ``refused`` the trajectories by reason.
    """

    batch: RolloutBatch
    refused_groups: int
    refused: dict[str, int]


def screen(batch: RolloutBatch, config: GRPOConfig, lineage: Sequence[str]) -> Screened:
    """Leave out what was not drawn, cut short, recorded by too old a policy, or lacks a group.

    Args:
        batch: What was recorded.
        config: Group size and staleness that are allowed.
        lineage: Versions of the policy up to now, the newest last.
    """
    require_log_probs(batch)
    require_reward(batch, config)
    good = np.ones(len(batch), dtype=np.bool_)
    refused: dict[str, int] = {}

    def leave_out(reason: str, bad: BoolArray) -> None:
        if n := int((good & bad).sum()):
            refused[reason] = n
        good[bad] = False

    leave_out("no log-probabilities", ~batch.drawn)
    leave_out("cut short", ~batch.finished)
    age = {version: i for i, version in enumerate(reversed(lineage))}
    ages = np.array([age.get(version, -1) for version in batch.versions])
    leave_out("recorded by an unknown policy", ages < 0)
    leave_out("recorded by too old a policy", ages > config.max_staleness)
    leave_out("policies mixed in one group", _mixed(batch, good))
    sizes = Counter(key for key, ok in zip(batch.group_keys, good, strict=True) if ok)
    small = np.array([sizes[key] < config.min_group_size for key in batch.group_keys])
    leave_out("group too small", small)
    rows = np.flatnonzero(good)
    left = {batch.group_keys[i] for i in rows}
    kept = batch if len(rows) == len(batch) else batch.select(rows)
    return Screened(kept, len(set(batch.group_keys)) - len(left), refused)


def require_log_probs(batch: RolloutBatch) -> None:
    """Raise DataError if no trajectory of a batch knows how likely its decisions were."""
    if not batch.drawn.any():
        raise DataError(
            "GRPO needs the log-probability of each decision, as recorded when it was drawn",
            where=f"{len(batch)} trajectories",
            found="none has them",
            remedy=f"Record again with a policy that draws. {OFFER}",
        )


def require_reward(batch: RolloutBatch, config: GRPOConfig) -> None:
    """Raise ConfigError if scores of a judge are wanted and a batch holds sums of rewards."""
    if config.reward == "judge" and not batch.scored:
        raise ConfigError(
            "the settings ask for scores of a judge, and this batch has none",
            where="reward",
            found="sums of rewards",
            remedy="Make the batch with judged=True, or set reward to 'return'",
        )


def _mixed(batch: RolloutBatch, good: BoolArray) -> BoolArray:
    versions: dict[str, set[str]] = {}
    for key, version, ok in zip(batch.group_keys, batch.versions, good, strict=True):
        if ok:
            versions.setdefault(key, set()).add(version)
    return np.array([len(versions.get(key, ())) > 1 for key in batch.group_keys])
