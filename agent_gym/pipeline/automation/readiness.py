"""Whether there is enough, and good enough, to train on; every unmet condition in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, configure

MIN_TRAJECTORIES = "TRAINING_MIN_TRAJECTORIES"
MIN_GROUP_SIZE = "TRAINING_MIN_GROUP_SIZE"


class ReadinessPolicy(Config):
    """What must be there before a training begins."""

    min_trajectories: int = Field(default=1000, ge=1, description="trainable and not yet used")
    min_groups: int = Field(default=10, ge=1, description="groups that are large enough")
    min_group_size: int = Field(default=4, ge=2, description="trajectories of a group")
    min_quality: float = Field(default=0.95, ge=0.0, le=1.0, description="share of checks passed")
    quality_sample: int = Field(default=50, ge=1, description="newest trajectories looked at")
    spacing_hours: float = Field(default=24.0, ge=0.0, description="between two trainings")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> ReadinessPolicy:
        """Return the defaults with what the environment says instead.

        Example:
            >>> policy = ReadinessPolicy.from_environment({"TRAINING_MIN_TRAJECTORIES": "40"})
            >>> policy.min_trajectories
            40
        """
        said = os.environ if environment is None else environment
        fields = {"min_trajectories": MIN_TRAJECTORIES, "min_group_size": MIN_GROUP_SIZE}
        given = {field: _whole(name, said[name]) for field, name in fields.items() if name in said}
        return configure(cls, given, where=f"{MIN_TRAJECTORIES}, {MIN_GROUP_SIZE}")


@dataclass(frozen=True, slots=True)
class Stock:
    """What is in the store, as far as readiness asks.

    ``quality`` is None when there was nothing to look at, ``last_training_ns`` when there was no
    training yet.
    """

    unused: int
    full_groups: int
    quality: float | None
    last_training_ns: int | None


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: what was found beside what is needed."""

    name: str
    met: bool
    found: float | None
    needed: float
    words: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, with all conditions; ``reason`` is empty when it is ready."""

    ready: bool
    conditions: tuple[Condition, ...]

    @property
    def reason(self) -> str:
        """Return the unmet conditions in one line."""
        return "; ".join(each.words for each in self.conditions if not each.met)


def readiness(stock: Stock, policy: ReadinessPolicy, now_ns: int) -> Readiness:
    """Compare what is there with what is needed."""
    conditions = (
        _count("trajectories", stock.unused, policy.min_trajectories, "unused trajectories"),
        _count(
            "groups",
            stock.full_groups,
            policy.min_groups,
            f"groups of at least {policy.min_group_size} trajectories",
        ),
        _quality(stock.quality, policy),
        _spacing(stock.last_training_ns, policy, now_ns),
    )
    return Readiness(all(each.met for each in conditions), conditions)


def _count(name: str, found: int, needed: int, what: str) -> Condition:
    words = f"{found:,} of {needed:,} {what}"
    if found < needed:
        words = f"{needed - found:,} more {what} are needed ({found:,} of {needed:,})"
    return Condition(name, found >= needed, found, needed, words)


def _quality(found: float | None, policy: ReadinessPolicy) -> Condition:
    needed, sample = policy.min_quality, f"the {policy.quality_sample} newest trajectories"
    if found is None:
        return Condition(
            "quality", False, None, needed, "there is no trajectory to judge the data by"
        )
    compared = "at least" if found >= needed else "less than"
    words = f"{found:.0%} of the checks of {sample} pass, {compared} {needed:.0%}"
    return Condition("quality", found >= needed, found, needed, words)


def _spacing(last_ns: int | None, policy: ReadinessPolicy, now_ns: int) -> Condition:
    needed = policy.spacing_hours
    if last_ns is None:
        return Condition("spacing", True, None, needed, "there was no training yet")
    hours = (now_ns - last_ns) / HOUR_NS
    words = f"the last training was {hours:.1f} h ago; {needed:g} h must lie between two"
    return Condition("spacing", hours >= needed, hours, needed, words)


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(
            "not a whole number",
            where=f"environment variable {name}",
            found=text,
            remedy=f"Set {name} to a whole number, or unset it",
        ) from None
