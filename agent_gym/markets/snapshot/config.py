"""What a snapshot is made of: its size, the stated law of its news, and the named scenarios."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.registry import Config
from agent_gym.markets.snapshot.law import NewsLaw

Scenario: TypeAlias = Literal["bull", "bear", "scandal", "pump-and-dump", "quiet"]
AuthorKind: TypeAlias = Literal["wire", "trader", "promoter"]
MOST_TICKS = 100_000


class Burst(Config):
    """Breaking posts in a row about the first market of a kind, or about all of them."""

    at: float = Field(gt=0.0, lt=0.9, description="when it begins, as a share of the ticks")
    posts: int = Field(default=3, ge=1, le=50)
    spacing_ticks: int = Field(default=2, ge=1, le=1_000)
    on: Literal["prediction", "perpetual"] = "perpetual"
    every_market: bool = Field(default=False, description="all markets of the kind, not the first")
    by: AuthorKind = "wire"


class SnapshotConfig(Config):
    """Size and law of a snapshot; what is not given takes the scenario's value.

    Example:
        >>> SnapshotConfig(scenario="quiet").posts_per_market
        3.0
        >>> SnapshotConfig(duration_minutes=60, tick_interval_s=60).ticks
        60
    """

    scenario: Scenario = "bull"
    duration_minutes: int = Field(default=1_800, ge=1)
    tick_interval_s: int = Field(default=900, ge=1)
    start_ns: int = Field(
        default=1_767_225_600 * SECOND_NS, ge=0, description="simulated time of tick 0, UTC"
    )
    prediction_markets: int = Field(default=3, ge=1, le=26)
    perpetual_markets: int = Field(default=2, ge=1, le=12)
    agents: int = Field(default=8, ge=4, le=40, description="other agents, who write the posts")
    posts_per_market: float = Field(default=12.0, ge=0.0, le=1_000.0, description="expected number")
    breaking_share: float = Field(default=0.05, ge=0.0, le=1.0)
    rumour_share: float = Field(default=0.3, ge=0.0, le=1.0)
    misleading_share: float = Field(
        default=0.15, ge=0.0, le=1.0, description="share of posts by authors who are wrong mostly"
    )
    report: NewsLaw = NewsLaw()
    breaking: NewsLaw = NewsLaw(delta=1.6, noise_share=0.05, jump=0.05)
    rumour: NewsLaw = NewsLaw(noise_share=0.4)
    sentiment_noise: float = Field(
        default=0.5, gt=0.0, le=5.0, description="deviation of the sentiment from the evidence"
    )
    at_once: float = Field(
        default=0.3, ge=0.0, le=1.0, description="share of a post that prices take in, unread"
    )
    half_life_ticks: float = Field(
        default=8.0, gt=0.0, description="in which readers close half of the gap"
    )
    flow_noise: float = Field(
        default=0.04, ge=0.0, le=1.0, description="noise traders in a prediction market, logit"
    )
    volatility: float = Field(
        default=0.0015, gt=0.0, le=0.1, description="of a perpetual in a tick, without news"
    )
    liquidity: float = Field(
        default=40_000.0, gt=0.0, le=1e6, description="b of the prediction markets' maker, shares"
    )
    funding_base_bps: float = Field(default=1.0, ge=-50.0, le=50.0)
    wordings: Literal["common", "other"] = Field(
        default="common", description="which phrases the posts are written in"
    )
    bursts: tuple[Burst, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_scenario(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {**SCENARIOS.get(given.get("scenario", "bull"), {}), **given}

    @model_validator(mode="after")
    def _sized(self) -> Self:
        if self.duration_minutes * 60 % self.tick_interval_s:
            raise ValueError("duration_minutes must be a whole number of ticks")
        if not 20 <= self.ticks <= MOST_TICKS:
            raise ValueError(f"a snapshot has 20 to {MOST_TICKS:,} ticks, this one {self.ticks:,}")
        if self.breaking_share + self.rumour_share > 1.0:
            raise ValueError("breaking_share and rumour_share are more than 1 together")
        return self

    @property
    def ticks(self) -> int:
        """Return the number of ticks after tick 0."""
        return self.duration_minutes * 60 // self.tick_interval_s

    @property
    def rate(self) -> float:
        """Return the share of the gap that readers close in a tick."""
        return float(1.0 - 0.5 ** (1.0 / self.half_life_ticks))

    def law(self, kind: str) -> NewsLaw:
        """Return the law of a kind of post."""
        laws = {"report": self.report, "breaking": self.breaking, "rumour": self.rumour}
        return laws[kind]


SCENARIOS: dict[str, dict[str, Any]] = {
    "bull": {
        "report": NewsLaw(up_share=0.65),
        "rumour": NewsLaw(noise_share=0.4, up_share=0.65),
        "breaking": NewsLaw(delta=1.6, noise_share=0.05, jump=0.05, up_share=0.8),
    },
    "bear": {
        "report": NewsLaw(up_share=0.4),
        "rumour": NewsLaw(noise_share=0.4, up_share=0.4),
        "breaking": NewsLaw(delta=1.6, noise_share=0.05, jump=0.1, up_share=0.04),
        "volatility": 0.002,
        "bursts": (Burst(at=0.55, posts=3, every_market=True),),
    },
    "scandal": {
        "bursts": (
            Burst(at=0.1, posts=4, spacing_ticks=3, on="prediction"),
            Burst(at=0.1, posts=4, spacing_ticks=3, on="perpetual"),
        ),
        "breaking": NewsLaw(delta=1.6, noise_share=0.05, jump=0.05, up_share=0.1),
    },
    "pump-and-dump": {
        "misleading_share": 0.3,
        "breaking": NewsLaw(delta=1.6, noise_share=0.05, jump=0.05, up_share=0.1),
        "bursts": (
            Burst(at=0.25, posts=5, spacing_ticks=1, by="promoter"),
            Burst(at=0.6, posts=5, spacing_ticks=1, by="promoter"),
            Burst(at=0.4, posts=4, spacing_ticks=2, on="prediction", by="promoter"),
        ),
    },
    "quiet": {
        "posts_per_market": 3.0,
        "breaking_share": 0.0,
        "rumour_share": 0.6,
        "report": NewsLaw(delta=0.5, noise_share=0.4, jump=0.006),
        "rumour": NewsLaw(delta=0.5, noise_share=0.6, jump=0.006),
        "flow_noise": 0.02,
        "volatility": 0.0008,
    },
}
