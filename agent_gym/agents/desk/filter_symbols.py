"""Rules on names: whether symbol and strategy are known at this desk."""

from __future__ import annotations

from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.rejections import RejectCode


def unknown_symbol(case: Case) -> str | None:
    """Refuse a symbol that is not on the list, or without a list one that has no quote."""
    known = case.config.symbols
    is_known = case.quote is not None if known is None else case.symbol in known
    return None if is_known else case.symbol


def unknown_strategy(case: Case) -> str | None:
    """Refuse a strategy that is not on the list, if there is one."""
    known = case.config.strategies
    return None if known is None or case.signal.strategy in known else case.signal.strategy


SCHEMA_RULES = (
    FilterRule(RejectCode.SCHEMA_UNKNOWN_SYMBOL, "schema", unknown_symbol),
    FilterRule(RejectCode.SCHEMA_UNKNOWN_STRATEGY, "schema", unknown_strategy),
)
