"""How figures are written for people: names, units and text, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.evaluation.metrics import Metrics

UNDEFINED = "-"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a table; ``scale`` turns the stored number into its unit."""

    name: str
    label: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 2

    @property
    def heading(self) -> str:
        """Return label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def text(self, metrics: Metrics) -> str:
        """Return the figure as text; undefined is a dash, never 0.

        Example:
            >>> Figure("x", "return", "%", 100.0).format(0.0123), Figure("x", "hits").format(None)
            ('1.23', '-')
        """
        return self.format(getattr(metrics, self.name))

    def format(self, value: float | int | None) -> str:
        """Return a value of this figure as text."""
        if value is None:
            return UNDEFINED
        if isinstance(value, int):
            return f"{value:,}"
        text = f"{value * self.scale:,.{self.digits}f}"
        return text.removeprefix("-") if not text.strip("-0.,") else text


FIGURES = (
    Figure("final_equity", "final equity", "quote"),
    Figure("total_return", "return", "%", 100.0),
    Figure("growth_pct_per_year", "growth", "%/yr"),
    Figure("growth_bps_per_bar", "growth", "bp/bar", digits=3),
    Figure("volatility", "volatility", "%/yr", 100.0),
    Figure("sharpe", "Sharpe"),
    Figure("sortino", "Sortino"),
    Figure("max_drawdown", "max drawdown", "%", 100.0),
    Figure("max_drawdown_days", "its length", "days", digits=1),
    Figure("calmar", "Calmar"),
    Figure("turnover_per_bar", "turnover", "%/bar", 100.0, digits=3),
    Figure("exposure", "exposure", "%", 100.0, digits=1),
    Figure("time_in_market", "in the market", "%", 100.0, digits=1),
    Figure("fees", "fees", "quote"),
    Figure("slippage", "slippage", "quote"),
    Figure("funding", "funding", "quote"),
    Figure("cost_share", "costs of gross profit", "%", 100.0, digits=1),
    Figure("trades", "trades"),
    Figure("liquidations", "liquidations"),
    Figure("round_trips", "closed round trips"),
    Figure("hit_rate", "hit rate", "%", 100.0, digits=1),
    Figure("profit_factor", "profit factor"),
)
# What fits eighty columns of a terminal; the rest is on the page and in the JSON.
SHORT_FIGURES = (
    Figure("total_return", "return %", scale=100.0),
    Figure("sharpe", "Sharpe"),
    Figure("max_drawdown", "max DD %", scale=100.0, digits=1),
    Figure("trades", "trades"),
    Figure("hit_rate", "hit %", scale=100.0, digits=1),
    Figure("fees", "fees", digits=0),
)
