"""Risk parts that trust a target only as far as the agent's own forecast supports it."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.exchange.risk.view import Cap, RiskView, WhenUnknown, limited, unknown

NO_FORECAST = "the agent gave no forecast"
AGAINST_FORECAST = "the forecast does not point this way"


class ConfidenceConfig(Config):
    """Parameters of the shrinkage by the lower confidence bound."""

    z: float = Field(default=1.0, ge=0.0, description="standard errors taken off the forecast")
    when_unknown: WhenUnknown = "pass"


class ConfidenceShrink:
    """Scales a target by the share of its forecast that survives ``z`` standard errors.

    A target against the forecast keeps nothing.
    """

    name = "confidence"

    def __init__(self, config: ConfidenceConfig) -> None:
        self._config = config

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return target * max(0, edge - z * se) / edge, where edge points the target's way."""
        forecast = _edge(target, view)
        if forecast is None:
            return unknown(self.name, target, self._config.when_unknown, NO_FORECAST)
        edge, error = forecast
        kept = max(0.0, edge - self._config.z * error) / edge if edge > 0.0 else 0.0
        reason = "the forecast less its error" if edge > 0.0 else AGAINST_FORECAST
        return limited(self.name, target, abs(target) * kept, reason)


class KellyConfig(Config):
    """Parameters of the fractional Kelly bound."""

    fraction: float = Field(default=0.25, gt=0.0, le=1.0, description="share of the Kelly bet")
    z: float = Field(default=1.0, ge=0.0, description="standard errors taken off the forecast")
    max_fraction: float = Field(default=1.0, gt=0.0, description="bound whatever the forecast")
    when_unknown: WhenUnknown = "pass"


class KellyCap:
    """Bounds a target by fraction * max(0, edge - z * se) / sigma^2, and by ``max_fraction``."""

    name = "kelly"

    def __init__(self, config: KellyConfig) -> None:
        self._config = config

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return the target within the Kelly bet on its own side; none if the edge points away."""
        config = self._config
        forecast = _edge(target, view)
        if forecast is None:
            return unknown(self.name, target, config.when_unknown, NO_FORECAST)
        edge, error = forecast
        sure = max(0.0, edge - config.z * error)
        variance = view.sigma * view.sigma
        if variance > 0.0:
            bet = min(config.fraction * sure / variance, config.max_fraction)
        else:
            bet = config.max_fraction if sure > 0.0 else 0.0
        reason = "a fraction of the Kelly bet" if edge > 0.0 else AGAINST_FORECAST
        return limited(self.name, target, bet, reason)


def _edge(target: float, view: RiskView) -> tuple[float, float] | None:
    """Return the forecast in the direction of the target, and its standard error."""
    if view.expected_return is None or view.expected_return_se is None:
        return None
    sign = 1.0 if target > 0.0 else -1.0
    return sign * view.expected_return, view.expected_return_se
