"""Rules on the state of the market; they judge only what the quote of the symbol says."""

from __future__ import annotations

from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.rejections import RejectCode


def market_closed(case: Case) -> str | None:
    """Refuse while the market is closed."""
    return f"{case.symbol} is closed" if case.quote is not None and not case.quote.is_open else None


def data_stale(case: Case) -> str | None:
    """Refuse without a quote, with an old one, or with one from the future."""
    if case.quote is None:
        return f"no quote of {case.symbol}"
    age_s = case.view.now - case.quote.timestamp
    if -case.config.future_s <= age_s <= case.config.data_stale_s:
        return None
    return f"quote is {age_s:g} s old; limit {case.config.data_stale_s:g}"


def no_liquidity(case: Case) -> str | None:
    """Refuse without two usable sides, or for too large a share of an hour's volume."""
    if case.quote is None:
        return None
    if case.price is None:
        return f"bid {case.quote.bid:g}, ask {case.quote.ask:g}"
    amount, volume = case.signal.params.amount, case.quote.volume_per_hour
    if amount <= case.config.max_volume_share * volume:
        return None
    return f"{amount:g} of {volume:g} an hour; share limit {case.config.max_volume_share:g}"


def spread_too_wide(case: Case) -> str | None:
    """Refuse while bid and ask are too far apart."""
    if (
        case.quote is None
        or case.price is None
        or case.quote.spread_bp <= case.config.max_spread_bp
    ):
        return None
    return f"spread {case.quote.spread_bp:.4g} bp; limit {case.config.max_spread_bp:g}"


def volatility_halt(case: Case) -> str | None:
    """Refuse while prices jump about."""
    if case.quote is None or case.quote.volatility <= case.config.max_volatility:
        return None
    return f"volatility {case.quote.volatility:.4g} an hour; limit {case.config.max_volatility:g}"


MARKET_RULES = (
    FilterRule(RejectCode.MARKET_MARKET_CLOSED, "market", market_closed),
    FilterRule(RejectCode.MARKET_DATA_STALE, "market", data_stale),
    FilterRule(RejectCode.MARKET_NO_LIQUIDITY, "market", no_liquidity),
    FilterRule(RejectCode.MARKET_SPREAD_TOO_WIDE, "market", spread_too_wide),
    FilterRule(RejectCode.MARKET_VOLATILITY_HALT, "market", volatility_halt),
)
