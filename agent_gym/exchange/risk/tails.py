"""Risk parts that bound the one-day tail loss of a target, on the side that it takes."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.exchange.risk.view import Cap, RiskView, WhenUnknown, limited, unknown

NO_TAIL = "too little history for a tail loss"


class VarConfig(Config):
    """Parameters of the Value-at-Risk bound."""

    limit: float = Field(default=0.02, gt=0.0, description="one-day VaR, fraction of equity")
    when_unknown: WhenUnknown = "flat"


class VarCap:
    """Bounds a target so that its one-day VaR stays within the limit."""

    name = "var"

    def __init__(self, config: VarConfig) -> None:
        self._config = config

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return the target within limit / VaR of one unit on its side."""
        if view.tail is None:
            return unknown(self.name, target, self._config.when_unknown, NO_TAIL)
        loss = view.tail.var_long if target > 0.0 else view.tail.var_short
        bound = self._config.limit / loss if loss > 0.0 else float("inf")
        return limited(self.name, target, bound, "one-day VaR limit")


class EsConfig(Config):
    """Parameters of the expected-shortfall bound."""

    limit: float = Field(default=0.03, gt=0.0, description="one-day ES, fraction of equity")
    when_unknown: WhenUnknown = "flat"


class EsCap:
    """Bounds a target so that its one-day expected shortfall stays within the limit."""

    name = "es"

    def __init__(self, config: EsConfig) -> None:
        self._config = config

    def cap(self, target: float, view: RiskView) -> Cap:
        """Return the target within limit / ES of one unit on its side."""
        if view.tail is None:
            return unknown(self.name, target, self._config.when_unknown, NO_TAIL)
        loss = view.tail.es_long if target > 0.0 else view.tail.es_short
        bound = self._config.limit / loss if loss > 0.0 else float("inf")
        return limited(self.name, target, bound, "one-day ES limit")
