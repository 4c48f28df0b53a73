"""A plain moment at the desk, and ways to change one thing in it."""

import json
from math import inf, nan
from pathlib import Path

from msgspec.structs import replace

from agent_gym.agents.desk import (
    DeskView,
    FilterConfig,
    Holdings,
    Quote,
    RecentContext,
    RejectCode,
    Score,
    SignalFilter,
)
from agent_gym.core import Seeds
from agent_gym.core.errors import ConfigError

GOLDEN = Path(__file__).parent / "golden"
NOW = 1_700_000_000.0  # a Tuesday, 22:13 UTC
RAW = {"signal_id": "g1", "strategy": "momentum", "params": {"amount": 0.1}, "timestamp": NOW - 1}
BTC = Quote(NOW - 1, 49_995.0, 50_005.0, volume_per_hour=100.0, volatility=0.004)
ETH = Quote(NOW - 1, 1_999.5, 2_000.5, volume_per_hour=2_000.0, volatility=0.005)
HOLDINGS = Holdings(100_000.0, 100_000.0, {}, exposure=0.0, drawdown=0.0)
VIEW = DeskView(NOW, {"BTC/USDT": BTC, "ETH/USDT": ETH}, HOLDINGS)
_WORDS = {"$nan": nan, "$inf": inf}


class FixedAcceptor:
    """Gives one answer to everything, or fails in the way that is allowed."""

    def __init__(self, score=1.0, threshold=0.0, hold=None, fails=None):
        self.answer = Score(score, threshold, "fixed-1", None if hold is None else RejectCode(hold))
        self.fails = fails
        self.asked = []

    def score(self, features):
        self.asked.append(features)
        if self.fails:
            raise ConfigError(self.fails)
        return self.answer


def spoken(value):
    """Return a value of a golden file with its words for special numbers put in."""
    if isinstance(value, dict):
        return {key: spoken(inner) for key, inner in value.items() if inner != "$drop"}
    if isinstance(value, list):
        return [spoken(inner) for inner in value]
    return _WORDS.get(value, value) if isinstance(value, str) else value


def golden_rows(name):
    lines = (GOLDEN / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line]


def raw_signal(changes):
    if "$raw" in changes:
        return changes["$raw"]
    return spoken(changes["$only"] if "$only" in changes else RAW | changes)


def view_of(row):
    quotes = dict(VIEW.quotes) | {"BTC/USDT": replace(BTC, **spoken(row.get("quote", {})))}
    holdings = replace(HOLDINGS, **spoken(row.get("holdings", {})))
    return replace(VIEW, quotes=quotes, holdings=holdings, **spoken(row.get("view", {})))


def context_of(past):
    context = RecentContext()
    for told in past:
        told = dict(told)
        refused = told.pop("$refused", None)
        signal = context.store_signal(RAW | told)
        if refused:
            context.store_rejection(
                {"signal_id": signal.signal_id, "code": refused, "timestamp": signal.timestamp}
            )
    return context


def filter_of(row, **more):
    acceptor = FixedAcceptor(**spoken(row["acceptor"])) if "acceptor" in row else None
    return SignalFilter(FilterConfig(**row.get("config", {})), acceptor, Seeds(7), **more)


def checked(row, **more):
    """Return what the filter says of one row of the golden file."""
    signal = raw_signal(row.get("signal", {}))
    return filter_of(row, **more).check(signal, view_of(row), context_of(row.get("past", [])))
