"""Whether what a model is evaluated on lies apart in time from what it was trained on."""

from __future__ import annotations

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.quality import format_time
from agent_gym.markets.source import open_market

RECORDED = ("file", "exchange")
"""Markets that a seed changes nothing of: the past is what it was."""


def require_other_span(trained: Ref, tested: Ref) -> bool:
    """Return whether the market is recorded; raise ConfigError if it is and the spans overlap."""
    if tested.use not in RECORDED:
        return False
    if trained == tested:
        raise ConfigError(
            "evaluation needs another span of this recorded market than training",
            where="evaluation.env_params",
            found=f"market {tested.use} with the same start and end",
            remedy="Write market: {params: {start: ..., end: ...}} in evaluation.env_params, "
            "and an end before that in env_params",
        )
    if trained.use in RECORDED:
        one, other = open_market(trained, Seeds(0)), open_market(tested, Seeds(0))
        if one.instrument == other.instrument and _overlap(one, other):
            raise ConfigError(
                "evaluation overlaps with training in time",
                where="evaluation.env_params",
                found=f"{_span(other)}, trained on {_span(one)}",
                remedy="Choose start and end so that no bar is in both",
            )
    return True


def _overlap(one: Bars, other: Bars) -> bool:
    return bool(one.ts[0] <= other.ts[-1] and other.ts[0] <= one.ts[-1])


def _span(bars: Bars) -> str:
    return f"{format_time(int(bars.ts[0]))} to {format_time(int(bars.ts[-1]))}"
