"""Rules on ids, repeats, rates and time."""

from __future__ import annotations

from math import isfinite

from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.rejections import RejectCode

HOUR_S = 3600.0
DAY_S = 86_400.0
_THURSDAY = 3  # the weekday of 1 January 1970


def duplicate_id(case: Case) -> str | None:
    """Refuse an id that came in before."""
    name = case.signal.signal_id
    return f"{name} came in before" if case.context.has_seen(name) else None


def near_duplicate(case: Case) -> str | None:
    """Refuse the same strategy, symbol and side within a few seconds."""
    within_s = case.config.near_duplicate_s
    if within_s == 0.0 or not case.context.has_twin(case.signal, within_s):
        return None
    params = case.signal.params
    return f"{case.signal.strategy} {params.side} {case.symbol} again within {within_s:g} s"


def rate_limited(case: Case) -> str | None:
    """Refuse more than so many passed signals of a strategy in a window."""
    config, now = case.config, case.view.now
    passed = case.context.passed(case.signal.strategy, now - config.rate_window_s)
    if passed < config.rate_limit:
        return None
    return f"{passed} signals in {config.rate_window_s:g} s; limit {config.rate_limit}"


def stale(case: Case) -> str | None:
    """Refuse a signal that is too old."""
    age_s = case.view.now - case.signal.timestamp
    return None if age_s <= case.config.stale_s else f"{age_s:g} s old"


def future_timestamp(case: Case) -> str | None:
    """Refuse a signal that claims to come from later than now."""
    ahead_s = case.signal.timestamp - case.view.now
    return None if ahead_s <= case.config.future_s else f"{ahead_s:g} s ahead"


def out_of_session(case: Case) -> str | None:
    """Refuse a signal outside the hours and days of trading."""
    config, now = case.config, case.view.now
    if not isfinite(now):
        return f"the clock shows {now:g}"
    if (
        len(config.session_days) < 7
        and int(now // DAY_S + _THURSDAY) % 7 not in config.session_days
    ):
        return "not a trading day"
    if config.session_hours_utc is None:
        return None
    opens, closes = config.session_hours_utc
    hour = now % DAY_S / HOUR_S
    inside = opens <= hour < closes if opens < closes else hour >= opens or hour < closes
    return None if inside else f"hour {hour:.2f} UTC; session {opens:g} to {closes:g}"


DEDUPE_RULES = (
    FilterRule(RejectCode.DUP_DUPLICATE_ID, "dedupe", duplicate_id),
    FilterRule(RejectCode.DUP_NEAR_DUPLICATE, "dedupe", near_duplicate),
    FilterRule(RejectCode.DUP_RATE_LIMITED, "dedupe", rate_limited),
)
FRESHNESS_RULES = (
    FilterRule(RejectCode.TIME_STALE, "freshness", stale),
    FilterRule(RejectCode.TIME_FUTURE_TIMESTAMP, "freshness", future_timestamp),
    FilterRule(RejectCode.TIME_OUT_OF_SESSION, "freshness", out_of_session),
)
