"""What a market environment is made of; the same config serves all of its views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Config, Ref
from agent_gym.core.types import ActionSpec
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.lanes import LaneSetup, Window


class DiscreteTargets(Config):
    """Action i asks for the position ``levels[i]``, as a fraction of equity."""

    kind: Literal["discrete"] = "discrete"
    levels: tuple[float, ...] = Field(default=(-1.0, 0.0, 1.0), min_length=2)

    def spec(self) -> ActionSpec:
        """Return what a role may do."""
        return ActionSpec(n=len(self.levels), levels=self.levels)


class ContinuousTargets(Config):
    """The action is the position itself, as a fraction of equity between the bounds."""

    kind: Literal["continuous"] = "continuous"
    low: float = -1.0
    high: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must lie below high")
        return self

    def spec(self) -> ActionSpec:
        """Return what a role may do."""
        return ActionSpec(low=self.low, high=self.high)


class MarketConfig(Config):
    """A market environment: where prices come from, what a role may do, what it pays and earns."""

    market: Ref = Ref(use="synthetic/btc-1h", params={"n_bars": 10_000})
    market_seed: int = Field(default=0, ge=0)
    fresh_market: bool = Field(default=False, description="new bars for every episode; worlds only")
    roles: tuple[str, ...] = Field(default=("trader",), min_length=1, description="worlds only")
    actions: Annotated[DiscreteTargets | ContinuousTargets, Field(discriminator="kind")] = (
        DiscreteTargets()
    )
    episode_bars: int | None = Field(
        default=512, ge=1, description="null: to the end of the series"
    )
    random_start: bool = True
    warmup_bars: int = Field(default=200, ge=0, description="bars before the first decision")
    features: tuple[str, ...] | None = Field(
        default=None, description="the causal features to show; null: all of them; empty: none"
    )
    account_features: tuple[str, ...] | None = Field(
        default=None,
        description="the account's own columns to show; null: all of them; environments only",
    )
    reward: Literal["log_equity", "pnl"] = Field(
        default="log_equity", description="change of log equity, or of equity over opening cash"
    )
    costs: Costs = Costs()
    account: AccountRules = AccountRules()

    def setup(
        self, *, threads: int = 1, together: bool = False, autoreset: bool = True
    ) -> LaneSetup:
        """Return how the lanes act, what they pay and earn, and which bars they cover."""
        return LaneSetup(
            costs=self.costs,
            rules=self.account,
            window=Window(self.warmup_bars, self.episode_bars, self.random_start),
            levels=self.actions.levels if isinstance(self.actions, DiscreteTargets) else None,
            linear_reward=self.reward == "pnl",
            threads=threads,
            together=together,
            autoreset=autoreset,
        )


def refuse_fields(config: MarketConfig, names: Sequence[str], *, what: str, remedy: str) -> None:
    """Raise ConfigError if a field that would change nothing here was set to another value."""
    for name in names:
        value, default = getattr(config, name), type(config).model_fields[name].default
        if value != default:
            raise ConfigError(what, where=name, found=value, expected=default, remedy=remedy)
