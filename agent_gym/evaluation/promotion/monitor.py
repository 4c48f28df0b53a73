"""The watch over a rollout: is the challenger worse than the champion? Valid at every look.

Differences (challenger less champion, on the same episode) are bet against, in the direction of
harm. Two kinds of bets are kept, each a mixture over stakes, and harm is shown only when both have
won 1 / alpha:

- ``exp(u) / cosh(u)``, stakes from a normal mixture: it cannot win in the long run against
  differences that are symmetric about the margin, whatever their size or tails;
- ``1 + u``, small stakes: it cannot win against any law whose mean is at the margin, skewed or not,
  as long as gains stay below two and a half times the scale. Larger ones wipe out the larger
  stakes, and what that costs in validity is measured (see power.py).

By Ville's inequality the chance of ever rolling back a challenger that is no worse is at most alpha
if either holds, however often one looks. Bounds of the mean are found by asking the same of every
margin: that is a confidence sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field
from scipy.special import ndtri

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config, configure
from agent_gym.core.types import FloatArray

Action: TypeAlias = Literal["keep", "roll_back"]
FORMAT = "agent_gym.monitor/1"
STAKES = 16
SPREAD = 0.4  # of the normal mixture, in units of 1 / scale
SMALL_STAKES = np.array([0.1, 0.2, 0.3, 0.4])
NORMAL_STAKES = SPREAD * ndtri(0.5 + (np.arange(STAKES) + 0.5) / (2 * STAKES))
LOST = 1e-12  # what is left of a bet that a huge gain has wiped out
BISECTIONS = 60


class MonitorPolicy(Config):
    """What the watch promises.

    Attributes:
        alpha: Chance of ever rolling back a challenger that is no worse than the margin.
        margin: Return of an episode by which it may be worse.
    """

    alpha: float = Field(default=0.01, gt=0.0, lt=1.0)
    margin: float = Field(default=0.0, ge=0.0)


@dataclass(frozen=True, slots=True)
class MonitorDecision:
    """What to do now, and why.

    Attributes:
        action: "roll_back" once harm was shown; it is never taken back.
        pairs: Episodes seen.
        evidence: How much the bets on harm have won at most; 1 / alpha shows harm.
        words: The decision in words with its numbers.
    """

    action: Action
    pairs: int
    evidence: float
    words: str


@dataclass(frozen=True, slots=True)
class Monitor:
    """The watch after some episodes; adding one gives another watch.

    Attributes:
        scale: About the standard deviation of a difference, known beforehand (from the sealed
            pairs). A wrong one costs episodes, not validity for symmetric differences.
        policy: What is promised.
        differences: Challenger less champion, in order.
        wealth: Logarithm of what each stake has won: those of the mixture, then the small ones.
        most: Largest logarithm of the evidence so far.
    """

    scale: float
    policy: MonitorPolicy
    differences: tuple[float, ...] = ()
    wealth: tuple[float, ...] = (0.0,) * (STAKES + SMALL_STAKES.size)
    most: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.scale < math.inf:
            raise DataError(
                "a scale is a finite number above 0",
                found=self.scale,
                remedy="Take the standard deviation of the sealed differences",
            )

    @classmethod
    def start(cls, scale: float, policy: MonitorPolicy | None = None) -> Monitor:
        """Return a watch that has seen nothing yet."""
        return cls(scale, policy or MonitorPolicy())

    def add(self, champion: float, challenger: float) -> Monitor:
        """Return the watch after one more episode that both sides have played."""
        difference = challenger - champion
        if not math.isfinite(difference):
            raise DataError("a return is a finite number", found=(champion, challenger))
        harm = np.array([-(difference + self.policy.margin) / self.scale])
        wealth = np.asarray(self.wealth) + _won(harm)
        return replace(
            self,
            differences=(*self.differences, difference),
            wealth=tuple(wealth.tolist()),
            most=max(self.most, _evidence(wealth)),
        )

    @property
    def harm_shown(self) -> bool:
        """Return whether the evidence of harm has ever reached what it takes."""
        return self.most >= -math.log(self.policy.alpha)

    def decision(self) -> MonitorDecision:
        """Return whether to keep the challenger or to roll it back."""
        pairs, needed, harm = len(self.differences), 1.0 / self.policy.alpha, self.harm_shown
        mean = f"{math.fsum(self.differences) / pairs:+.6g}" if pairs else "unknown"
        won = math.exp(min(self.most, 700.0))
        words = (
            f"{'roll back' if harm else 'keep'}: {pairs} paired episodes, mean difference {mean}, "
            f"evidence of harm {won:.4g} {'reached' if harm else 'is below'} {needed:.4g}"
        )
        return MonitorDecision("roll_back" if harm else "keep", pairs, won, words)

    def interval(self) -> tuple[float, float]:
        """Return bounds of the mean difference, each valid at every look with 1 - alpha.

        Example:
            >>> watch = Monitor.start(scale=1.0)
            >>> for value in [-0.9, -1.1] * 20:
            ...     watch = watch.add(champion=0.0, challenger=value)
            >>> low, high = watch.interval()
            >>> low < -1.0 < high < 0.0, watch.decision().action
            (True, 'roll_back')
        """
        seen = np.asarray(self.differences) / self.scale
        if seen.size == 0:
            return -math.inf, math.inf
        high, low = self._bound(seen), -self._bound(-seen)
        return low * self.scale, high * self.scale

    def _bound(self, seen: FloatArray) -> float:
        """Return the largest mean that the bets on less have not yet refuted."""
        needed = math.log(1.0 / self.policy.alpha)
        inside, outside = float(seen.min()) - 1.0, float(seen.max()) + 1.0
        while _evidence(_won(outside - seen)) < needed:
            outside += 2.0 * (outside - inside)
            if outside - inside > 1e9:
                return math.inf
        for _ in range(BISECTIONS):
            middle = 0.5 * (inside + outside)
            if _evidence(_won(middle - seen)) < needed:
                inside = middle
            else:
                outside = middle
        return outside

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values; read back it goes on with the same bits."""
        return {
            "format": FORMAT,
            "scale": self.scale,
            "policy": self.policy.model_dump(mode="json"),
            "differences": list(self.differences),
            "wealth": list(self.wealth),
            "most": self.most,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Monitor:
        """Return the watch that was written."""
        try:
            if values["format"] != FORMAT:
                raise ValueError(f"format {values['format']}")
            watch = cls(
                scale=float(values["scale"]),
                policy=configure(MonitorPolicy, values["policy"], where="monitor"),
                differences=tuple(map(float, values["differences"])),
                wealth=tuple(map(float, values["wealth"])),
                most=float(values["most"]),
            )
            if len(watch.wealth) != STAKES + SMALL_STAKES.size:
                raise ValueError(f"{len(watch.wealth)} stakes")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError("this is no state of a monitor", found=str(error)) from error
        return watch


def _won(harm: FloatArray) -> FloatArray:
    """Return the logarithm of what each stake wins on all of some harms (in units of scale)."""
    bets = NORMAL_STAKES[:, None] * harm
    symmetric = bets - (np.logaddexp(bets, -bets) - math.log(2.0))
    small = np.log(np.maximum(1.0 + SMALL_STAKES[:, None] * harm, LOST))
    return np.asarray(np.concatenate([symmetric.sum(axis=1), small.sum(axis=1)]))


def _evidence(wealth: FloatArray) -> float:
    """Return the logarithm of what both mixtures have won, the poorer of the two."""
    mixture, small = wealth[:STAKES], wealth[STAKES:]
    return min(
        float(np.logaddexp.reduce(mixture)) - math.log(STAKES),
        float(np.logaddexp.reduce(small)) - math.log(small.size),
    )
