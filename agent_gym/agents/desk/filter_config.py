"""Every limit of the signal filter, with its default."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from agent_gym.core.registry import Config


class FilterConfig(Config):
    """What the filter lets through.

    Shares are of equity. ``symbols`` and ``strategies`` None means: every symbol that has a
    quote, every strategy. ``session_hours_utc`` (open, close) may go over midnight;
    ``session_days`` counts from Monday as 0. ``kelly_payoff`` is what a win brings over what a
    loss costs, by which a signal's confidence (its chance to win) is judged; None leaves the rule
    out. ``max_volatility`` bounds the standard deviation of an hour's return.
    """

    symbols: tuple[str, ...] | None = None
    strategies: tuple[str, ...] | None = None
    stale_s: float = Field(default=30.0, ge=0.0)
    future_s: float = Field(default=2.0, ge=0.0)
    session_hours_utc: tuple[float, float] | None = None
    session_days: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    near_duplicate_s: float = Field(default=5.0, ge=0.0)
    rate_limit: int = Field(default=60, ge=1)
    rate_window_s: float = Field(default=60.0, gt=0.0)
    max_exposure: float = Field(default=1.0, gt=0.0)
    max_position: float = Field(default=0.5, gt=0.0)
    max_var: float = Field(default=0.02, gt=0.0)
    max_drawdown: float = Field(default=0.15, gt=0.0, le=1.0)
    max_leverage: float = Field(default=2.0, ge=1.0)
    max_correlation: float = Field(default=0.9, gt=0.0, le=1.0)
    min_notional: float = Field(default=10.0, ge=0.0)
    kelly_payoff: float | None = Field(default=1.0, gt=0.0)
    max_spread_bp: float = Field(default=50.0, gt=0.0)
    max_volatility: float = Field(default=0.05, gt=0.0)
    max_volume_share: float = Field(default=0.1, gt=0.0)
    data_stale_s: float = Field(default=60.0, ge=0.0)
    epsilon_pass: float = Field(default=0.02, ge=0.0, le=1.0)
    audit: bool = False

    @model_validator(mode="after")
    def _session_fits(self) -> Self:
        hours = self.session_hours_utc
        if hours is not None and not all(0.0 <= hour <= 24.0 for hour in hours):
            raise ValueError("session hours lie from 0 to 24")
        if hours is not None and hours[0] == hours[1]:
            raise ValueError("a session that opens and closes at the same hour is never open")
        if not self.session_days or not set(self.session_days) <= set(range(7)):
            raise ValueError("session days are numbers from 0 (Monday) to 6")
        return self
