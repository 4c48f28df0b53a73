"""What a reflexive market is made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from agent_gym.core.clock import DAY_NS
from agent_gym.core.registry import Config, Ref
from agent_gym.envs.config import ContinuousTargets, DiscreteTargets
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.lanes import LaneSetup, Window
from agent_gym.markets.periods import parse_period


class LinearImpact(Config):
    """The price moves by ``strength`` x net flow / average daily volume, in log units.

    The flow walks the price from where it was to where it leaves it, and everyone in it pays the
    middle of the way.
    """

    kind: Literal["linear"] = "linear"
    strength: float = Field(
        default=0.05, ge=0.0, le=10.0, description="log move by a flow of a whole day's volume"
    )


class SquareRootImpact(Config):
    """The price moves by ``strength`` x sigma x sqrt(|net flow| / usual bar volume).

    Everyone in the flow pays two thirds of the way, the mean along a square root. A share of the
    move is transient: it goes back by half every ``half_life_bars``.
    """

    kind: Literal["square_root"] = "square_root"
    strength: float = Field(default=0.5, ge=0.0, le=100.0, description="in news deviations")
    transient: float = Field(default=0.5, ge=0.0, le=1.0, description="share that goes back")
    half_life_bars: float = Field(default=12.0, gt=0.0, le=1e6, description="of what goes back")


class DriftSignal(Config):
    """A number that the trader sees and that the news of the next bar lean to.

    It is an AR(1) series with variance 1; news get ``strength`` x sigma x signal on top. It is
    shown as ``signal_drift``.
    """

    strength: float = Field(default=0.1, ge=-1.0, le=1.0, description="drift in news deviations")
    memory: float = Field(default=0.95, ge=0.0, lt=1.0, description="correlation from bar to bar")


class ClusteredNews(Config):
    """News that come in calm and wild times: their log deviation is an AR(1) series.

    The mean square of the news stays that of ``sigma``.
    """

    spread: float = Field(default=0.5, gt=0.0, le=2.0, description="of the log deviation")
    memory: float = Field(default=0.98, ge=0.0, lt=1.0, description="correlation from bar to bar")


class ReflexiveConfig(Config):
    """A market whose price is moved by a crowd and by the trader's own orders.

    In each bar the log price moves by impact(net flow) + news + pull x (worth - price); worth moves
    by the same news. Without flow the price is what the market is worth: a random walk.
    """

    bars: int = Field(default=2_000, ge=1, description="decisions in an episode")
    warmup_bars: int = Field(default=200, ge=0, description="bars before the first decision")
    period: str = Field(default="1h", description="length of a bar, at most a day")
    first_price: float = Field(default=10_000.0, gt=0.0, description="in quote units")
    daily_volume: float = Field(
        default=240_000.0,
        gt=0.0,
        description="average daily volume without the crowd, in quote units at the first price",
    )
    sigma: float = Field(default=0.005, gt=0.0, le=1.0, description="deviation of a bar's news")
    clustering: ClusteredNews | None = Field(
        default=None, description="how the news change their size; null: they do not"
    )
    pull: float = Field(
        default=0.02, ge=0.0, le=1.0, description="share of the way to its worth by bar"
    )
    volume_spread: float = Field(
        default=0.3, ge=0.0, le=3.0, description="deviation of the log volume without the crowd"
    )
    impact: Annotated[LinearImpact | SquareRootImpact, Field(discriminator="kind")] = LinearImpact()
    crowd: Ref | None = Field(
        default=Ref(use="echo"), description="who trades beside the trader; null: nobody"
    )
    signal: DriftSignal | None = Field(default=None, description="what tells of news to come")
    actions: Annotated[DiscreteTargets | ContinuousTargets, Field(discriminator="kind")] = (
        DiscreteTargets()
    )
    features: tuple[str, ...] | None = Field(
        default=None, description="the causal features to show; null: all of them; empty: none"
    )
    reward: Literal["log_equity", "pnl"] = Field(
        default="log_equity", description="change of log equity, or of equity over opening cash"
    )
    costs: Costs = Field(
        default=Costs(impact=0.0, participation=None),
        description="what the venue charges; its impact is 0 because the market itself has one",
    )
    account: AccountRules = AccountRules()

    @field_validator("period")
    @classmethod
    def _known(cls, period: str) -> str:
        if not 0 < parse_period(period) <= DAY_NS:
            raise ValueError("a bar lasts a day at most, or a day's volume means nothing")
        return period

    @property
    def period_ns(self) -> int:
        """Return the length of a bar."""
        return parse_period(self.period)

    @property
    def usual_volume(self) -> float:
        """Return the volume of a usual bar in units."""
        return self.daily_units * self.period_ns / DAY_NS

    @property
    def daily_units(self) -> float:
        """Return the average daily volume in units."""
        return self.daily_volume / self.first_price

    @property
    def length(self) -> int:
        """Return how many bars are made in all."""
        return self.warmup_bars + 1 + self.bars

    def setup(self) -> LaneSetup:
        """Return how the trader acts, what it pays and earns, and which bars it plays."""
        return LaneSetup(
            costs=self.costs,
            rules=self.account,
            window=Window(self.warmup_bars, self.bars),
            levels=self.actions.levels if isinstance(self.actions, DiscreteTargets) else None,
            linear_reward=self.reward == "pnl",
            autoreset=False,
        )
