"""What a backtest is run with; every field acts, or the config is refused."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from agent_gym.core.registry import Config
from agent_gym.core.types import ActionSpec
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.risk import DrawdownConfig, RiskConfig
from agent_gym.markets.instrument import Instrument

_COSTS = Costs()
_ACCOUNT = AccountRules()
_BREAKER = DrawdownConfig()


class TradingTerms(Config):
    """What an account begins with, and what trading costs it."""

    capital: float = Field(
        default=_ACCOUNT.cash, gt=0.0, le=1e15, description="opening cash in quote units"
    )
    taker_bps: float = Field(
        default=_COSTS.taker_bps, ge=0.0, lt=10_000.0, description="fee of a taking fill"
    )
    maker_bps: float = Field(
        default=_COSTS.maker_bps, ge=0.0, lt=10_000.0, description="fee of a resting fill"
    )
    slippage_bps: float = Field(
        default=_COSTS.slippage_bps, ge=0.0, lt=5_000.0, description="price lost by taking"
    )
    half_spread_bps: float = Field(
        default=_COSTS.half_spread_bps,
        ge=0.0,
        lt=5_000.0,
        description="half the spread, where the data hold none",
    )
    impact: float = Field(
        default=_COSTS.impact,
        ge=0.0,
        description="price moves by impact x bar volatility x sqrt(quantity / bar volume)",
    )
    participation: float | None = Field(
        default=_COSTS.participation,
        gt=0.0,
        le=1.0,
        description="largest share of a bar's volume; null: no limit",
    )

    def costs(self) -> Costs:
        """Return what trading costs."""
        return Costs(
            taker_bps=self.taker_bps,
            maker_bps=self.maker_bps,
            half_spread_bps=self.half_spread_bps,
            slippage_bps=self.slippage_bps,
            impact=self.impact,
            participation=self.participation,
        )

    def backtest(self) -> BacktestConfig:
        """Return the same for backtests, which take and never rest."""
        shared = {name: getattr(self, name) for name in TradingTerms.model_fields}
        return BacktestConfig(**shared | {"maker_bps": _COSTS.maker_bps})


class BacktestConfig(TradingTerms):
    """Capital, costs, limits and risk parts; a risk part that is null is absent.

    Targets are traded by taking, so ``maker_bps`` acts with ``maker_share`` alone.
    """

    maker_share: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="share of the volume that is charged the maker fee, which acts with it alone",
    )
    latency_bars: int = Field(
        default=_COSTS.latency_bars, ge=0, le=1_000, description="bars a decision is on its way"
    )
    missing_funding: Literal["refuse", "zero"] = Field(
        default=_COSTS.missing_funding,
        description="where a perpetual's funding is not known: refuse, or zero to trade without",
    )
    max_leverage: float = Field(
        default=_ACCOUNT.max_leverage,
        gt=0.0,
        le=200.0,
        description="largest position as a fraction of equity",
    )
    allow_short: bool | None = Field(
        default=_ACCOUNT.allow_short,
        description="null: perpetuals may be sold short, spot may not",
    )
    position_size: float = Field(
        default=1.0, gt=0.0, le=200.0, description="scale on every target of the agent"
    )
    kelly_fraction: float | None = Field(
        default=None, gt=0.0, le=1.0, description="hold at most this share of the Kelly bet"
    )
    var_limit: float | None = Field(
        default=None, gt=0.0, description="one-day 99 % value at risk, fraction of equity"
    )
    es_limit: float | None = Field(
        default=None, gt=0.0, description="one-day 99 % expected shortfall, fraction of equity"
    )
    max_drawdown: float | None = Field(
        default=None,
        gt=0.0,
        lt=1.0,
        description="flat for good at this drawdown; exposure shrinks from a third of it on",
    )

    @model_validator(mode="after")
    def _maker_fee_acts(self) -> Self:
        if self.maker_share == 0.0 and self.maker_bps != _COSTS.maker_bps:
            raise ValueError(
                "maker_bps changes nothing while maker_share is 0: targets are traded by taking"
            )
        return self

    @override
    def costs(self) -> Costs:
        """Return what trading costs; the fee is the mean of both, weighted by the maker share."""
        taken = self.taker_bps * (1.0 - self.maker_share) + self.maker_bps * self.maker_share
        own = {"latency_bars": self.latency_bars, "missing_funding": self.missing_funding}
        return super().costs().model_copy(update=own | {"taker_bps": taken})

    def account(self) -> AccountRules:
        """Return what the account starts with and how far it may go."""
        return AccountRules(
            cash=self.capital, max_leverage=self.max_leverage, allow_short=self.allow_short
        )

    def bounds(self, instrument: Instrument) -> ActionSpec:
        """Return the targets that the account can hold, as fractions of equity."""
        short = self.account().may_short(instrument)
        return ActionSpec(low=-self.max_leverage if short else 0.0, high=self.max_leverage)

    def risk(self) -> RiskConfig | None:
        """Return the risk parts that were asked for, None without any.

        A part that lacks its numbers holds nothing: a backtest must not look safe by accident.
        """
        asked = (self.kelly_fraction, self.var_limit, self.es_limit, self.max_drawdown)
        if all(part is None for part in asked):
            return None
        ratio = _BREAKER.soft_drawdown / _BREAKER.max_drawdown
        return RiskConfig(
            confidence_z=None,
            kelly_fraction=self.kelly_fraction,
            max_kelly_bet=self.max_leverage,
            var_limit=self.var_limit,
            es_limit=self.es_limit,
            max_drawdown=self.max_drawdown,
            soft_drawdown=0.0 if self.max_drawdown is None else ratio * self.max_drawdown,
            limits=None,
            without_forecast="flat",
            without_history="flat",
        )
