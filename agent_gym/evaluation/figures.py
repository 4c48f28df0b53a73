"""How figures are written for people: names, units and text, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass

from agent_gym.evaluation.metrics import Metrics

UNDEFINED = "-"
# How each figure is computed, as the page explains it; the code is in ``evaluation.metrics``.
FORMULAS = {
    "final_equity": "Cash and position at the last close.",
    "total_return": "Final equity / opening cash - 1, after all costs.",
    "growth_pct_per_year": "100 x log(final equity / opening cash) / years of 365 days.",
    "growth_bps_per_bar": "10,000 x log(final equity / opening cash) / (bars - 1).",
    "volatility": "Standard deviation of daily returns x sqrt(365); of bars if they are longer.",
    "sharpe": "Mean / standard deviation of daily returns x sqrt(365); no risk-free rate.",
    "sortino": "Mean of daily returns / root mean square of those below 0 x sqrt(365).",
    "max_drawdown": "Deepest fall of equity from its highest mark so far, over that mark.",
    "max_drawdown_days": "From the peak before the deepest fall until it was reached again, or "
    "to the end.",
    "calmar": "Compound yearly return / max drawdown.",
    "turnover_per_bar": "Value traded / equity before the trade, summed, / (bars - 1).",
    "exposure": "Mean of |position x close| / equity.",
    "time_in_market": "Share of closes with a position.",
    "fees": "Sum of the fees of all fills.",
    "slippage": "What spread, slippage and impact took: fill price against mid price x quantity.",
    "funding": "Funding paid; below 0 it was received.",
    "cost_share": "(Fees + slippage + funding) / profit before them; undefined without a profit.",
    "trades": "Number of fills, forced ones included.",
    "liquidations": "Number of forced fills.",
    "round_trips": "Number of closed round trips, matched first in, first out.",
    "hit_rate": "Closed round trips that earned money after fees / all closed round trips.",
    "profit_factor": "Money won / money lost in closed round trips, after fees.",
    "sharpe_lo": "Sharpe x Lo's factor: q / sqrt(q + 2 sum (q - k) r_k) in place of sqrt(q), r_k "
    "the autocorrelation at lag k, q = 365.",
    "psr": "Probability that the true Sharpe is above 0, with the skew and kurtosis of daily "
    "returns.",
    "var_days": "Days whose loss was held against the 99% one-day VaR known before, from the 61st "
    "day on; days without a move are left out.",
    "var_exceedances": "Days that lost more than that VaR; a right one is exceeded on 1 in 100.",
    "kupiec_p": "P-value that the VaR is exceeded as often as it says; small speaks against it.",
    "christoffersen_p": "P-value that exceedances do not follow each other; small means clusters.",
    "share_of_attainable": "Growth / growth of the known optimum on the same bars.",
}


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

    @property
    def formula(self) -> str:
        """Return how the figure is computed, in words; empty if nobody has said."""
        return FORMULAS.get(self.name, "")

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
    Figure("sharpe_lo", "Sharpe, autocorrelation"),
    Figure("psr", "Sharpe above 0, probability", "%", 100.0, digits=1),
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
    Figure("var_days", "days judged by VaR"),
    Figure("var_exceedances", "VaR exceedances"),
    Figure("kupiec_p", "VaR frequency, p", digits=3),
    Figure("christoffersen_p", "VaR clusters, p", digits=3),
    Figure("share_of_attainable", "of the attainable", "%", 100.0, digits=1),
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
