"""What a market scenario is told: how long it lasts, what befalls the market, and the venue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from typing_extensions import override

from agent_gym.core.registry import Config
from agent_gym.evaluation.config import BacktestConfig

VENUE = BacktestConfig(max_leverage=2.0)
LARGE_ACCOUNT = BacktestConfig(max_leverage=2.0, capital=1_000_000.0)


class MarketSetting(Config, ABC):
    """What all market scenarios share.

    The hours after the warm-up are cut into as many equal parts as there are shocks; each shock
    begins at a drawn time in its part, so early that all of it fits in.
    """

    hours: float = Field(default=72.0, ge=1.0, le=24.0 * 366, description="length of the market")
    bar_minutes: Literal[1, 5, 15, 30, 60] = Field(default=5, description="period of the bars")
    warmup_hours: float = Field(default=12.0, ge=0.0, description="hours before the first shock")
    shocks: int = Field(default=2, ge=1, le=50, description="how many shocks")
    spread_of_size: float = Field(
        default=0.3, ge=0.0, lt=1.0, description="sizes are drawn up to this share off, both ways"
    )
    venue: BacktestConfig = Field(default=VENUE, description="capital, costs and limits")
    train_bars: int | None = Field(
        default=None,
        ge=100,
        le=100_000,
        description="calm bars before the first one, which an agent that learns is fitted on; "
        "null: it is played as it is",
        json_schema_extra={"acts_on": "agents that learn"},
    )

    @property
    def n_bars(self) -> int:
        """Return how many whole bars there are."""
        return int(self.hours * 60.0) // self.bar_minutes

    @property
    @abstractmethod
    def shock_minutes(self) -> float:
        """Return how long one shock lasts, its recovery included."""

    def bars(self, minutes: float) -> int:
        """Return a time in whole bars, at least one."""
        return max(1, round(minutes / self.bar_minutes))

    @property
    def first_bar(self) -> int:
        """Return the first bar in which a shock may begin; there is always one before it."""
        return max(1, round(self.warmup_hours * 60.0 / self.bar_minutes))

    @property
    def slot_bars(self) -> int:
        """Return the bars that each shock has for itself; two more follow the last one."""
        return (self.n_bars - 2 - self.first_bar) // self.shocks

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a past that is not asked for: results of before stay comparable."""
        told: dict[str, Any] = dump(self)
        if self.train_bars is None:
            told.pop("train_bars", None)
        return told

    @model_validator(mode="after")
    def _shocks_fit(self) -> Self:
        if type(self) is not MarketSetting and self.bars(self.shock_minutes) > self.slot_bars:
            raise ValueError(
                f"{self.shocks} shocks of {self.shock_minutes:g} minutes do not fit into "
                f"{self.hours:g} hours with {self.warmup_hours:g} hours of warm-up"
            )
        return self


class FlashCrashConfig(MarketSetting):
    """The price falls in a straight line (of its logarithm) and comes back in part, ever slower."""

    depth: float = Field(default=0.12, gt=0.0, lt=0.9, description="fall as a share of the price")
    fall_minutes: float = Field(default=30.0, gt=0.0)
    recovered_share: float = Field(default=0.6, ge=0.0, le=1.0, description="of the fall")
    recovery_minutes: float = Field(default=240.0, gt=0.0)
    volume_factor: float = Field(default=4.0, gt=0.0, description="on the volume while it falls")
    spread_factor: float = Field(default=20.0, gt=0.0, description="on the spread, to the end")

    @property
    @override
    def shock_minutes(self) -> float:
        """Return the time from the first fall to the end of the recovery."""
        return self.fall_minutes + self.recovery_minutes


class PriceGapConfig(MarketSetting):
    """The price jumps between a close and the next open, where nobody can trade."""

    shocks: int = Field(default=3, ge=1, le=50)
    gap: float = Field(default=0.05, gt=0.0, lt=0.9, description="jump as a share of the price")
    down_share: float = Field(default=0.7, ge=0.0, le=1.0, description="chance that it falls")
    retraced_share: float = Field(default=0.3, ge=0.0, le=1.0, description="of the gap")
    retrace_minutes: float = Field(default=180.0, gt=0.0)
    spread_factor: float = Field(default=10.0, gt=0.0, description="on the spread, to the end")

    @property
    @override
    def shock_minutes(self) -> float:
        """Return the time from the gap to the end of the retracement."""
        return self.retrace_minutes


class FundingSpikeConfig(MarketSetting):
    """Funding falls due far more often and at a far higher rate; the price does not move for it."""

    rate_bps: float = Field(default=25.0, gt=0.0, le=1_000.0, description="rate each time")
    settle_minutes: float = Field(default=60.0, gt=0.0, description="time between two settlements")
    spike_minutes: float = Field(default=720.0, gt=0.0, description="how long it lasts")
    longs_pay_share: float = Field(default=0.7, ge=0.0, le=1.0, description="else shorts pay")

    @property
    @override
    def shock_minutes(self) -> float:
        """Return how long the rates stay high."""
        return self.spike_minutes


class FeedOutageConfig(MarketSetting):
    """The agent's data stop while the venue goes on, and the price moves meanwhile.

    With a ``missing`` feed the agent is not asked and its last target stands. With a ``stale`` one
    it is shown the last row again and again, with the old time on it.
    """

    shocks: int = Field(default=3, ge=1, le=50)
    outage_minutes: float = Field(default=180.0, gt=0.0)
    feed: Literal["missing", "stale"] = "missing"
    move: float = Field(
        default=0.03, ge=0.0, lt=0.9, description="extra move during the outage, which stays"
    )
    down_share: float = Field(default=0.5, ge=0.0, le=1.0, description="chance that it falls")

    @property
    @override
    def shock_minutes(self) -> float:
        """Return how long the feed is down."""
        return self.outage_minutes


class ThinBookConfig(MarketSetting):
    """Most of the volume goes away and the spread opens; a large account must still trade."""

    venue: BacktestConfig = Field(default=LARGE_ACCOUNT, description="capital, costs and limits")
    volume_share: float = Field(default=0.005, gt=0.0, le=1.0, description="volume that is left")
    spread_factor: float = Field(default=50.0, ge=1.0)
    thin_minutes: float = Field(default=480.0, gt=0.0)

    @property
    @override
    def shock_minutes(self) -> float:
        """Return how long the book stays thin."""
        return self.thin_minutes
