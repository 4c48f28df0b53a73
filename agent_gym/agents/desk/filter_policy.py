"""Rules of the house: whether the desk may trade at all, and how much risk it may take.

A trade that does not make the position larger passes the limits on size; what only closes a
position passes the drawdown breaker too. So a limit that is broken can always be mended by
trading, and a larger amount never passes where a smaller one was refused for its size.
"""

from __future__ import annotations

from math import isfinite, isnan, sqrt

from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.rejections import RejectCode

TAIL_Z = 2.326  # one of a hundred days, under the normal law
_DAY_OF_HOURS = sqrt(24.0)


def kill_switch(case: Case) -> str | None:
    """Refuse everything while the kill switch is on."""
    return "kill switch" if case.view.kill_switch else None


def maintenance(case: Case) -> str | None:
    """Refuse everything while the desk is under maintenance."""
    return "maintenance" if case.view.maintenance else None


def config_error(case: Case) -> str | None:
    """Refuse everything while the account or the clock cannot be right."""
    if isnan(case.equity):
        return f"equity is {case.view.holdings.equity:g}"
    return None if isfinite(case.position) else f"position is {case.position:g}"


def drawdown_breaker(case: Case) -> str | None:
    """Refuse what opens a position while the loss from the peak is at its limit."""
    drawdown = case.view.holdings.drawdown
    if drawdown < case.config.max_drawdown or not case.opens:
        return None
    return f"drawdown {drawdown:.4g}; limit {case.config.max_drawdown:g}"


def min_notional(case: Case) -> str | None:
    """Refuse an order that is too small to be worth its fees."""
    if case.price is None or case.notional >= case.config.min_notional:
        return None
    return f"notional {case.notional:.6g}; minimum {case.config.min_notional:g}"


def exposure_limit(case: Case) -> str | None:
    """Refuse what brings gross notional over equity above its limit."""
    after = case.view.holdings.exposure + case.added / case.equity
    if case.added == 0.0 or after <= case.config.max_exposure:
        return None
    return f"exposure would be {after:.6g}; limit {case.config.max_exposure:g}"


def position_limit(case: Case) -> str | None:
    """Refuse what brings one symbol above its share of equity."""
    if case.added == 0.0 or case.price is None:
        return None
    share = (abs(case.position) * case.price + case.added) / case.equity
    if share <= case.config.max_position:
        return None
    return f"position would be {share:.6g} of equity; limit {case.config.max_position:g}"


def var_limit(case: Case) -> str | None:
    """Refuse what brings the value at risk above its limit; the new part is simply added."""
    if case.added == 0.0 or case.quote is None:
        return None
    tail = TAIL_Z * case.quote.volatility * _DAY_OF_HOURS
    after = case.view.holdings.value_at_risk + tail * case.added / case.equity
    if after <= case.config.max_var:
        return None
    return f"value at risk would be {after:.6g}; limit {case.config.max_var:g}"


def leverage(case: Case) -> str | None:
    """Refuse what would be bought with too much borrowed money."""
    borrowed = max(0.0, case.added - max(0.0, case.view.holdings.cash))
    after = 1.0 + borrowed / case.equity
    if case.added == 0.0 or after <= case.config.max_leverage:
        return None
    return f"leverage would be {after:.6g}; limit {case.config.max_leverage:g}"


def correlation(case: Case) -> str | None:
    """Refuse a bet that is nearly the same as one that is held in another symbol."""
    table = case.view.correlations
    if case.added == 0.0 or not table:
        return None
    side = 1.0 if case.signal.params.side == "buy" else -1.0
    mine = table.get(case.symbol, {})
    for other, held in case.view.holdings.positions.items():
        if other == case.symbol or held == 0.0:
            continue
        rho = mine.get(other, table.get(other, {}).get(case.symbol))
        if rho is None:
            continue
        same_way = rho * side if held > 0.0 else -rho * side
        if not same_way < case.config.max_correlation:
            return f"correlation {rho:g} with {other}; limit {case.config.max_correlation:g}"
    return None


def kelly_zero_edge(case: Case) -> str | None:
    """Refuse what opens a position though, by its own confidence, it does not pay."""
    chance, payoff = case.signal.params.confidence, case.config.kelly_payoff
    if chance is None or payoff is None or not case.opens:
        return None
    edge = chance * payoff - (1.0 - chance)
    return None if edge > 0.0 else f"confidence {chance:g} at a payoff of {payoff:g}"


_R = RejectCode
POLICY_RULES = tuple(
    FilterRule(code, "policy", check)
    for code, check in (
        (_R.OPS_KILL_SWITCH, kill_switch),
        (_R.OPS_MAINTENANCE, maintenance),
        (_R.OPS_CONFIG_ERROR, config_error),
        (_R.RISK_DRAWDOWN_BREAKER, drawdown_breaker),
        (_R.RISK_MIN_NOTIONAL, min_notional),
        (_R.RISK_EXPOSURE_LIMIT, exposure_limit),
        (_R.RISK_POSITION_LIMIT, position_limit),
        (_R.RISK_VAR_LIMIT, var_limit),
        (_R.RISK_LEVERAGE, leverage),
        (_R.RISK_CORRELATION, correlation),
        (_R.RISK_KELLY_ZERO_EDGE, kelly_zero_edge),
    )
)
