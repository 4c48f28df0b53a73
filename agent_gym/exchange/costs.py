"""What trading costs and what an account may do: the two configs behind every door."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.exchange.kernel.layout import NO_CAP, Terms
from agent_gym.markets.instrument import Instrument

BPS = 1e-4
DUST = 1e-9  # trades below this share of the opening cash are not worth a row


class Costs(Config):
    """What a fill costs; each part is charged to an account of its own."""

    maker_bps: float = Field(default=5.0, ge=0.0, lt=10_000.0, description="fee of a resting order")
    taker_bps: float = Field(default=10.0, ge=0.0, lt=10_000.0, description="fee of a taking order")
    half_spread_bps: float = Field(
        default=0.5, ge=0.0, lt=5_000.0, description="used where the data hold no spread"
    )
    slippage_bps: float = Field(default=1.0, ge=0.0, lt=5_000.0)
    impact: float = Field(
        default=1.0,
        ge=0.0,
        description="price moves by impact x bar volatility x sqrt(quantity / bar volume)",
    )
    participation: float | None = Field(
        default=0.1, gt=0.0, le=1.0, description="largest share of a bar's volume; null: no limit"
    )
    latency_bars: int = Field(
        default=0, ge=0, le=1_000, description="bars a decision is on its way"
    )
    limit_on_touch: bool = Field(
        default=False, description="fill a resting limit that is touched, not only traded through"
    )
    missing_funding: Literal["refuse", "zero"] = Field(
        default="refuse",
        description="where a perpetual's funding is not known, also where it has no column: "
        "refuse the bars, or zero to trade without",
    )
    spread_from_data: bool = Field(default=True, description="use the bars' spread where known")

    @classmethod
    def free(cls) -> Costs:
        """Return a venue without any cost or limit, for tests and reference runs."""
        return cls.fees_only(0.0)

    @classmethod
    def fees_only(cls, fee_bps: float) -> Costs:
        """Return a venue that charges one fee and nothing else."""
        return cls(
            maker_bps=fee_bps,
            taker_bps=fee_bps,
            half_spread_bps=0.0,
            slippage_bps=0.0,
            impact=0.0,
            participation=None,
            spread_from_data=False,
        )


class AccountRules(Config):
    """What an account starts with and how far it may go."""

    cash: float = Field(default=10_000.0, gt=0.0, description="opening cash in quote units")
    max_leverage: float = Field(default=1.0, gt=0.0, le=200.0)
    allow_short: bool | None = Field(
        default=None, description="null: perpetuals may be sold short, spot may not"
    )
    maintenance_margin: float = Field(default=0.005, ge=0.0, lt=0.5)
    liquidation_fee_bps: float = Field(default=50.0, ge=0.0, lt=5_000.0)
    ruin: float = Field(
        default=1e-4, gt=0.0, lt=1.0, description="an episode ends below this share of the cash"
    )

    @model_validator(mode="after")
    def _margins_fit(self) -> Self:
        if self.maintenance_margin >= 1.0 / self.max_leverage:
            raise ValueError(
                "maintenance_margin must lie below 1 / max_leverage, or every full position is "
                "liquidated in the bar that opens it"
            )
        return self

    def may_short(self, instrument: Instrument) -> bool:
        """Say whether the instrument may be sold without being held."""
        return instrument.kind == "perpetual" if self.allow_short is None else self.allow_short

    def on_margin(self, instrument: Instrument) -> bool:
        """Say whether funding, margin and liquidation apply."""
        return (
            instrument.kind == "perpetual" or self.may_short(instrument) or self.max_leverage > 1.0
        )


def make_terms(costs: Costs, rules: AccountRules, instrument: Instrument) -> FloatArray:
    """Return the kernel's terms as an array in the order of ``layout.Terms``."""
    terms = Terms(
        slip=costs.slippage_bps * BPS,
        impact=costs.impact,
        maker=costs.maker_bps * BPS,
        taker=costs.taker_bps * BPS,
        cap=NO_CAP if costs.participation is None else costs.participation,
        initial=1.0 / rules.max_leverage,
        maintenance=rules.maintenance_margin,
        liquidation=rules.liquidation_fee_bps * BPS,
        min_notional=max(instrument.min_notional, DUST * rules.cash),
        lot=instrument.lot,
        per_lot=1.0 / instrument.lot if instrument.lot > 0.0 else 0.0,
        floor=-NO_CAP if rules.may_short(instrument) else 0.0,
    )
    return np.array(terms, dtype=np.float64)
