"""The last risk part: what the account may hold at all, whatever the others say."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.exchange.risk.view import Cap, RiskView, limited


class LimitConfig(Config):
    """Limits on the position; None means that there is no such limit."""

    max_leverage: float | None = Field(default=1.0, gt=0.0, description="fraction of equity")
    max_notional: float | None = Field(default=None, gt=0.0, description="quote units")
    max_units: float | None = Field(default=None, gt=0.0, description="base units")
    allow_short: bool = True


class PositionLimit:
    """Bounds a target by leverage, by value and by size; forbids shorts where asked to."""

    name = "limit"

    def __init__(self, config: LimitConfig) -> None:
        self._config = config

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return the target within the tightest limit; a ruined account holds nothing."""
        config = self._config
        if view.equity <= 0.0:
            return limited(self.name, target, 0.0, "no equity is left")
        if target < 0.0 and not config.allow_short:
            return limited(self.name, target, 0.0, "shorts are forbidden")
        bound, reason = float("inf"), "no limit"
        if config.max_leverage is not None:
            bound, reason = config.max_leverage, "leverage limit"
        if config.max_notional is not None and config.max_notional < bound * view.equity:
            bound, reason = config.max_notional / view.equity, "notional limit"
        if config.max_units is not None and config.max_units * view.mark < bound * view.equity:
            bound, reason = config.max_units * view.mark / view.equity, "unit limit"
        return limited(self.name, target, bound, reason)
