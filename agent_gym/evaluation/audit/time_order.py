"""Checks: is time turned round more profitable, and is a column that knows the next return used?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.audit.changed_bars import turned_round
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, unchecked, warning
from agent_gym.evaluation.audit.stream import (
    Stream,
    WithColumn,
    are_targets,
    differing,
    record,
    targets_of,
)
from agent_gym.evaluation.audit.subject import Subject, moves_after, next_returns
from agent_gym.rollouts.play import attempt

NO_TARGETS = "The actions of this world are not target positions, so no return follows from them."
BP = 1e4


class TimeReversalConfig(Config):
    """How sure the check must be."""

    t_value: float = Field(default=3.3, gt=0, description="standard errors, one in 2,000 by chance")
    block_bars: int = Field(default=24, ge=1, description="bars that count as one observation")


@register("check", "time-reversal", TimeReversalConfig)
class TimeReversal:
    """Plays the same returns in reverse order: no honest agent does much better there."""

    looks_for = "an agent that earns more when time runs backwards"
    wants_agent = True

    def __init__(self, config: TimeReversalConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare what is earned before costs, forwards and backwards."""
        if not are_targets(subject.stream.start.actions):
            yield unchecked(NO_TARGETS)
            return
        backwards = turned_round(subject.bars)
        ahead = _gross(subject.stream, subject.next_returns)
        behind = _gross(subject.play(backwards), next_returns(backwards))
        forward, reverse = self._blocks(ahead), self._blocks(behind)
        n = min(len(forward), len(reverse))
        if n < 4:
            yield unchecked("There are too few bars to compare both directions.", blocks=n)
            return
        own = _t_value(reverse.mean(), _error(reverse))
        apart = _t_value(
            reverse.mean() - forward.mean(), math.hypot(_error(reverse), _error(forward))
        )
        figures = {
            "forward_bp_per_bar": float(ahead.mean() * BP),
            "reverse_bp_per_bar": float(behind.mean() * BP),
            "t_of_difference": apart,
        }
        if min(own, apart) > self._config.t_value:
            yield warning(
                "Before costs it earns clearly more when the same returns come in reverse order: "
                "something it reads belongs to another bar than it says, or it has learned this "
                "very path.",
                "Check how the columns are aligned in time and what it was fitted on; then audit "
                "on other bars",
                **figures,
            )
        else:
            yield fine("Turning time round does not pay.", **figures)

    def _blocks(self, gains: FloatArray) -> FloatArray:
        size = self._config.block_bars
        n = len(gains) // size
        blocks: FloatArray = gains[: n * size].reshape(n, size).mean(axis=1)
        return blocks


class LeakCanaryConfig(Config):
    """How sure the check must be."""

    t_value: float = Field(default=4.0, gt=0, description="standard errors of the gain")


@register("check", "leak-canary", LeakCanaryConfig)
class LeakCanary:
    """Offers a column that holds the next return, and one that holds noise."""

    looks_for = "an agent that makes use of a leak when one is offered"
    wants_agent = True
    column = "next_return"

    def __init__(self, config: LeakCanaryConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare decisions beside the leak with decisions beside the same numbers, shuffled."""
        leak = subject.next_returns
        noise = Seeds(subject.seed).child("audit", "canary").rng().permutation(list(leak.values()))
        refused: list[str] = []
        plain = dict(zip(leak, noise.tolist(), strict=True))
        leaking = self._play(subject, dict(leak), refused)
        shuffled = self._play(subject, plain, refused)
        if leaking is None or shuffled is None:
            yield fine(
                "It refuses a world with one column more than it was made for, so a leak in a new "
                f"column cannot reach it ({refused[0]})."
            )
            return
        changed = differing(leaking.decisions, shuffled.decisions)
        if not changed:
            yield fine(
                f"A column {self.column} that holds the next return was offered and not used.",
                decisions=len(leaking.steps),
            )
            return
        yield self._judge(subject, leaking, shuffled, len(changed))

    def _play(
        self, subject: Subject, values: dict[int, float], refused: list[str]
    ) -> Stream | None:
        played: list[Stream] = []

        def offer() -> None:
            world = WithColumn(subject.world(subject.bars), self.column, values)
            played.append(record(world, subject.ready(), subject.seed))

        status, failure = attempt(offer)
        if status == "interrupted":
            raise KeyboardInterrupt
        if failure is not None:
            refused.append(f"{failure['error']}: {failure['what']}")
        return played[0] if played else None

    def _judge(self, subject: Subject, leaking: Stream, shuffled: Stream, n: int) -> Finding:
        share = n / len(leaking.steps)
        if not are_targets(leaking.start.actions):
            return note("It reads columns that it does not name.", changed_share=share)
        following = subject.next_returns
        gain, without = _gross(leaking, following), _gross(shuffled, following)
        size = min(len(gain), len(without))
        extra = gain[:size] - without[:size]
        t_value = _t_value(extra.mean(), _error(extra))
        figures = {
            "changed_share": share,
            "gain_bp_per_bar": float(extra.mean() * BP),
            "t": t_value,
        }
        if t_value > self._config.t_value:
            return error(
                "It takes whatever column it is offered, and trades on one that holds the next "
                "return. A leak in the data would become its profit without a word.",
                "Name the columns it reads and take no others",
                **figures,
            )
        return note("It reads columns that it does not name, without profit here.", **figures)


def _gross(stream: Stream, following: Mapping[int, float]) -> FloatArray:
    moves = moves_after(stream, following)
    return targets_of(stream) * moves


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def _t_value(mean: float, deviation: float) -> float:
    return float(mean / deviation) if deviation > 0.0 else 0.0
