"""Fresh greedy episodes of a trained model, and what they say of it with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_gym.core.files import write_text
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import Interval, seeds_interval, wilson
from agent_gym.training.rl.episodes import mean_reward, play_episodes
from agent_gym.training.rl.export import TrainedModel
from agent_gym.training.rl.result import Episode
from agent_gym.training.rl.seeding import SeedManager

SHOWN = 5
LEAST = 2  # episodes, for an interval
CHOSEN_BY = 1_000  # evaluations of training may have had so many seeds


@dataclass(frozen=True, slots=True)
class Played:
    """What episodes say of a model."""

    episodes: tuple[Episode, ...]
    mean: float
    interval: Interval | None
    share: Interval
    threshold: float

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for ``--json``."""
        rewards = [each.reward for each in self.episodes]
        ranked = ranked_by_reward(self.episodes)
        return {
            "episodes": len(rewards),
            "mean": self.mean,
            "low": None if self.interval is None else self.interval.low,
            "high": None if self.interval is None else self.interval.high,
            "level": None if self.interval is None else self.interval.level,
            "deviation": _deviation(rewards),
            "mean_length": math.fsum(each.length for each in self.episodes) / len(rewards),
            "threshold": self.threshold,
            "share": self.share.estimate,
            "share_low": self.share.low,
            "share_high": self.share.high,
            "worst": [each._asdict() for each in ranked[:SHOWN]],
            "best": [each._asdict() for each in ranked[::-1][:SHOWN]],
        }


def judge(model: TrainedModel, episodes: int, seed: int, threshold: float) -> Played:
    """Play fresh episodes, none of them one by which the model was chosen.

    Args:
        model: Who plays.
        episodes: How many.
        seed: Decides which.
        threshold: The share of episodes at or above it is told.
    """
    seeds = fresh_seeds(model.seed, seed, episodes)
    played = play_episodes(model.policy, model.judged_in, seeds, step=model.policy.card.step)
    rewards = [each.reward for each in played]
    interval = None
    if len(rewards) >= LEAST:
        interval = seeds_interval(rewards, Seeds(seed).child("evaluate model"))
    above = sum(reward >= threshold for reward in rewards)
    return Played(
        tuple(played), mean_reward(played), interval, wilson(above, len(rewards)), threshold
    )


def fresh_seeds(trained_with: int, seed: int, n: int) -> list[int]:
    """Return different seeds of episodes, none of which has chosen or judged the model before.

    Example:
        >>> fresh_seeds(0, 0, 3) == fresh_seeds(0, 0, 5)[:3]
        True
    """
    known = SeedManager(trained_with)
    used = {*known.evaluation_seeds(CHOSEN_BY), *known.final_seeds(CHOSEN_BY)}
    rng, found = Seeds(seed).child("evaluate model", "episodes").rng(), dict[int, None]()
    while len(found) < n:
        drawn = int(rng.integers(2**31 - 1))
        if drawn not in used:
            found[drawn] = None
    return list(found)


def write_episodes(path: Path, episodes: Sequence[Episode]) -> None:
    """Write every episode, so that all figures can be made again."""
    rows = [",".join(Episode._fields)]
    rows += [f"{each.step},{each.seed},{each.reward!r},{each.length}" for each in episodes]
    write_text(path, "\n".join(rows) + "\n")


def ranked_by_reward(episodes: Sequence[Episode]) -> list[Episode]:
    """Return episodes from the worst to the best."""
    return sorted(episodes, key=lambda each: (each.reward, each.seed))


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(1, len(values) - 1))
