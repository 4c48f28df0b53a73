"""The team of the best look, kept beside the one that goes on learning.

At every look there are two to choose from: the team as it is, and its mean over the last steps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from agent_gym.agents.marl import TeamPolicy
from agent_gym.training.marl.batch import Arrays
from agent_gym.training.marl.looks import Look


class BestTeam(NamedTuple):
    """A team as it was at a look, the steps up to it, and how many of the look's starts it won.

    ``mean`` says whether it is the mean over the last steps.
    """

    policy: TeamPolicy
    env_steps: int
    wins: int
    mean: bool

    def values(self) -> dict[str, Any]:
        """Return what is no array of it."""
        return {"env_steps": self.env_steps, "wins": self.wins, "mean": self.mean}


def better(before: BestTeam | None, now: BestTeam) -> BestTeam:
    """Return who won more; of equals the later one, which has learned for longer or is steadier."""
    return now if before is None or now.wins >= before.wins else before


def best_of(kept: dict[str, Any] | None, weights: Arrays, like: TeamPolicy) -> BestTeam | None:
    """Return the best team of a checkpoint; one from before the first look has none."""
    return None if kept is None else BestTeam(like.with_weights(weights), **kept)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The team of the best look, judged from fresh starts.

    Attributes:
        env_steps: Steps up to that look.
        look_wins: How many of the look's starts it won; the largest of many, so it flatters.
        mean: Whether it is the mean of the team over the last steps.
        fresh: Greedy episodes from starts that no look has used.
        model_hash: Which policy that is.
    """

    env_steps: int
    look_wins: int
    mean: bool
    fresh: Look
    model_hash: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "env_steps": self.env_steps,
            "look_wins": self.look_wins,
            "mean": self.mean,
            "model_hash": self.model_hash,
            **asdict(self.fresh),
            "win_rate": self.fresh.interval.as_dict(),
        }
